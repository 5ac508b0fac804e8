"""An exported file gives the scores of the learner, in plain ONNX Runtime."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from siesta import BadInput, Siesta
from siesta.backbones import BACKBONES, RANDOM
from siesta.images import Pixels
from siesta.learner.export import ExportReport, export_learner
from tests.conftest import MakePictures
from tests.learner.colours import labelled_pictures, picture

ROOT = Path(__file__).parents[2]


@pytest.fixture
def learner(tmp_path: Path) -> Siesta:
    """A learner of the default network, whose export is checked."""
    return Siesta.create(tmp_path / "colours.siesta", memory="100KB", image_size=32)


def scores_of(file: Path, pictures: list[Pixels]) -> list[dict[str, float]]:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
    (scores,) = session.run(None, {"input": np.stack(pictures)})
    return [dict(zip(labels, row, strict=True)) for row in scores.tolist()]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"head": "cosine"},
        {"head": "cosine", "space": "linear_centred"},
        {"codec": "raw"},
        {"backbone": "vit_tiny_16", "weights": RANDOM, "image_size": 96},
        {"backbone": "resnet18_gn", "weights": RANDOM, "codec": "raw"},
    ],
    ids=lambda options: "-".join(map(str, options.values())) or "default",
)
def test_the_file_gives_the_scores_of_the_learner(options: dict[str, Any], tmp_path: Path, base: Path) -> None:
    path, file = tmp_path / "x.siesta", tmp_path / "x.onnx"
    if options.get("weights") == RANDOM:
        options = {**options, "base": base}
    images, labels = labelled_pictures(8)
    with Siesta.create(path, **{"image_size": 32, "memory": "1MB", **options}) as learner:
        asked = [learner.read(picture(label, 90)) for label in ("red", "green", "blue", "grey")]
        learner.learn_many(images, labels)
        learner.sleep(updates=16, batch_size=8, lr=0.01, tolerance=1)
        learner.learn_one(picture("grey"), "grey")
        report = export_learner(path, file)
        assert report == ExportReport(4, 1, file.stat().st_size)
        expected = learner.predict_many(asked)
    for count in (1, 4):
        for prediction, scores in zip(expected, scores_of(file, asked[:count]), strict=False):
            assert scores == pytest.approx(dict(prediction.top), abs=2e-3), "a code may be rounded to its neighbour"
            assert max(scores, key=lambda label: scores[label]) == prediction.label


@pytest.mark.parametrize("codec", ["float16", "opq"])
def test_a_learner_of_vectors_gives_its_scores_for_any_batch(codec: str, tmp_path: Path) -> None:
    path, file = tmp_path / "x.siesta", tmp_path / "x.onnx"
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8)).astype(np.float32) + 3 * np.eye(4, 8, dtype=np.float32).repeat(10, axis=0)
    vectors[0] = 0
    base: dict[str, Any] = {"base": rng.normal(size=(600, 8)).astype(np.float32)} if codec == "opq" else {}
    with Siesta.create(path, features=8, memory="1MB", codec=codec, **base) as learner:
        learner.learn_many(vectors, np.repeat(["a", "b", "c", "d"], 10).tolist())
        expected = learner.predict_many(vectors)
    export_learner(path, file)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    assert about["features"] == "8" and "image_size" not in about
    for batch in (vectors[:1], vectors):
        (scores,) = session.run(None, {"input": batch})
        for prediction, row in zip(expected, scores.tolist(), strict=False):
            found = dict(zip(json.loads(about["labels"]), row, strict=True))
            assert found == pytest.approx(dict(prediction.top), abs=1e-3)


def test_onnx_finds_nothing_wrong_with_it(learner: Siesta, tmp_path: Path) -> None:
    learner.learn_many(*labelled_pictures(2))
    export_learner(tmp_path / "colours.siesta", tmp_path / "x.onnx")
    model = onnx.load(tmp_path / "x.onnx")
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(model, strict_mode=True), full_check=True)
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert about["image_size"] == "32" and about["generation"] == "0"
    assert json.loads(about["labels"]) == ["red", "green", "blue"]


def test_what_cannot_be_exported_is_refused(learner: Siesta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, file = tmp_path / "colours.siesta", tmp_path / "x.onnx"
    with pytest.raises(BadInput, match="was not taught anything yet"):
        export_learner(path, file)
    learner.learn_many(*labelled_pictures(2))
    monkeypatch.setitem(BACKBONES, "somebody_elses", BACKBONES["efficientnet_lite0"])
    monkeypatch.setattr("siesta.backbones.cut_network.read_structure", lambda _name: None)
    with pytest.raises(BadInput, match=r"the network .* cannot be exported"):
        export_learner(path, file)
    assert not file.exists()


def test_the_example_of_the_docs_runs(learner: Siesta, tmp_path: Path, make_pictures: MakePictures) -> None:
    """It prints what `siesta predict` says about a photo that is not square."""
    photos = make_pictures(tmp_path / "photos", ["red", "green"])
    Image.open(photos / "red" / "0.png").resize((57, 41)).save(tmp_path / "photo.jpg", quality=95)
    for label in ("red", "green"):
        learner.learn_many(sorted((photos / label).iterdir()), [label] * 3)
    export_learner(tmp_path / "colours.siesta", tmp_path / "birds.onnx")
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "export.md").read_text("utf-8"), flags=re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    prediction = learner.predict_one(tmp_path / "photo.jpg")
    printed = dict(line.split(": ") for line in done.stdout.splitlines())
    assert {label: float(score) for label, score in printed.items()} == pytest.approx(dict(prediction.top), abs=2e-3)
