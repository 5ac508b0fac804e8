"""A learner of vectors lives like a learner of images: over every codec, policy, head and edit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from siesta import Siesta
from siesta.backbones import VECTOR_NETWORKS
from siesta.codecs import CODECS
from siesta.engines import ENGINES
from siesta.errors import BadInput
from siesta.head.kinds import HEADS
from siesta.learner.export import export_learner
from siesta.learner.integrity import check
from siesta.policies import POLICIES
from siesta.sleep.augment import AUGMENTATIONS

FEATURES = 8
LABELS = ("one", "two", "three")
Vectors = npt.NDArray[np.float32]


def vectors_of(label: str, count: int, seed: int = 0) -> Vectors:
    """Return vectors around a direction of their own, of any length."""
    rng = np.random.default_rng((LABELS.index(label), seed))
    around = np.eye(FEATURES, dtype=np.float32)[LABELS.index(label)] + rng.normal(0, 0.15, (count, FEATURES))
    return np.asarray(around * rng.uniform(0.1, 1000, (count, 1)), np.float32)


def create(path: str | Path = ":memory:", **options: Any) -> Siesta:
    return Siesta.create(path, features=FEATURES, memory="1MB", **options)


def teach(learner: Siesta, each: int = 10) -> Siesta:
    for label in LABELS:
        learner.learn_many(vectors_of(label, each), [label] * each)
    return learner


def accuracy(learner: Siesta) -> float:
    right = [
        prediction.label == label
        for label in LABELS
        for prediction in learner.predict_many(vectors_of(label, 10, seed=1))
    ]
    return float(np.mean(right))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("codec", [name for name, codec in CODECS.own.items() if codec.cut is None])
def test_every_codec_and_head_learns_sleeps_and_predicts(codec: str, head: str) -> None:
    base = None
    if CODECS[codec].needs_fit:
        base = np.concatenate([vectors_of(label, 100, seed=2) for label in LABELS])
    learner = teach(create(codec=codec, head=head, base=base))
    assert learner.info().codec.name == codec and accuracy(learner) >= 0.9
    assert learner.sleep(updates=32, batch_size=8).used and accuracy(learner) >= 0.9


@pytest.mark.parametrize("policy", POLICIES.own)
def test_every_policy_rehearses_vectors(policy: str) -> None:
    learner = teach(create())
    assert learner.sleep(updates=16, batch_size=8, policy=policy).updates == 16
    assert accuracy(learner) >= 0.9


@pytest.mark.parametrize("augment", AUGMENTATIONS.own)
def test_every_augmentation_mixes_vectors(augment: str) -> None:
    learner = teach(create())
    assert learner.sleep(updates=16, batch_size=8, augment=augment).used


@pytest.mark.parametrize("layers", VECTOR_NETWORKS.values())
def test_a_sleep_trains_every_layer_of_the_top(layers: int) -> None:
    learner = teach(create(top_layers=layers))
    before = learner.pipeline.network.top
    learner.sleep(updates=64, batch_size=8)
    after = learner.pipeline.network.top
    assert [name for name in before if np.array_equal(before[name], after[name])] == [f"{layers + 2}.centre"]


@pytest.mark.parametrize("engine", ENGINES.own)
def test_engines_agree(engine: str, tmp_path: Path) -> None:
    with teach(create(tmp_path / "x.siesta")) as learner:
        learner.sleep(updates=16, batch_size=8)
        expected = [prediction.score for prediction in learner.predict_many(vectors_of("two", 5, seed=3))]
    with Siesta.open(tmp_path / "x.siesta", read_only=True, engine=engine) as again:
        found = [prediction.score for prediction in again.predict_many(vectors_of("two", 5, seed=3))]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_edits_and_checks_are_those_of_any_learner(tmp_path: Path) -> None:
    with teach(create(tmp_path / "x.siesta")) as learner:
        first = learner.learn_one(vectors_of("one", 1, seed=4)[0].tolist(), "two")
        learner.sleep(updates=16, batch_size=8)
        learner.correct(first, "one")
        learner.rename("two", "second")
        learner.merge("three", "second")
        learner.forget("one")
        learner.roll_back(0)
        facts = learner.info()
    assert [(each.label, each.stored) for each in facts.classes] == [("second", 20)]
    assert (facts.backbone.features, facts.backbone.image_size) == (FEATURES, None)
    assert facts.bytes.used == 20 * facts.bytes.a_sample
    assert check(tmp_path / "x.siesta", full=True) == []


def test_a_refused_vector_stores_nothing_of_its_transaction() -> None:
    learner = teach(create())
    good = vectors_of("one", 40, seed=5)
    with pytest.raises(BadInput, match="element 2 of the vector is nan") as caught:
        learner.learn_many([*good, [0, float("nan"), *[0] * 6]], ["one"] * 41)
    assert caught.value.safe == 32 and learner.info().samples.stored == 30 + 32
    with pytest.raises(BadInput, match=re.escape("vectors of 8 numbers, and this one has shape (3,)")):
        learner.predict_one([1, 2, 3])
    with pytest.raises(BadInput, match="this learner takes vectors of 8 numbers, not text"):
        learner.learn_one("photo.jpg", "one")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": -1}, "features is -1: give the length of your vectors"),
        ({"features": 8, "codec": "raw"}, "the codec raw stores pixels, and this network takes vectors"),
        ({"features": 8, "codec": "opq"}, "no fitted codec comes with vectors_2"),
        ({"features": 8, "space": "linear"}, "vectors_2 has no activation before z to leave out"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=words):
        Siesta.create(tmp_path / "x.siesta", **options)
    assert not (tmp_path / "x.siesta").exists()


@pytest.mark.parametrize("codec", [name for name, codec in CODECS.own.items() if codec.cut is None])
def test_an_exported_file_gives_the_scores_of_the_learner(codec: str, tmp_path: Path) -> None:
    base = np.concatenate([vectors_of(label, 100, seed=2) for label in LABELS])
    with teach(create(tmp_path / "x.siesta", codec=codec, base=base, top_layers=2)) as learner:
        learner.sleep(updates=16, batch_size=8)
        asked = vectors_of("two", 5, seed=3)
        expected = [dict(prediction.top) for prediction in learner.predict_many(asked)]
    export_learner(tmp_path / "x.siesta", tmp_path / "x.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "x.onnx", providers=["CPUExecutionProvider"])
    labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
    for row, scores in zip(session.run(None, {"input": asked})[0], expected, strict=True):
        assert dict(zip(labels, row.tolist(), strict=True)) == pytest.approx(scores, abs=1e-4)


def test_base_vectors_give_a_centre() -> None:
    base = np.concatenate([vectors_of(label, 20, seed=2) for label in LABELS])
    learner = create(base=base)
    network = learner.pipeline.network
    assert learner.info().backbone.space == "centred" and learner.info().codec.relative_error < 1e-6
    unit = base / np.sqrt(np.square(base).mean(axis=1, keepdims=True))
    np.testing.assert_allclose(network.top[network.centre], unit.mean(axis=0), atol=1e-3)
