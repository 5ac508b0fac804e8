"""Small images of four colours with noise: easy to tell apart, no two the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["COLOURS", "Pixels", "labelled_pictures", "picture"]

Pixels = npt.NDArray[np.uint8]
COLOURS = {"red": (220, 40, 40), "green": (40, 220, 40), "blue": (40, 40, 220), "grey": (128, 128, 128)}


def picture(label: str, seed: int = 0) -> Pixels:
    noise = np.random.default_rng((seed, list(COLOURS).index(label))).normal(0, 30, (32, 32, 3))
    return (np.array(COLOURS[label]) + noise).clip(0, 255).astype(np.uint8)


def labelled_pictures(count: int, labels: tuple[str, ...] = ("red", "green", "blue")) -> tuple[list[Pixels], list[str]]:
    pairs = [(picture(label, seed), label) for seed in range(count) for label in labels]
    return [pixels for pixels, _ in pairs], [label for _, label in pairs]
