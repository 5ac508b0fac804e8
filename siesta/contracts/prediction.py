"""What a learner predicts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Prediction"]


@dataclass(frozen=True)
class Prediction:
    """The labels predicted for an image.

    Attributes:
        label: The best label, or "unknown" if its familiarity is below the threshold.
        score: The probability of the best label.
        top: The best labels with their probabilities, best first.
        known: False if the familiarity is below the threshold.
        familiarity: How certain the best label is and how familiar the image looks, 0..1; the score if the learner has
            too few held-out samples, or a cosine head.
    """

    label: str
    score: float
    top: list[tuple[str, float]]
    known: bool = True
    familiarity: float = 1.0
