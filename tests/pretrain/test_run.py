"""A run and its file: what it is tied to, what it never costs, and what it says of a bad disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from siesta.data.options import option_names
from siesta.errors import BadInput, Busy, Damaged, DiskRefused
from siesta.pretrain import PRETRAINERS, loop
from siesta.pretrain.options import BOUNDS
from siesta.pretrain.pictures import copied
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import Settings
from siesta.store.files import Lock
from tests.pretrain.toys import QUICK, TINY, draw_textures


def settings(name: str = "barlow_twins", **others: Any) -> Settings:
    return Settings(name, TINY, image_size=32, options=QUICK[name], **{"epochs": 1, "batch_size": 16, **others})


def stopped(textures: Path, out: Path, **others: Any) -> None:
    """Leaves a run in its second step."""

    def stop(standing: loop.Standing) -> None:
        if standing.pictures == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(settings(**others), textures, out, on_step=stop)
    assert out.with_name(f"{out.name}.part").exists()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.safetensors"


def test_other_pictures_are_another_run(textures: Path, out: Path, tmp_path: Path) -> None:
    others = draw_textures(tmp_path / "others", seed=7)
    stopped(textures, out)
    with pytest.raises(BadInput, match="made with other pictures: give the same, remove it"):
        pretrain(settings(), others, out)
    pretrain(settings(), textures, out)
    for data, words in ((others, "made with other pictures"), (tmp_path / "nowhere", "is not a folder")):
        with pytest.raises(BadInput, match=words):
            pretrain(settings(), data, out)
    moved = tmp_path / "moved"
    shutil.move(textures, moved)
    assert pretrain(settings(), moved, out).status == "known"


def test_other_weights_to_start_from_are_another_run(textures: Path, out: Path, tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    for seed in (1, 2):
        pretrain(settings(seed=seed), textures, tmp_path / f"{seed}.safetensors")
    shutil.copy(tmp_path / "1.safetensors", start)
    stopped(textures, out, weights=str(start))
    shutil.copy(tmp_path / "2.safetensors", start)
    with pytest.raises(BadInput, match="made with other weights to start from"):
        pretrain(settings(weights=str(start)), textures, out)


def test_what_was_left_open_is_filled_in(textures: Path, out: Path) -> None:
    pretrain(settings(), textures, out)
    assert pretrain(settings(rate=BARLOW_RATE), textures, out).status == "known"
    with pytest.raises(BadInput, match="made with epochs 1, not 2000"):
        pretrain(settings(epochs=None), textures, out)


BARLOW_RATE = PRETRAINERS["barlow_twins"].recipe.rate * 16 / PRETRAINERS["barlow_twins"].recipe.batch


def test_files_of_others_stay(textures: Path, out: Path, tmp_path: Path) -> None:
    for name in ("out.json", "out.safetensors.json"):
        (tmp_path / name).write_text('{"my": "labels"}')
    with pytest.raises(BadInput, match=r"out\.safetensors\.json exists already"):
        pretrain(settings(), textures, out)
    (tmp_path / "out.safetensors.json").unlink()
    pretrain(settings(), textures, out)
    assert json.loads((tmp_path / "out.json").read_text()) == {"my": "labels"}
    out.unlink()  # its own record may be replaced
    assert pretrain(settings(), textures, out).status == "trained"


def test_one_process_at_a_time(textures: Path, out: Path) -> None:
    lock = Lock(out.with_name(f".{out.name}.lock"), lambda pid: pid)
    with pytest.raises(Busy, match="is being made by process"):
        pretrain(settings(), textures, out)
    lock.release()
    assert pretrain(settings(), textures, out).status == "trained"
    assert {path.name for path in out.parent.iterdir()} == {"textures", "cache", out.name, f"{out.name}.json"}


def test_a_run_of_another_size_is_refused_before_pictures_are_copied(textures: Path, out: Path, tmp_path: Path) -> None:
    stopped(textures, out)
    other = Settings("barlow_twins", TINY, image_size=48, options=QUICK["barlow_twins"], epochs=1, batch_size=16)
    with pytest.raises(BadInput, match="made with image size 32, not 48"):
        pretrain(other, textures, out, cache=tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("ending", [".lock", ".new", ".json.new", ".part.new"])
def test_files_of_others_beside_it_stay(ending: str, textures: Path, out: Path) -> None:
    own = out.with_name(f"{out.name}{ending}")
    own.write_text("mine")
    pretrain(settings(), textures, out)
    assert own.read_text() == "mine"


def test_what_has_come_into_being_meanwhile_stays_and_nothing_is_lost(textures: Path, out: Path) -> None:
    def come(_: loop.Standing) -> None:
        out.write_text("mine")

    with pytest.raises(BadInput, match="move it away, and the same command ends the run"):
        pretrain(settings(), textures, out, on_step=come)
    assert out.read_text() == "mine"
    out.unlink()
    steps: list[loop.Standing] = []
    assert pretrain(settings(), textures, out, on_step=steps.append).status == "trained"
    assert not steps  # all was in the checkpoint


def test_what_is_no_name_of_a_file_is_said(textures: Path) -> None:
    with pytest.raises(BadInput, match="is no name of a file"):
        pretrain(settings(), textures, "")


def test_pictures_of_knn_that_cannot_be_read_are_named(textures: Path, out: Path, tmp_path: Path) -> None:
    labelled = Path(shutil.copytree(textures, tmp_path / "labelled"))
    next(labelled.glob("0/*")).write_bytes(b"no picture")
    (reason,) = pretrain(settings(), textures, out, labelled=labelled).skipped
    assert "labelled" in reason
    again = pretrain(settings(), labelled, tmp_path / "again.safetensors", labelled=labelled)
    assert again.skipped == (reason,)
    with pytest.raises(BadInput, match="at least one, not 0"):
        pretrain(settings(), textures, out, knn_every=0)


@pytest.mark.parametrize("what", ["the checkpoint", "the weights"])
def test_a_full_disk_costs_nothing(
    what: str, textures: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole.safetensors"
    pretrain(settings(), textures, whole)
    opened = Path.open

    def full(path: Path, *arguments: Any, **others: Any) -> Any:
        name = f".{out.name}.new" if what == "the weights" else f".{out.name}.part.new"
        if path.name == name:
            raise OSError(28, "No space left on device")
        return opened(path, *arguments, **others)

    with monkeypatch.context() as patch, pytest.raises(DiskRefused, match="is full"):
        patch.setattr(Path, "open", full)
        pretrain(settings(), textures, out)
    assert out.with_name(f"{out.name}.part").exists() == (what == "the weights")
    assert not list(tmp_path.glob(".*.new"))
    assert pretrain(settings(), textures, out).status == "trained"
    assert out.read_bytes() == whole.read_bytes()


def test_a_run_that_diverged_in_its_last_step_is_not_written(textures: Path, out: Path) -> None:
    with pytest.raises(BadInput, match=r"diverged: remove .*\.part and use a lower"):
        pretrain(settings("supervised", rate=1e30, batch_size=48), textures, out)
    assert not out.exists()


def test_damaged_copies_are_made_anew_or_named(textures: Path, out: Path, tmp_path: Path) -> None:
    cache = tmp_path / "copies"
    copied(sorted(textures.rglob("*.png")), 32, cache)
    (index,), (content,) = cache.glob("*.json"), cache.glob("*.jpegs")
    whole = content.read_bytes()
    for file, damage in ((index, b"{"), (index, b"[]"), (content, whole[:-1]), (content, b"")):
        file.write_bytes(damage)
        assert len(copied(sorted(textures.rglob("*.png")), 32, cache)) == 48
        assert content.read_bytes() == whole
    content.write_bytes(bytes(len(whole)))
    with pytest.raises(Damaged, match=r"copies of pictures in .*\.jpegs are damaged: remove it"):
        pretrain(settings(), textures, out, cache=cache)


def test_a_thin_picture_and_a_link_to_nowhere_are_skipped(textures: Path, out: Path) -> None:
    Image.new("RGB", (20_000, 20)).save(textures / "0" / "thin.png")
    (textures / "1" / "gone.png").symlink_to("nowhere.png")
    found = pretrain(settings("supervised"), textures, out)
    assert found.status == "trained" and len(found.skipped) == 2
    assert "too long and thin" in found.skipped[0] and "there is no picture" in found.skipped[1]


def test_one_class_and_a_number_of_classes_are_refused(textures: Path, out: Path, tmp_path: Path) -> None:
    shutil.copytree(textures / "0", tmp_path / "one" / "0")
    with pytest.raises(BadInput, match="supervised tells classes apart: give pictures of two or more"):
        pretrain(settings("supervised", batch_size=4), tmp_path / "one", out)
    with pytest.raises(BadInput, match="are the folders in --data"):
        Settings("supervised", TINY, options={"classes": 3})


def test_every_number_has_bounds() -> None:
    for name, kind in PRETRAINERS.items():
        assert set(option_names(kind)) - {"teacher", "teacher_weights", "classes"} <= set(BOUNDS), name


@pytest.mark.parametrize(("name", "queue"), [("swav", 0), ("swav", 5), ("seed", 1)])
def test_queues_of_any_length(name: str, queue: int, textures: Path, out: Path) -> None:
    how = Settings(name, TINY, image_size=32, batch_size=16, epochs=2, options={**QUICK[name], "queue": queue})
    assert pretrain(how, textures, out).status == "trained"


def test_seed_needs_a_queue(textures: Path, out: Path) -> None:
    how = Settings("seed", TINY, image_size=32, batch_size=16, epochs=1, options={**QUICK["seed"], "queue": 0})
    with pytest.raises(BadInput, match="give it room for one or more"):
        pretrain(how, textures, out)
