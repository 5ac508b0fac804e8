"""How far the scores of a learner can be trusted, judged by samples that it never rehearses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = ["UNKNOWN", "Confidence"]

UNKNOWN = "unknown"
"""The label of an answer that is too unsure to be given."""

_ENOUGH = 20  # held-out samples: below that, scores are left as they are
_DOUBT = 2.0  # how much it takes to leave a temperature of one: a few right answers do not make certainty
_TEMPERATURES = np.geomspace(0.05, 20.0, 241)

Scores = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Confidence:
    """What held-out samples say of scores.

    Attributes:
        temperature: By which logits are divided, so that of answers with a score of p a share of p is right.
        right: Scores of right answers after that, ascending.
        wrong: Scores of wrong answers, ascending.

    Example:
        >>> Confidence(1.0, right=(0.4, 0.8, 0.9), wrong=(0.3, 0.5)).threshold(0.1)
        0.8
    """

    temperature: float
    right: tuple[float, ...]
    wrong: tuple[float, ...]

    @classmethod
    def of(cls, logits: Scores, truth: npt.NDArray[np.integer[Any]]) -> Confidence:
        """From logits (B, K) of samples and the rows that are right (B,)."""
        temperature = 1.0
        if len(truth) >= _ENOUGH:
            losses = [len(truth) * _loss(logits / some, truth) + _DOUBT * np.log(some) ** 2 for some in _TEMPERATURES]
            temperature = float(_TEMPERATURES[int(np.argmin(losses))])
        scores = _softmax(logits / temperature)
        best, correct = scores.max(axis=1), scores.argmax(axis=1) == truth
        parts = (np.sort(best[some]).round(5).tolist() for some in (correct, ~correct))
        return cls(temperature, *(tuple(part) for part in parts))

    @classmethod
    def from_state(cls, state: Mapping[str, Any] | None) -> Confidence:
        """What `state` gave; one that knows nothing, of None."""
        try:
            return cls(1.0, (), ()) if state is None else cls(**{name: _read(state[name]) for name in _NAMES})
        except (KeyError, TypeError):
            return cls(1.0, (), ())  # reports are not vouched for

    def state(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @property
    def asked(self) -> int:
        """Held-out samples that it stands on."""
        return len(self.right) + len(self.wrong)

    @property
    def accuracy(self) -> float | None:
        """Share of right answers to them; None without such samples."""
        return len(self.right) / self.asked if self.asked else None

    def threshold(self, error_rate: float) -> float:
        """The lowest score at which, of held-out samples with that or more, at most `error_rate` are wrong."""
        if not 0 <= error_rate < 1:
            raise BadInput(f"an error rate lies from 0 to below 1, not {error_rate}")
        if not self.asked:
            words = "teach 20 of a class and sleep, or give a threshold"
            raise BadInput(f"no samples are held out yet to judge scores by: {words}")
        right, wrong = np.array(self.right), np.array(self.wrong)
        for score in np.unique(np.concatenate([right, wrong])):
            errors, given = int((wrong >= score).sum()), int((wrong >= score).sum() + (right >= score).sum())
            if errors <= error_rate * given:
                return float(score)
        return 1.0


_NAMES = ("temperature", "right", "wrong")


def _read(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, (list, tuple)) else float(value)


def _softmax(logits: Scores) -> Scores:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _loss(logits: Scores, truth: npt.NDArray[np.integer[Any]]) -> float:
    """Mean negative log-likelihood."""
    top = logits.max(axis=1, keepdims=True)
    log_sum = top[:, 0] + np.log(np.exp(logits - top).sum(axis=1))
    return float((log_sum - logits[np.arange(len(truth)), truth]).mean())
