"""Creation of a learner's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.store import Store
from tests.store.stores import (
    is_one_line,
    make_store,
    sample,
)


@pytest.mark.parametrize(
    "name",
    [b"with space", b"what?mode=ro", b"100%25", b"a#b", "ünï-深い".encode(), b"%", b"'quoted\"", b"latin-\xe9"],
    ids=ascii,
)
def test_a_folder_may_have_any_name(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    store = make_store(path)
    store.add([sample("ant", 1)])
    store.close()
    for access in ("read", "teach"):
        store = Store.open(path, access)
        assert len(store) == 1
        assert store.path == path
        store.close()
    assert [os.fsencode(entry.name) for entry in tmp_path.iterdir()] == [name]


def test_a_relative_path_refers_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_store(Path("s")).close()
    assert (tmp_path / "s" / "store.sqlite").is_file()


def test_existing_files_and_folders_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "folder", "link"):
        with pytest.raises(BadInput, match="exists already"):
            make_store(tmp_path / name)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder", "link"]
    assert (tmp_path / "file").read_text() == "mine"


def test_leftovers_of_a_killed_create_are_ignored(tmp_path: Path) -> None:
    for name in (".s.partial", "..s.partial.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "store.sqlite").write_bytes(b"half")
    make_store(tmp_path / "s").close()
    Store.open(tmp_path / "s").close()


def test_an_impossible_name_is_refused_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)
    with pytest.raises(BadInput):
        Store.open(path)
    with pytest.raises(BadInput):
        make_store(path)


def test_a_name_too_long_for_the_partial_folder_works_or_is_refused(tmp_path: Path) -> None:
    try:
        make_store(tmp_path / ("x" * 250)).close()
    except BadInput as error:
        assert is_one_line(error)
