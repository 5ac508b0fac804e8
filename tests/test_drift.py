"""The codec's error on what is taught, watched."""

from __future__ import annotations

import numpy as np
import pytest

from siesta import Siesta
from siesta.codecs import relative_error


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def test_the_error_is_that_of_one_in_eight_samples() -> None:
    with Siesta.create(":memory:", image_size=32) as learner:
        for number in range(40):
            learner.learn_one(noise(number), "snow")
        count, error = learner.store.drift()
        assert count == 5
        one_by_one = [
            relative_error(learner.pipeline.codec, learner.pipeline.latents([noise(n)])) for n in range(7, 40, 8)
        ]
        assert error == pytest.approx(np.mean(one_by_one), rel=1e-5)
        learner.learn_many([noise(number) for number in range(64)], ["snow"] * 64)
        assert learner.store.drift()[0] == 7
        facts = learner.info()["codec"]
        assert facts["error_lately"] == pytest.approx(learner.store.drift()[1])
        assert not facts["drifted"]  # too few to say


def test_what_the_codec_does_not_suit_is_said() -> None:
    with Siesta.create(":memory:", image_size=32) as learner:
        for number in range(200):
            learner.learn_one(noise(number), "snow")
        facts = learner.info()["codec"]
        assert facts["drifted"] == (facts["error_lately"] > 1.25 * facts["relative_error"])
        learner.store._connection.execute("UPDATE drift SET error = ?", (2 * facts["relative_error"],))
        assert learner.info()["codec"]["drifted"]
