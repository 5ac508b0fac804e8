"""What several test files share."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from PIL import Image

settings.register_profile("siesta", derandomize=True, deadline=None)  # the same examples in every run
settings.load_profile("siesta")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background has it ignored

MakePictures = Callable[..., Path]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Cores are shared, and sums in one thread are the same everywhere."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real pictures that lie beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no shared pictures at {folder}")
    return folder


@pytest.fixture
def make_pictures() -> MakePictures:
    """Writes `folder/<label>/<n>.png`, noise around one colour a label: easy to tell apart, no two the same."""

    def make(folder: Path, labels: list[str], each: int = 3, seed: int = 0) -> Path:
        rng = np.random.default_rng(seed)
        for index, label in enumerate(labels):
            (folder / label).mkdir(parents=True)
            colour = np.array([(90 * index) % 200, (50 * index) % 200, (170 * index) % 200])
            for number in range(each):
                noise = rng.integers(0, 56, (40, 40, 3))
                Image.fromarray((colour + noise).astype(np.uint8)).save(folder / label / f"{number}.png")
        return folder

    return make
