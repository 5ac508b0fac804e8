"""The length and the number of rounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from siesta.sleep import round_limits
from siesta.sleep.round_limits import FEWEST_HELD_OUT, RoundLimits, explain_rounds

COUNTS = st.integers(1, 10**6)


@given(samples=COUNTS, batch_size=st.integers(1, 512), judged=st.booleans(), per_update=st.sampled_from([1, 2]))
def test_rounds_are_whole_batches_of_at_least_their_passes(
    samples: int, batch_size: int, judged: bool, per_update: int
) -> None:
    limits = RoundLimits.of(samples, batch_size, judged, per_update)
    all_passes = round_limits._PASSES if judged else (round_limits._PASSES_UNJUDGED,)
    for updates, passes in zip(limits.updates, all_passes, strict=True):
        steps, rest = divmod(updates, batch_size)
        assert rest == 0 and steps >= round_limits._FEWEST_STEPS
        assert updates * per_update >= passes * samples
        assert steps == round_limits._FEWEST_STEPS or (steps - 1) * batch_size * per_update < passes * samples
    assert limits.most_updates == sum(limits.updates) >= limits.least_updates == sum(limits.updates[:2])


def test_the_explanation_states_the_ceiling() -> None:
    text = explain_rounds()
    for number in (sum(round_limits._PASSES), round_limits._PASSES_UNJUDGED, FEWEST_HELD_OUT):
        assert f" {number} " in text
