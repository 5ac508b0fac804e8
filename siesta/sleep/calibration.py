"""Calibration of scores on held-out samples, which are never rehearsed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput
from siesta.sleep.binomial import at_most, interval_of

__all__ = ["UNKNOWN", "Confidence", "Scores", "softmax"]

UNKNOWN = "unknown"
"""The label of an answer whose familiarity is below the threshold."""

_MOST_NEEDED = 1e9  # samples, for rates so small that the quotient is infinite
_DOUBT = 0.05  # an error rate is shown with a confidence of 1 - _DOUBT
_FEWEST_SAMPLES = 20  # for a temperature other than one, and right ones for a familiarity other than the score
_LOW_SHARE = 0.05  # of the right answers whose familiarity is below 0.5
_TYPICAL_LOGIT = math.log(0.9 / 0.1)  # of the familiarity of a typical right answer
_LEAST_SPREAD = 0.05  # between a typical and a low certainty
_LEAST = 1e-3  # score or closeness that a logarithm is taken of
_PRIOR_WEIGHT = 2.0  # of a temperature of one, so that a few right answers do not make every answer certain
_TEMPERATURES = np.geomspace(0.05, 20.0, 241)

Scores = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Confidence:
    """What held-out samples say about scores.

    Attributes:
        temperature: Logits are divided by it, so that among answers with a score of p a share of p is right.
        right: Familiarity of right answers, ascending.
        wrong: Familiarity of wrong answers, ascending.
        independent: Whether these samples decided nothing about the weights, such as when the sleep ended.
        typical: Median of `_certainty` over right answers; None if familiarity is the score, see `familiarity`.
        low: What a twentieth of the right answers is below.

    Example:
        >>> confidence = Confidence(1.0, right=(0.5,) * 20 + (0.8,) * 40, wrong=(0.3, 0.6), independent=True)
        >>> round(confidence.threshold(0.1), 3), round(confidence.threshold(0.2), 3)
        (0.6, 0.0)
    """

    temperature: float
    right: tuple[float, ...]
    wrong: tuple[float, ...]
    independent: bool = False
    typical: float | None = None
    low: float | None = None

    @classmethod
    def of(cls, logits: Scores, rows: npt.NDArray[np.integer[Any]], closeness: Scores | None = None) -> Confidence:
        """Return the confidence that samples give.

        Args:
            logits: Their logits, (B, K).
            rows: Their true rows, (B,).
            closeness: How close each is to the class with the largest logit, (B,); see `Discriminant.closeness`.
        """
        found = cls(_fitted_temperature(logits, rows), (), ())
        scores = softmax(logits / found.temperature)
        best = scores.max(axis=1)
        correct = scores.argmax(axis=1) == rows
        if closeness is not None and correct.sum() >= _FEWEST_SAMPLES:
            low, typical = np.quantile(_certainty(best[correct], closeness[correct]), (_LOW_SHARE, 0.5)).tolist()
            found = replace(found, typical=round(typical, 5), low=round(low, 5))
        familiarity = found.familiarity(best, closeness)
        return replace(found, right=_ascending(familiarity[correct]), wrong=_ascending(familiarity[~correct]))

    @property
    def needs_closeness(self) -> bool:
        """Whether `familiarity` depends on more than scores."""
        return self.typical is not None and self.low is not None

    def familiarity(self, scores: Scores, closeness: Scores | None) -> Scores:
        """Return how certain answers are and how familiar their images look, 0..1, (B,).

        It is the logistic function of the logarithm of closeness times the square root of the score: 0.9 for a typical
        right answer, and 0.5 where only a twentieth of the right answers to held-out samples is lower. Without enough
        right answers it is the score.

        Args:
            scores: Probability of each answer, (B,).
            closeness: How close each image is to its class, (B,); None for a head that does not say.
        """
        if self.typical is None or self.low is None or closeness is None:
            return scores
        slope = _TYPICAL_LOGIT / max(self.typical - self.low, _LEAST_SPREAD)
        return np.asarray(1 / (1 + np.exp(-slope * (_certainty(scores, closeness) - self.low))))

    @classmethod
    def from_state(cls, state: Mapping[str, Any] | None) -> Confidence:
        """Return the confidence that `state` gave; one without samples for None, or for a damaged report."""
        if state is None:
            return cls(1.0, (), ())
        try:
            right, wrong = _floats(state["right"]), _floats(state["wrong"])
            typical, low = (None if state.get(name) is None else float(state[name]) for name in ("typical", "low"))
            independent = bool(state.get("independent", False))
            return cls(float(state["temperature"]), right, wrong, independent, typical, low)
        except (KeyError, TypeError, ValueError):
            return cls(1.0, (), ())  # no checksum covers reports

    def state(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    @property
    def samples(self) -> int:
        """How many held-out samples it is based on."""
        return len(self.right) + len(self.wrong)

    @property
    def accuracy(self) -> float | None:
        """Share of right answers to held-out samples; None without any."""
        return len(self.right) / self.samples if self.samples else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the accuracy; None without samples."""
        return interval_of(self.accuracy, self.samples)

    @property
    def least_error_rate(self) -> float | None:
        """The smallest error rate that `threshold` accepts, rounded up to a thousandth; None if it accepts none."""
        certain = sum(score > max(self.wrong, default=-1.0) for score in self.right)
        if not self.independent or not certain:
            return None
        return math.ceil(1000 * (1 - math.pow(_DOUBT, 1 / certain))) / 1000

    def threshold(self, error_rate: float) -> float:
        """Return the lowest familiarity above which at most `error_rate` of answers are wrong, with 95 % confidence.

        The bound is that of Clopper and Pearson on the held-out answers that reach a threshold. Thresholds are tested
        in a fixed order, from the highest down, and the first that fails ends the search, so that testing many of them
        costs no confidence (fixed-sequence testing); this assumes that less certain answers are not more often right.
        The first test is at the smallest number of answers that can pass.

        Raises:
            BadInput: The held-out samples cannot show this rate.
        """
        if not 0 < error_rate < 1:
            raise BadInput(f"error rate must be above 0 and below 1, not {error_rate}")
        fewest = math.ceil(min(math.log(_DOUBT) / math.log1p(-error_rate), _MOST_NEEDED))
        self._require(error_rate, fewest)
        scores = np.array([*self.right, *self.wrong])
        order = np.argsort(-scores, kind="stable")
        scores = scores[order]
        errors = np.cumsum(order >= len(self.right))
        found = None
        for answers in range(fewest, len(scores) + 1):
            next_score = float(scores[answers]) if answers < len(scores) else 0.0
            if answers < len(scores) and next_score == scores[answers - 1]:
                continue  # no threshold is between the two
            if at_most(int(errors[answers - 1]), answers, error_rate) > _DOUBT:
                break
            found = math.nextafter(next_score, math.inf) if answers < len(scores) else 0.0
        if found is None:
            raise BadInput(
                f"held-out samples do not show an error rate of {_percent(error_rate)}: some of the most certain "
                f"answers to them are wrong; {self._remedy()}"
            )
        return found

    def _require(self, error_rate: float, fewest: int) -> None:
        """Raise `BadInput` if there are too few samples to show an error rate, or if they are not independent."""
        if not self.samples:
            raise BadInput(
                "there are no held-out samples yet to find a threshold with: teach 20 of a class and sleep, or give a "
                "threshold"
            )
        if not self.independent:
            raise BadInput(
                "an error rate needs held-out samples that decided nothing about the last sleep: teach 40 samples of "
                "ten classes and sleep again, or give a threshold"
            )
        if self.samples < fewest:
            raise BadInput(
                f"{self.samples} held-out samples cannot show an error rate of {_percent(error_rate)}: {fewest} or "
                f"more are needed, about half of all that are held out; {self._remedy()}"
            )

    def _remedy(self) -> str:
        least = self.least_error_rate
        shown = "" if least is None else f"ask for {_percent(least)} or more, "
        return f"{shown}teach more classes with 40 samples and sleep again, or give a threshold"

    def is_worse_than(self, other: Confidence, tolerance: float) -> bool:
        """Return whether the accuracy is lower by more than the tolerance plus one standard error of the difference."""
        if self.accuracy is None or other.accuracy is None:
            return False
        shares = [(self.accuracy, self.samples), (other.accuracy, other.samples)]
        standard_error = math.sqrt(sum(share * (1 - share) / samples for share, samples in shares))
        return other.accuracy - self.accuracy > tolerance + standard_error


def _fitted_temperature(logits: Scores, rows: npt.NDArray[np.integer[Any]]) -> float:
    """Return the temperature with the lowest loss, regularised towards 1; 1 for few samples."""
    if len(rows) < _FEWEST_SAMPLES:
        return 1.0
    losses = [
        len(rows) * _loss(logits / temperature, rows) + _PRIOR_WEIGHT * np.log(temperature) ** 2
        for temperature in _TEMPERATURES
    ]
    return float(_TEMPERATURES[int(np.argmin(losses))])


def _certainty(scores: Scores, closeness: Scores) -> Scores:
    """Return the logarithm of closeness times the square root of the score, (B,)."""
    return np.asarray(0.5 * np.log(np.maximum(scores, _LEAST)) + np.log(np.maximum(closeness, _LEAST)))


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _ascending(scores: Scores) -> tuple[float, ...]:
    return tuple(np.sort(scores).round(5).tolist())


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(map(float, values))


def softmax(logits: Scores) -> Scores:
    """Return the probabilities (B, K) that logits (B, K) stand for."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _loss(logits: Scores, rows: npt.NDArray[np.integer[Any]]) -> float:
    """Return the mean negative log-likelihood."""
    top = logits.max(axis=1, keepdims=True)
    log_sum = top[:, 0] + np.log(np.exp(logits - top).sum(axis=1))
    return float((log_sum - logits[np.arange(len(rows)), rows]).mean())
