"""NCM against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid

from siesta.methods import NCM, MethodSettings
from tests.methods.conftest import Start


@pytest.mark.filterwarnings("ignore")  # scikit-learn minds features that never fire at 32 px
def test_it_is_the_nearest_centroid(starts: dict[str, Start]) -> None:
    some = starts["opq"]
    base, first, second = some.lesson([0, 1, 1], 1), some.lesson([3, 0, 2, 2, 4, 5]), some.lesson([6, 7, 4, 1], 2)
    method = NCM(some.folder(base), MethodSettings(), 0)
    method.learn_many(*first)
    method.learn_many(*second)
    features = method._home.pipeline.features
    z = np.concatenate([features(codes) for codes, _ in (base, first, second)]).astype(np.float64)
    labels = [label for _, labels in (base, first, second) for label in labels]
    asked, _ = some.lesson(list(range(8)) * 8, 5)
    expected = NearestCentroid().fit(z, labels)
    assert [answer[0] for answer in method.predict_many(asked)] == expected.predict(features(asked)).tolist()
    rows = [method._home.labels.index(name) for name in expected.classes_]
    np.testing.assert_allclose(method.means()[rows], expected.centroids_, atol=1e-5)


def test_no_sample_is_kept_and_none_is_trained_on(starts: dict[str, Start]) -> None:
    method = NCM(starts["opq"].folder(), MethodSettings(), 0)
    method.learn_many(*starts["opq"].lesson([0, 1, 1]))
    resources = method.resources()
    assert resources.updates == 0 and resources.bytes["codes"] == 0 and len(method._home.store) == 0
    assert resources.bytes["means"] == 2 * (1280 * 8 + 8)
