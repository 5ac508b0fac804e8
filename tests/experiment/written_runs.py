"""Runs without training: answers drawn at random, right as often as wanted, in the files that `siesta run` writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from siesta.experiment.metrics import Predictions
from siesta.experiment.run_folder import RunFolder
from siesta.methods import METHODS

WriteRun = Callable[..., Path]

CLASSES, EACH = 6, 10

_NO_BYTES = {"images": 0, "copies": 0, "codebooks": 0, "means": 0}


def write_run(
    out: Path,
    method: str = "siesta",
    order: str = "class_incremental",
    seed: int = 0,
    *,
    right: float = 0.7,
    steps: int = 3,
    classes: int = CLASSES,
    each: int = EACH,
    done: bool = True,
    **row: Any,
) -> Path:
    """One run below `out`: a method that is right so often, and a little more after sleep."""
    rng = np.random.default_rng([seed, sum(map(ord, method + order))])
    kind = METHODS[row.get("kind", method)]
    run = f"{method}-{order}-{seed}"
    folder = RunFolder(out / "runs" / run, f"id-{run}")
    steps = 1 if kind.offline else steps
    for step in range(steps):
        seen = classes if order == "iid" else classes * (step + 1) // steps
        old = 0 if step == 0 else classes if order == "iid" else classes * step // steps
        for phase in ("before", "after") if kind.sleeps else ("after",):
            truth = np.repeat(np.arange(seen), each).astype(np.int32)
            top = _answers(rng, truth, seen, right + (0.1 if phase == "after" else 0.0))
            predictions = Predictions(top, truth)
            folder.add(
                {
                    "schema": 1,
                    "experiment": "toy",
                    "run": run,
                    "config": f"id-{run}",
                    "command": f"siesta run toy.toml --methods {method} --orders {order} --seeds {seed}",
                    "data": {"dataset": "cub200", "image_size": 224, "options": {}, "held_out": 0.0},
                    "method": method,
                    "kind": method,
                    "settings": {"updates": 100},
                    "seed": seed,
                    "order": {"name": order, "hash": f"hash-{order}-{seed}"},
                    "step": step,
                    "phase": phase,
                    "n": len(truth),
                    "classes": seen,
                    "top1": predictions.accuracy(1),
                    "top5": predictions.accuracy(5),
                    "updates": 100 * (step + (phase == "after")) * kind.sleeps,
                    "parameters": 4_000_000 + len(method),
                    "bytes": {"codes": 1_000 * (step + 1), "network": 16_000_000, **_NO_BYTES},
                    "flops": {"wake": 2e9 * (step + 1), "sleep": 4e9 * step, "inference": 1e9},
                    "seconds": {"wake": 1.5 + seed, "sleep": 0.5 * step, "inference": 0.25},
                    "commit": "0123456789ab",
                    "date": "2026-01-02T03:04:05+00:00",
                    "machine": {"cores": 2, "processor": "x86_64", "system": "Linux", "torch": "2.6.0"},
                    **row,
                },
                {
                    "samples": np.arange(len(truth), dtype=np.int32),
                    "truth": truth,
                    "top": top,
                    "new_classes": np.arange(old, seen, dtype=np.int32),
                },
            )
    if done:
        folder.finish()
    return out / "runs" / run


def _answers(rng: np.random.Generator, truth: np.ndarray[Any, Any], seen: int, right: float) -> Any:
    """The best five of each sample, (n, 5): the right class first in a share of them, else at a random place."""
    top = np.full((len(truth), 5), -1, dtype=np.int32)
    for place, label in enumerate(truth):
        ranked = rng.permutation(seen)
        if rng.random() < right:
            ranked = np.concatenate([[label], ranked[ranked != label]])
        top[place, : min(5, seen)] = ranked[:5]
    return top
