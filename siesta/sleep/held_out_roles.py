"""Which held-out samples decide about a sleep, and which ones only measure it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from siesta.head import Discriminant, Head
from siesta.pipeline import Pipeline
from siesta.sleep.budget import Budget
from siesta.sleep.calibration import Confidence
from siesta.sleep.held_out import HeldOutSamples
from siesta.sleep.round_limits import FEWEST_HELD_OUT
from siesta.store import Store

__all__ = ["Evaluation", "HeldOutRoles"]


@dataclass(frozen=True)
class Evaluation:
    """How weights do on held-out samples.

    Attributes:
        guards: On the samples that decide whether new weights are used.
        measured: On the samples that give the accuracy shown and the calibration of scores.
    """

    guards: Confidence
    measured: Confidence


@dataclass(frozen=True)
class HeldOutRoles:
    """The held-out samples of a sleep by what they decide.

    Attributes:
        judges: The samples that decide when the sleep ends; None if there are too few, or if it has a budget.
        guards: The samples that decide whether the new weights are used.
        measured: The samples that give the accuracy shown and the calibration of scores.
        independent: Whether the measured samples decide nothing.
    """

    judges: HeldOutSamples | None
    guards: HeldOutSamples
    measured: HeldOutSamples
    independent: bool

    @classmethod
    def of(cls, samples: HeldOutSamples, budget: Budget) -> HeldOutRoles:
        """Return different samples for the roles as far as there are enough.

        One half only measures. Of the other half, one quarter of all samples judges the rounds of a sleep without a
        budget, and one guards; where these are too few, the half does both. Fewer samples still play all roles.
        """
        deciding, measured = samples.halves()
        if min(len(deciding.ids), len(measured.ids)) < FEWEST_HELD_OUT:
            judged = budget.is_open and len(samples.ids) >= FEWEST_HELD_OUT
            return cls(samples if judged else None, samples, samples, independent=False)
        if not budget.is_open:
            return cls(None, deciding, measured, independent=True)
        judges, guards = deciding.halves(level=1)
        if min(len(judges.ids), len(guards.ids)) < FEWEST_HELD_OUT:
            judges = guards = deciding
        return cls(judges, guards, measured, independent=True)

    @property
    def optimistic(self) -> bool:
        """Whether the measured accuracy is biased upwards, because the same samples decided about the weights."""
        return not self.independent and len(self.measured.ids) > 0

    def measure(
        self, store: Store, pipeline: Pipeline, classifier: Head | Discriminant, seconds: float | None = None
    ) -> tuple[Evaluation, HeldOutRoles]:
        """Classify the samples that guard and those that are measured.

        Args:
            store: The store with their codes.
            pipeline: The pipeline that computes z from codes.
            classifier: The head that computes logits from z.
            seconds: Time after which to stop; at least one batch of both is measured.

        Returns:
            How they are classified, and the roles with those samples that there was time for.
        """
        if not self.independent:
            confidence, samples = self.measured.measure(store, pipeline, classifier, seconds)
            return Evaluation(confidence, confidence), replace(self, guards=samples, measured=samples)
        half = None if seconds is None else seconds / 2
        guarded, guards = self.guards.measure(store, pipeline, classifier, half)
        confidence, measured = self.measured.measure(store, pipeline, classifier, half)
        measures = Evaluation(guarded, replace(confidence, independent=True))
        return measures, replace(self, guards=guards, measured=measured)
