"""`siesta run`, as people type it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from siesta.cli.app import app
from siesta.errors import SiestaError
from tests.conftest import MakePictures
from tests.experiment.toys import make_cache

SCRIPT = Path(sys.executable).with_name("siesta")


@pytest.fixture
def config(tmp_path: Path, make_pictures: MakePictures, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(make_cache(tmp_path / "cache")))
    monkeypatch.chdir(tmp_path)
    for part, each in (("train", 4), ("val", 2)):
        make_pictures(tmp_path / "colours" / part, [f"colour {number}" for number in range(4)], each=each)
    file = tmp_path / "colours.toml"
    file.write_text(
        'name = "colours"\n[data]\ndataset = "image_folder"\npath = "colours"\nimage_size = 32\n'
        "[orders.class_incremental]\nclasses_per_step = 2\n"
        "[methods.siesta]\nupdates = 8\nbatch_size = 4\n[methods.ncm]\n"
    )
    return file


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def refused(code: int, words: str, *arguments: str | Path) -> None:
    with pytest.raises(SiestaError, match=words) as caught:
        CliRunner().invoke(app, ["run", *map(str, arguments)], catch_exceptions=False)
    assert caught.value.exit_code == code
    assert "\n" not in str(caught.value)


def test_a_dry_run_prints_the_plan_and_writes_nothing(config: Path, tmp_path: Path) -> None:
    done = run(config, "--dry-run", "--seeds", "0,1")
    assert done.exit_code == 0
    for words in ("siesta-class_incremental-1", "ncm-class_incremental-0", "16 training and 8 test images"):
        assert words in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "cache" / "siesta" / "codes").exists()


def test_rows_are_printed_and_a_finished_run_is_not_repeated(config: Path, tmp_path: Path) -> None:
    done = run(config, "--methods", "ncm", "--json")
    assert done.exit_code == 0
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["step"], row["phase"], row["classes"]) for row in rows] == [(0, "after", 2), (1, "after", 4)]
    assert (tmp_path / "runs" / "colours" / "runs" / "ncm-class_incremental-0" / "done").exists()
    again = run(config, "--methods", "ncm")
    assert (again.exit_code, again.stdout) == (0, "")
    assert "2, 2 done" in again.stderr
    words = run(config, "--methods", "siesta", "--out", tmp_path / "elsewhere")
    assert "4 classes, top-1" in words.stderr


def test_invalid_input_is_reported_in_one_sentence(config: Path, tmp_path: Path) -> None:
    refused(3, "no config at", tmp_path / "none.toml")
    refused(3, "no method 'remid'", config, "--methods", "remid")
    refused(3, "no order 'iid'", config, "--orders", "iid")
    refused(3, "seeds are whole numbers", config, "--seeds", "one")
    refused(3, "no key 'data.colour'", config, "--set", "data.colour=1")
    refused(3, "nowhere", config, "--set", "data.path=nowhere")
    refused(3, "no space 'curved'", config, "--set", "network.space=curved", "--methods", "ncm")
    refused(3, "no backbone 'vgg'", config, "--set", "network.backbone=vgg", "--methods", "ncm")
    (tmp_path / "file").write_text("")
    refused(3, "file", config, "--out", tmp_path / "file")


def test_an_unreadable_picture_is_named_and_the_run_resumes_once_it_is_replaced(config: Path, tmp_path: Path) -> None:
    picture = tmp_path / "colours" / "train" / "colour 1" / "2.png"
    whole = picture.read_bytes()
    picture.write_bytes(whole[: len(whole) // 2])
    refused(3, r"colour 1/2\.png is not a readable image", config, "--methods", "ncm")
    Image.new("RGB", (40, 40), "red").save(picture)
    assert run(config, "--methods", "ncm").exit_code == 0


def test_ctrl_c_stops_a_run_and_the_same_command_resumes_it(config: Path, tmp_path: Path) -> None:
    command = [str(SCRIPT), "run", str(config), "--json", "--set", "methods.siesta.updates=60", "--methods", "siesta"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error,ignore::ResourceWarning"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
    assert child.stdout is not None
    first = child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, words = child.communicate()
    assert json.loads(first)["phase"] == "before"
    assert child.returncode == 130, words
    assert "Stopped: finished steps are saved" in words
    assert "Traceback" not in words
    done = run(*command[2:])
    assert done.exit_code == 0, done.stderr
    assert [json.loads(line)["updates"] for line in done.stdout.splitlines()] == [0, 60, 60, 120]
