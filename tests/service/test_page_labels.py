"""Labels on the page: invisible characters are shown as marks, and no label changes the order of the text around it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from siesta.service import app
from tests.conftest import MakePictures
from tests.service.page_support import OpenPage, PageService

FORMAT = Path(app.__file__).parent / "static" / "format.js"


def run(function: str, labels: list[str]) -> list[str]:
    """Return what a function of format.js makes of labels."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("functions of the page are tested with node: apt-get install nodejs")
    script = f"import {{ {function} }} from {json.dumps(FORMAT.as_uri())};"
    script += f"console.log(JSON.stringify({json.dumps(labels)}.map((each) => {function}(each))));"
    done = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    results: list[str] = json.loads(done.stdout)
    return results


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("c\u200bat", "c[U+200B]at"),
        ("cat\u200d", "cat[U+200D]"),
        ("\u202etac", "[U+202E]tac"),
        ("\u2066cat\u2069", "[U+2066]cat[U+2069]"),
        ("co\u00adop", "co[U+00AD]op"),
        ("big\u00a0cat", "big[U+00A0]cat"),
        ("cat\U000e0041", "cat[U+E0041]"),
        ("cat\ufe0f", "cat[U+FE0F]"),
        ("\u3164", "[U+3164]"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_a_mark(label: str, shown: str) -> None:
    assert run("visible", [label]) == [shown]


def test_what_can_be_seen_stays_as_it_is() -> None:
    labels = ["big cat", "Straße", "猫", "شمس", "नमस्ते", "👩\u200d🔬", "❤\ufe0f", "👩🏽\u200d🚀", "[U+200B]"]
    assert run("visible", labels) == labels


def test_a_label_from_right_to_left_is_isolated_in_a_sentence() -> None:
    assert run("isolated", ["cat", "شمس", "قط\u202e"]) == ["cat", "\u2068شمس\u2069", "\u2068قط[U+202E]\u2069"]


def test_two_labels_that_look_alike_differ_on_the_page(
    open_page: OpenPage, service: PageService, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "pictures", ["cup"], each=2)
    first, second = sorted((folder / "cup").iterdir())
    service.teach([first], "cup")
    service.teach([second], "c\u200bup")
    page = open_page()
    page.locator("#classes .name").nth(1).wait_for()
    names = page.locator("#classes .name")
    assert sorted(names.nth(index).input_value() for index in range(2)) == ["c[U+200B]up", "cup"]
    page.locator("#ask-file").set_input_files(first)
    page.locator("#bars .label").nth(1).wait_for()
    assert sorted(page.locator("#bars bdi.label").all_inner_texts()) == ["c[U+200B]up", "cup"]
