"""Balanced prototypical: equally many of each class, samples near its mean first."""

from __future__ import annotations

import numpy as np

from siesta.policies import BalancedPrototypical, BalancedUniform
from tests.policies.memories import assert_balanced, draw, draw_counts
from tests.policies.test_prototypical import radial_memory


def test_samples_near_the_mean_of_every_class_come_first() -> None:
    memory, angle = radial_memory([900, 300])
    typical = angle < 0.5
    prototypical, uniform = (draw(policy, memory, 150) for policy in (BalancedPrototypical(), BalancedUniform()))
    assert typical[draw_counts(memory, prototypical) > 0].mean() > 0.55
    assert typical[draw_counts(memory, uniform) > 0].mean() < 0.3
    assert_balanced(memory, prototypical)


def test_passes_are_drawn_anew() -> None:
    """Two passes through a class are independent but for the preference."""
    memory, angle = radial_memory([400])
    sample_ids = draw(BalancedPrototypical(), memory, 800)
    first, second = (np.argsort(one_pass) for one_pass in (sample_ids[:400], sample_ids[400:]))  # places by id
    far = angle[np.argsort(memory.ids)] > 0.5
    assert abs(np.corrcoef(first[far], second[far])[0, 1]) < 0.15
