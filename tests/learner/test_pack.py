"""A learner as one file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from siesta import Siesta
from siesta.errors import BadInput, Busy, Damaged, DiskRefused
from siesta.learner import pack as packing
from siesta.learner.integrity import check
from siesta.learner.pack import has_bottom, open_pack, pack_learner, unpacked
from siesta.store.pack_file import PackFile, write_pack_file
from siesta.store.schema import FORMAT
from tests.learner.colours import labelled_pictures, picture
from tests.small import create_small
from tests.stores import store_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test."""
    monkeypatch.setattr(packing, "cache_folder", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "bottoms"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with create_small(tmp_path / "a.siesta", memory="1MB") as learner:
        ids = learner.learn_many(*labelled_pictures(2), range(6))
        learner.keep_thumbnails({ids[0]: b"a thumbnail"})
        learner.rename("red", "a secret label of before")
        learner.rename("a secret label of before", "red")
    return tmp_path / "a.siesta"


@pytest.fixture
def file(path: Path, tmp_path: Path) -> Path:
    pack_learner(path, tmp_path / "file")
    return tmp_path / "file"


def repacked(file: Path, **parts: bytes) -> None:
    """Replace parts of a pack, with hashes that are right."""
    pack = PackFile.open(file)
    whole = {name: pack.read(name) for name in pack.parts}
    write_pack_file(file, "pack", pack.facts, {**whole, **parts})


def test_a_pack_has_what_a_sleep_needs_and_nothing_else(path: Path, tmp_path: Path) -> None:
    (path / "tokens.json").write_text('["a token"]')
    report = pack_learner(path, tmp_path / "file")
    assert (report.samples, report.classes, report.generation) == (6, 3, 0)
    data = (tmp_path / "file").read_bytes()
    assert report.bytes == len(data)
    assert set(PackFile.open(tmp_path / "file").parts) == {"store.sqlite", "bottom", "codec", "graphs", "top", "head"}
    for private in (b"a thumbnail", b"a secret label", b"a token"):
        assert private not in data
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.siesta", "file"]
    assert check(path) == []


def test_an_unpacked_learner_is_the_same_learner(path: Path, file: Path) -> None:
    with unpacked(open_pack(file)) as folder:
        assert check(folder, full=True) == []
        with Siesta.open(folder, read_only=True) as copy, Siesta.open(path) as learner:
            pictures = [picture("red", 50), picture("blue", 50)]
            assert copy.predict_many(pictures) == learner.predict_many(pictures)
            assert copy.settings == learner.settings
    assert not folder.exists()


def test_learning_goes_on_while_it_is_packed(path: Path, tmp_path: Path) -> None:
    with Siesta.open(path) as learner:
        assert pack_learner(path, tmp_path / "file").samples == 6
        learner.learn_one(picture("grey"), "grey")
    assert check(path) == []


def test_a_bottom_is_left_out_where_it_is_known_by_its_hash(path: Path, file: Path, tmp_path: Path) -> None:
    pack_learner(path, tmp_path / "small", bottom=False)
    assert "bottom" not in PackFile.open(tmp_path / "small").parts
    with (
        pytest.raises(BadInput, match="has no bottom, and none like it was unpacked here"),
        unpacked(open_pack(tmp_path / "small")),
    ):
        pass
    with unpacked(open_pack(file)), unpacked(open_pack(tmp_path / "small")) as folder:
        assert check(folder) == []


def test_few_bottoms_are_remembered_and_a_damaged_one_is_not_used(file: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    for number in range(9):
        (cache / f"{number}.safetensors").write_bytes(b"old")
    with unpacked(open_pack(file)):
        pass
    assert len(list(cache.iterdir())) == 8
    (known,) = [found.stem for found in cache.iterdir() if len(found.stem) == 64]
    assert has_bottom(known)
    (cache / f"{known}.safetensors").write_bytes(b"damaged")
    assert not has_bottom(known)
    assert not has_bottom("../../a.siesta/bottom")


def test_a_file_that_exists_is_not_replaced(path: Path, file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(BadInput, match="exists already: choose another name"):
        pack_learner(path, file)
    assert file.read_bytes() == before


def test_there_must_be_samples_and_a_learner(tmp_path: Path) -> None:
    create_small(tmp_path / "empty.siesta").close()
    with pytest.raises(BadInput, match="has no samples to sleep on"):
        pack_learner(tmp_path / "empty.siesta", tmp_path / "file")
    with pytest.raises(BadInput, match="there is no learner"):
        pack_learner(tmp_path / "nothing", tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_learner_that_sleeps_is_not_packed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "LOCK_PATIENCE", 0.0)
    with Siesta.open(path) as learner, store_of(learner).sleeping(), pytest.raises(Busy):
        pack_learner(path, tmp_path / "file")


def test_a_damaged_learner_is_not_packed(path: Path, tmp_path: Path) -> None:
    with (path / "bottom.safetensors").open("r+b") as opened:
        opened.seek(-1, 2)
        opened.write(b"x")
    with pytest.raises(Damaged, match=r"bottom of .* is damaged"):
        pack_learner(path, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_disk_that_refuses_leaves_nothing(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("siesta.files._new_partial_file", refuse)
    with pytest.raises(DiskRefused, match="is full"):
        pack_learner(path, tmp_path / "file")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.siesta"]


@pytest.mark.parametrize("part", ["top", "codec"])
def test_a_tensor_file_that_is_not_the_recorded_one_is_refused(part: str, file: Path) -> None:
    repacked(file, **{part: b"other"})
    with pytest.raises(Damaged, match=f"is damaged .*{part}"), unpacked(open_pack(file)):
        pass
    assert not (file.parent / "file.sleep" / "learner").exists()


def test_damaged_codes_and_foreign_tables_are_refused(file: Path, tmp_path: Path) -> None:
    for statement in ("UPDATE codes SET codes = zeroblob(9) WHERE id = 3", "CREATE VIEW evil AS SELECT 1"):
        database = tmp_path / "database"
        database.write_bytes(PackFile.open(file).read("store.sqlite"))
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute(statement)
        repacked(file, **{"store.sqlite": database.read_bytes()})
        with (
            pytest.raises(Damaged, match=r"sample 3: its codes are damaged|not the memory of a learner"),
            unpacked(open_pack(file)),
        ):
            pass


def test_a_pack_of_another_format_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "FORMAT", FORMAT + 1)
    with pytest.raises(Damaged, match="install the same on both machines"):
        open_pack(file)
