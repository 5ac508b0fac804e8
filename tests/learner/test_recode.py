"""Another codec for all stored samples, from their images or from what the old codec kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from siesta import Siesta
from siesta.codecs import OPQ
from siesta.codecs.latents import to_vectors
from siesta.contracts import Codec
from tests.learner.colours import labelled_pictures, picture
from tests.learner.kill_points import copies_between_writes
from tests.stores import store_of


def test_all_samples_are_encoded_with_the_new_codec(learner: Siesta) -> None:
    images, labels = labelled_pictures(4)
    learner.learn_many(images, labels)
    before = learner.pipeline.decode(store_of(learner).samples.get(np.arange(1, 13))[1])
    vectors = to_vectors(learner.pipeline.latents(images))
    tiled = np.tile(vectors, (8, 1))
    noisy = tiled + np.random.default_rng(0).normal(scale=0.1, size=tiled.shape).astype(np.float32)
    codec = OPQ.fit(noisy, seed=1)
    assert learner.renew_codec(codec, 0.125, {2: images[1], 99: images[0]}) == 1
    _, codes = store_of(learner).samples.get(np.arange(1, 13))
    expected = codec.encode(before.numpy())
    expected[1] = codec.encode(learner.pipeline.latents([images[1]]))[0]
    assert np.array_equal(codes, expected)
    assert learner.info().codec.relative_error == 0.125
    features = learner.pipeline.features(codes)
    assert np.allclose(learner.head.weights()[0], features[::3].mean(axis=0), atol=1e-4), "means are computed again"
    assert learner.info().changes[-1]["what"] == "refit"
    assert learner.predict_one(picture("red", 9)).label in labels


def test_a_kill_between_any_two_writes_leaves_codes_and_sums_of_one_codec(learner: Siesta, tmp_path: Path) -> None:
    images, labels = labelled_pictures(4)
    learner.learn_many(images, labels)
    path = tmp_path / "colours.siesta"
    asked = [picture("red", 9), picture("blue", 9)]
    outcomes = [learner.predict_many(asked)]
    with copies_between_writes(learner, path, tmp_path / "copies") as copies:
        learner.renew_codec(coarser(learner.pipeline.codec), 0.5, {})
    outcomes.append(learner.predict_many(asked))
    assert outcomes[0] != outcomes[1]
    found = []
    for copy in copies:
        with Siesta.open(copy) as killed:
            found.append(outcomes.index(killed.predict_many(asked)))
        assert not list(copy.rglob(".*.next"))
    assert found == sorted(found)
    assert set(found) == {0, 1}


def coarser(codec: Codec) -> OPQ:
    """Return a codec with half of the centroids of another one, each twice."""
    state = codec.state()
    return OPQ(state["rotation"], np.repeat(state["centroids"][:, ::2], 2, axis=1))
