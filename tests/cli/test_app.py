"""The application as a whole: a complete session by the script, help, and how each kind of error ends."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from siesta.cli.app import app
from siesta.learner import Siesta
from tests.cli.running import ENVIRONMENT, assert_refused, result_of, run, run_script

MakePictures = Callable[..., Path]


def test_the_script_creates_teaches_sleeps_and_predicts(tmp_path: Path, make_pictures: MakePictures) -> None:
    ask = partial(result_of, by=run_script)
    path, folder = tmp_path / "birds.siesta", make_pictures(tmp_path / "photos", ["robin", "wren", "tit"], each=5)
    info = ask("new", path, "--memory", "1MB", "--image-size", "32")
    assert info["classes"] == []
    assert ask("learn", path, folder)["learned"] == 15
    report = ask("sleep", path, "--updates", "20", "--batch-size", "8", "--seed", "3", "--policy", "uniform")
    assert (report["generation"], report["updates"], report["classes"]) == (1, 20, 3)
    (answer,) = ask("predict", path, folder / "robin" / "0.png")
    assert answer["top"][0]["label"] == "robin"


def test_every_command_has_help_with_an_example() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup) and len(group.commands) > 20
    listing = run("--help")
    assert listing.returncode == 0
    for command in group.commands:
        assert re.search(rf"\b{command}\b", listing.stdout)
        done = run(command, "--help")
        assert done.returncode == 0
        assert f"Example: siesta {command}" in done.stdout


def test_without_a_command_it_shows_its_help() -> None:
    assert "Usage" in run().stdout


def test_it_prints_its_version() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"siesta \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["sleep", "--help"], ["--version"]])
def test_help_loads_no_torch(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom siesta.cli import main\nsys.argv = ['siesta', *sys.argv[1:]]\n"
        "try:\n    main()\nfinally:\n    sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0
    modules = set(done.stderr.split())
    assert "siesta.cli.app" in modules
    assert not modules & {"torch", "faiss", "PIL", "matplotlib", "sklearn"}


def test_usage_errors_end_with_2() -> None:
    for arguments in (["nap"], ["new"], ["sleep", "x", "--updates", "many"], ["info", "x", "--colour"]):
        assert run(*arguments).returncode == 2


def test_an_error_is_one_line_whatever_a_path_holds(tmp_path: Path) -> None:
    done = run("info", tmp_path / "a\x1b[31mb\nc.siesta")
    assert done.returncode == 3
    assert r"a\x1b[31mb\nc.siesta" in done.stderr and done.stderr.count("\n") == 1


def test_a_folder_that_is_not_a_learner_ends_with_3(tmp_path: Path) -> None:
    assert_refused(3, "not a siesta learner", "info", tmp_path, by=run_script)


def test_missing_learners_and_files_are_named(
    empty_learner: Path, taught_learner: Path, tmp_path: Path, image: Path
) -> None:
    assert_refused(3, "no learner at .*nowhere", "info", tmp_path / "nowhere")
    assert_refused(3, "nowhere is not a folder", "learn", empty_learner, tmp_path / "nowhere")
    assert_refused(3, r"no image at .*nowhere\.png", "predict", taught_learner, tmp_path / "nowhere.png")
    assert_refused(3, r"photo\.png", "info", image)
    assert_refused(3, "x", "info", "x" * 300)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["photo.png"]


def test_a_newer_format_ends_with_4(taught_copy: Path) -> None:
    connection = sqlite3.connect(taught_copy / "store.sqlite", isolation_level=None)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("UPDATE settings SET value = '99' WHERE name = 'format'")
    connection.close()
    assert_refused(4, "format 99.*upgrade", "info", taught_copy)


def test_damage_ends_with_4_and_names_the_file(taught_copy: Path, image: Path) -> None:
    top = taught_copy / "generations" / "000000" / "top.safetensors"
    top.write_bytes(top.read_bytes()[:1000])
    assert_refused(4, r"top\.safetensors is damaged", "predict", taught_copy, image)
    (taught_copy / "store.sqlite").write_bytes(b"garbage" * 1000)
    assert_refused(4, r"store\.sqlite is damaged", "info", taught_copy)


def test_a_second_writer_ends_with_5_and_readers_do_not(
    taught_copy: Path, image: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(image.parent / "photos", ["a"], each=1)
    with Siesta.open(taught_copy):
        assert_refused(5, f"process {os.getpid()}", "learn", taught_copy, folder, by=run_script)
        assert len(result_of("predict", taught_copy, image)) == 1


def test_a_read_only_disk_allows_predictions_but_no_learning(
    taught_copy: Path, image: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(image.parent / "photos", ["a"], each=1)
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    before = ("unshare", "-m", "sh", "-c", script, str(image.parent))
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no mounts")
    by = partial(run_script, before=before)
    assert_refused(7, "cannot be written", "learn", taught_copy, folder, by=by)
    assert_refused(7, "cannot be written", "new", image.parent / "new.siesta", "--image-size", "32", by=by)
    assert len(result_of("predict", taught_copy, image, by=by)) == 1


def test_file_names_in_no_encoding_are_printed(taught_learner: Path, tmp_path: Path, image: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9.png"
    shutil.copy(image, os.fsdecode(odd))
    (answer,) = result_of("predict", taught_learner, odd)
    assert "caf" in answer["image"]
    assert run_script("predict", taught_learner, odd).returncode == 0
