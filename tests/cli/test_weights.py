"""`siesta new --weights FILE`: what of the file was not used is said on stderr, and kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from siesta.cli.app import app


def test_new_names_the_tensors_that_it_did_not_use(tmp_path: Path) -> None:
    base, file = tmp_path / "base", tmp_path / "weights.safetensors"
    base.mkdir()
    for seed in range(8):
        pixels = np.random.default_rng(seed).integers(0, 255, (96, 96, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(base / f"{seed}.png")
    save_checkpoint(make_backbone("mobilenet_v2", weights=RANDOM), file)
    save_file({**load_file(file), "fc[red]": torch.zeros(2)}, file)
    options = ["--backbone", "mobilenet_v2", "--weights", str(file), "--base", str(base), "--image-size", "96"]
    outcome = CliRunner().invoke(app, ["new", str(tmp_path / "x.siesta"), *options, "--json"])
    assert outcome.exit_code == 0 and outcome.stderr == f"not used: fc[red] of {file}\n"
    made = json.loads(outcome.stdout)["backbone"]
    assert made["weights"] == {"from": "weights.safetensors", "ignored": ["fc[red]"]}
