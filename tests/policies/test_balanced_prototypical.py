"""Balanced prototypical: every class alike, in each the typical ones first."""

from __future__ import annotations

import numpy as np

from siesta.policies import BalancedPrototypical, BalancedUniform
from tests.policies.memories import assert_balanced, draw, times
from tests.policies.test_prototypical import spread


def test_typical_samples_of_every_class_come_first() -> None:
    memory, angle = spread([900, 300])
    typical = angle < 0.5
    picks = {policy: draw(policy(), memory, 150) for policy in (BalancedPrototypical, BalancedUniform)}
    shares = [float(typical[times(memory, some) > 0].mean()) for some in picks.values()]
    assert shares[0] > 0.55 and shares[1] < 0.3
    assert_balanced(memory, picks[BalancedPrototypical])


def test_passes_are_drawn_anew() -> None:
    """Two passes through a class are as different as two sleeps."""
    memory, angle = spread([400])
    picks = draw(BalancedPrototypical(), memory, 800)
    places = [np.argsort(some) for some in (picks[:400], picks[400:])]  # by id
    plain = angle[np.argsort(memory.ids)] > 0.5
    assert abs(np.corrcoef(places[0][plain], places[1][plain])[0, 1]) < 0.15
