"""A run never replaces files that are not its own, and writes all of its files or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from siesta.errors import BadInput, Busy, DiskRefused
from siesta.pretrain.loop import PretrainStatus
from siesta.pretrain.result import OutputFile
from siesta.pretrain.run import pretrain
from tests.pretrain.toys import quick_settings


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.safetensors"


def test_a_name_without_a_file_is_refused() -> None:
    with pytest.raises(BadInput, match="is not the name of a file"):
        OutputFile(Path())


def test_a_second_process_is_refused_and_no_lock_is_left(textures: Path, out: Path) -> None:
    with OutputFile(out).locked(), pytest.raises(Busy, match="is being made by process"):
        pretrain(quick_settings(), textures, out)
    assert pretrain(quick_settings(), textures, out).status == "trained"
    assert {path.name for path in out.parent.iterdir()} == {"textures", "cache", out.name, f"{out.name}.json"}


def test_a_folder_that_does_not_exist_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"), OutputFile(tmp_path / "nowhere" / "x.safetensors").locked():
        pytest.fail("it must not get here")


def test_a_record_of_another_program_is_not_replaced(textures: Path, out: Path, tmp_path: Path) -> None:
    for name in ("out.json", "out.safetensors.json"):
        (tmp_path / name).write_text('{"my": "labels"}')
    with pytest.raises(BadInput, match=r"out\.safetensors\.json exists already"):
        pretrain(quick_settings(), textures, out)
    (tmp_path / "out.safetensors.json").unlink()
    pretrain(quick_settings(), textures, out)
    assert json.loads((tmp_path / "out.json").read_text()) == {"my": "labels"}


def test_its_own_record_is_replaced_when_the_weights_are_gone(textures: Path, out: Path) -> None:
    pretrain(quick_settings(), textures, out)
    out.unlink()
    assert pretrain(quick_settings(), textures, out).status == "trained"


def test_weights_without_a_record_are_not_replaced(textures: Path, out: Path) -> None:
    out.write_text("mine")
    with pytest.raises(BadInput, match="exists already: choose another name or remove it first"):
        pretrain(quick_settings(), textures, out)
    assert out.read_text() == "mine"


@pytest.mark.parametrize("ending", [".lock", ".partial", ".json.partial", ".part.partial"])
def test_files_with_similar_names_are_not_touched(ending: str, textures: Path, out: Path) -> None:
    own = out.with_name(f"{out.name}{ending}")
    own.write_text("mine")
    pretrain(quick_settings(), textures, out)
    assert own.read_text() == "mine"


def test_a_file_that_another_program_writes_during_the_run_is_not_replaced(textures: Path, out: Path) -> None:
    def write(_: PretrainStatus) -> None:
        out.write_text("mine")

    with pytest.raises(BadInput, match="move it away and run the same command"):
        pretrain(quick_settings(), textures, out, on_step=write)
    assert out.read_text() == "mine"
    out.unlink()
    steps: list[PretrainStatus] = []
    assert pretrain(quick_settings(), textures, out, on_step=steps.append).status == "trained"
    assert not steps, "the checkpoint had the whole run"


@pytest.mark.parametrize("full", ["the checkpoint", "the weights"])
def test_a_full_disk_loses_nothing(
    full: str, textures: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole.safetensors"
    pretrain(quick_settings(), textures, whole)
    refused = out if full == "the weights" else out.with_name(f"{out.name}.part")
    replace = Path.replace

    def fail(partial: Path, target: Path) -> Path:
        if target == refused:
            raise OSError(28, "No space left on device")
        return replace(partial, target)

    with monkeypatch.context() as patch, pytest.raises(DiskRefused, match="is full"):
        patch.setattr(Path, "replace", fail)
        pretrain(quick_settings(), textures, out)
    assert out.with_name(f"{out.name}.part").exists() == (full == "the weights")
    assert not list(tmp_path.glob(".*")), "no partial files are left"
    assert pretrain(quick_settings(), textures, out).status == "trained"
    assert out.read_bytes() == whole.read_bytes()
