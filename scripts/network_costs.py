"""What a network costs a learner: milliseconds an image, bytes a sample and peak RAM, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.learners import noise
from benchmarks.measure import alternate
from siesta import Siesta

__all__ = ["CLASSES", "THREADS", "measure_costs"]

CLASSES = 10
"""How many classes the measured learner knows, of two samples each."""

THREADS = 2
REPEATS = 10  # turns of predicting and learning
TURN = 6  # images a turn, of which the first is not counted


def measure_costs(path: Path, **options: Any) -> dict[str, float]:
    """Create a learner at `path`, teach it images of noise, and measure it in another process.

    Args:
        path: The folder to create.
        **options: Keyword arguments for `Siesta.create`.

    Returns:
        Median milliseconds to predict and to learn a single image that is read and resized already, the bytes of its
        codes, and the peak RAM in MB of a process that opens the learner and predicts one image.
    """
    with Siesta.create(path, **options) as learner:
        images = noise(2 * CLASSES, learner.settings["image_size"])
        learner.learn_many(images, [f"class {index % CLASSES}" for index in range(len(images))])
    command = [sys.executable, "-m", "scripts.network_costs", str(path)]
    found: dict[str, float] = json.loads(_output(command))
    return found


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - our own module


def _measure(path: str) -> dict[str, float]:
    """Measure a learner in this process, whose peak RAM is read before anything but one prediction has been made."""
    torch.set_num_threads(THREADS)
    with Siesta.open(path, read_only=True) as learner:
        image = noise(1, learner.settings["image_size"])[0]
        learner.predict_one(image)
        peak = _peak_bytes()
    with Siesta.open(path) as learner:
        works = (lambda: learner.predict_one(image), lambda: learner.learn_one(image, "class 0"))
        predict, learn = alternate(*works, repeats=REPEATS, block=TURN)
        code_bytes = learner.settings["code_bytes"]
    milliseconds = {"predict_ms": round(1e3 * predict, 2), "learn_ms": round(1e3 * learn, 2)}
    return {**milliseconds, "bytes_a_sample": code_bytes, "peak_mb": round(peak / 1e6, 1)}


def _peak_bytes() -> int:
    """Return the peak resident bytes of this process; `getrusage` would inherit the maximum of its parent."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
