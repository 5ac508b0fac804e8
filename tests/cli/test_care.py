"""siesta check and siesta repair through the real entry point."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from siesta.learner import Siesta

SCRIPT = Path(sys.executable).with_name("siesta")


def siesta(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error", "COLUMNS": "100"}
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, env=environment)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("care") / "birds.siesta"
    pictures = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    with Siesta.create(path, memory="20 samples", image_size=32) as learner:
        learner.learn_many(pictures, ["wren", "[red]", "wren", "[red]"])
    return path


def test_check_and_repair_from_damage_to_whole(path: Path) -> None:
    done = siesta("check", path)
    assert (done.returncode, done.stdout) == (0, "whole\n")
    assert siesta("repair", path).stdout == "whole: there was nothing to repair\n"
    connection = sqlite3.connect(path / "store.sqlite", isolation_level=None)
    connection.execute("UPDATE codes SET codes = x'00' WHERE id = 2")
    connection.close()
    done = siesta("check", path)
    assert done.returncode == 4
    assert done.stdout.splitlines()[0] == "sample 2: its codes are damaged"
    done = siesta("check", path, "--json")
    assert done.returncode == 4
    assert json.loads(done.stdout) == [{"kind": "sample", "words": "sample 2: its codes are damaged", "item": 2}]
    done = siesta("repair", path)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "removed sample 2: it is damaged",
        "class '[red]' has lost 1 of its 2 samples",
    ]
    assert siesta("check", path, "--json").stdout == "[]\n"


def test_what_cannot_be_cared_for_is_said(path: Path, tmp_path: Path) -> None:
    for command in ("check", "repair"):
        done = siesta(command, tmp_path / "nothing")
        assert done.returncode == 3
        assert "there is no learner" in done.stderr
    file = path / "bottom.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    done = siesta("check", path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (4, "bottom.safetensors is damaged")
    done = siesta("repair", path, "--json")
    assert (done.returncode, done.stdout) == (4, "")
    assert "cannot be repaired" in done.stderr
