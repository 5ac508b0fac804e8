"""The Python examples of the pages about interfaces run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from siesta import Siesta
from tests.learner.colours import labelled_pictures, picture

ROOT = Path(__file__).parent.parent
PAGES = ["reject", "river", "scikit-learn"]


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / f"{page}.md").read_text("utf-8"), re.M | re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    Image.fromarray(picture("grey")).save("cat.jpg")
    with Siesta.create("birds.siesta", memory="1MB", image_size=32) as birds:
        birds.learn_many(*labelled_pictures(3))
    names: dict[str, object] = {}
    for block in blocks:  # a later one goes on where the one before ended
        exec(compile(block, f"{page}.md", "exec"), names)
