"""An exported file runs in onnxruntime-web, the runtime of browsers, here in node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.learner.export import export_learner
from tests.learner.colours import COLOURS, labelled_pictures, picture

SCRIPT = """
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-web/wasm";
const [model, pixels, count, size] = process.argv.slice(2);
ort.env.wasm.numThreads = 1;
const session = await ort.InferenceSession.create(readFileSync(model));
const shape = [Number(count), Number(size), Number(size), 3];
const { output } = await session.run({ input: new ort.Tensor("uint8", readFileSync(pixels), shape) });
console.log(JSON.stringify({ shape: output.dims, scores: Array.from(output.data) }));
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with onnxruntime-web from the npm registry."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed")
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "onnxruntime-web@1.30.0"]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"onnxruntime-web cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    (tmp_path / "run.mjs").write_text(SCRIPT)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4])
def test_it_gives_the_scores_of_the_learner(folder: Path, count: int) -> None:
    images, labels = labelled_pictures(4, tuple(COLOURS))
    with Siesta.create(folder / "x.siesta", memory="1MB", image_size=32) as learner:
        learner.learn_many(images, labels)
        asked = [learner.read(picture(label, 90)) for label in list(COLOURS)[:count]]
        expected = learner.predict_many(asked)
    export_learner(folder / "x.siesta", folder / "x.onnx")
    (folder / "pixels").write_bytes(np.stack(asked).tobytes())
    command = ["node", "run.mjs", "x.onnx", "pixels", str(count), "32"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["shape"] == [count, len(COLOURS)]
    for prediction, row in zip(expected, np.reshape(answer["scores"], answer["shape"]), strict=True):
        assert dict(zip(COLOURS, row, strict=True)) == pytest.approx(dict(prediction.top), abs=2e-3)
