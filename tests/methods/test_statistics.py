"""Statistics methods: accumulation, state and costs, with a scoring rule made for the test."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.methods.settings import MethodSettings
from siesta.methods.statistics import Floats, StatisticsMethod
from tests.methods.conftest import Template
from tests.small import FEATURES


class Counting(StatisticsMethod[MethodSettings]):
    """Scores a class by its number of samples."""

    Settings = MethodSettings

    def scores(self, features: Floats) -> Floats:
        counts = self.state()["counts"].numpy().astype(np.float64)
        return np.tile(counts, (len(features), 1))


def make(template: Template, base: tuple[list[int], int] | None = None) -> Counting:
    return Counting(template.folder(None if base is None else template.samples(*base)), MethodSettings(), 0)


def test_totals_and_counts_are_sums_over_the_samples(templates: dict[str, Template]) -> None:
    method = make(templates["opq"])
    codes, labels = templates["opq"].samples([2, 0, 2, 2])
    method.learn_many(codes, labels)
    z = method.workspace.pipeline.features(codes).astype(np.float64)
    assert method.workspace.labels == ["class 2", "class 0"]
    assert method.state()["counts"].tolist() == [3, 1]
    np.testing.assert_allclose(method.means(), [z[[0, 2, 3]].mean(axis=0), z[1]], rtol=1e-6, atol=1e-9)


def test_the_scores_of_the_subclass_rank_the_classes(templates: dict[str, Template]) -> None:
    method = make(templates["opq"])
    method.learn_many(*templates["opq"].samples([0, 1, 1, 2, 2, 2]))
    assert method.predict_many(templates["opq"].samples([0])[0]) == [["class 2", "class 1", "class 0"]]


def test_base_samples_are_accumulated_at_no_cost(templates: dict[str, Template]) -> None:
    method = make(templates["opq"], ([0, 1, 1], 1))
    assert method.state()["counts"].tolist() == [1, 2]
    assert method.resources().flops["wake"] == 0


def test_sleep_changes_nothing(templates: dict[str, Template]) -> None:
    method = make(templates["opq"])
    method.learn_many(*templates["opq"].samples([0, 1]))
    before = {name: tensor.clone() for name, tensor in method.state().items()}
    method.sleep()
    assert all(np.array_equal(before[name], tensor) for name, tensor in method.state().items())
    assert method.resources().updates == 0


def test_the_bytes_of_means_are_sums_and_counts(templates: dict[str, Template]) -> None:
    method = make(templates["opq"])
    method.learn_many(*templates["opq"].samples([0, 1, 1]))
    assert method.resources().bytes["means"] == 2 * (FEATURES * 8 + 8)


def test_scores_are_left_to_the_subclass(templates: dict[str, Template]) -> None:
    method = StatisticsMethod(templates["opq"].folder(), MethodSettings(), 0)
    with pytest.raises(NotImplementedError):
        method.scores(np.zeros((1, FEATURES)))
