"""NCM against the nearest centroid of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid

from siesta.methods import MethodSettings
from siesta.methods.ncm import NCM
from tests.methods.conftest import Template


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of features that are constant at 32 px
def test_answers_and_means_are_those_of_scikit_learn(templates: dict[str, Template]) -> None:
    template = templates["opq"]
    base = template.samples([0, 1, 1], 1)
    first = template.samples([3, 0, 2, 2, 4, 5])
    second = template.samples([6, 7, 4, 1], 2)
    method = NCM(template.folder(base), MethodSettings(), 0)
    method.learn_many(*first)
    method.learn_many(*second)
    features = method.workspace.pipeline.features
    z = np.concatenate([features(codes) for codes, _ in (base, first, second)]).astype(np.float64)
    labels = [label for _, labels in (base, first, second) for label in labels]
    queries, _ = template.samples(list(range(8)) * 8, 5)
    expected = NearestCentroid().fit(z, labels)
    assert [answer[0] for answer in method.predict_many(queries)] == expected.predict(features(queries)).tolist()
    rows = [method.workspace.labels.index(name) for name in expected.classes_]
    np.testing.assert_allclose(method.means()[rows], expected.centroids_, atol=1e-5)


def test_no_sample_is_stored_or_trained_on(templates: dict[str, Template]) -> None:
    method = NCM(templates["opq"].folder(), MethodSettings(), 0)
    method.learn_many(*templates["opq"].samples([0, 1, 1]))
    resources = method.resources()
    assert resources.updates == 0 and resources.bytes["codes"] == 0 and len(method.workspace.store) == 0
    assert resources.bytes["means"] == 2 * (32 * 8 + 8)
