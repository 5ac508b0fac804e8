"""Prediction: from codes to labels with calibrated scores."""

from __future__ import annotations

import numpy as np

from siesta.contracts import Codes, Prediction
from siesta.errors import BadInput
from siesta.learner.state import BATCH_SIZE, LearnerState
from siesta.sleep.calibration import UNKNOWN, Scores, softmax

__all__ = ["predict_codes"]


def predict_codes(
    state: LearnerState, codes: Codes, top: int, threshold: float | None, error_rate: float | None
) -> list[Prediction]:
    """Return the `top` best labels for each code; see `Siesta.predict_encoded`."""
    if not len(state.head):
        raise BadInput("this learner was not taught anything yet: teach it with learn_one or `siesta learn`")
    if top < 1:
        raise BadInput(f"top is {top}: ask for at least one label")
    minimum = _minimum_score(state, threshold, error_rate)
    state.validate_codes(codes)
    predictions: list[Prediction] = []
    labels = [state.labels[class_id] for class_id in state.classifier.class_ids.tolist()]
    for start in range(0, len(codes), BATCH_SIZE):
        ranking, familiarity = _ranked(state, codes[start : start + BATCH_SIZE], labels, top)
        for ranked, familiar in zip(ranking, familiarity.tolist(), strict=True):
            label, score = ranked[0]
            known = score > 0 and familiar >= minimum  # the score of a label that was rejected for the image is 0
            predictions.append(Prediction(label if known else UNKNOWN, score, ranked, known, familiar))
    return predictions


def _minimum_score(state: LearnerState, threshold: float | None, error_rate: float | None) -> float:
    """Return the familiarity below which the label is "unknown"."""
    if error_rate is not None:
        return state.confidence.threshold(error_rate)
    minimum = threshold or 0.0
    if not 0 <= minimum <= 1:
        raise BadInput(f"threshold is {threshold}: give a number from 0 to 1")
    return minimum


def _ranked(
    state: LearnerState, codes: Codes, labels: list[str], top: int
) -> tuple[list[list[tuple[str, float]]], Scores]:
    """Return the best labels with their probabilities for each code, best first, and its familiarity (B,)."""
    with state.pipeline.single_threaded():
        features = state.pipeline.features(codes)
        logits = state.classifier.logits(features)
    probabilities = softmax(logits / state.confidence.temperature)
    if state.rejections:
        state.rejections.embed(state.store, state.pipeline)
        centre, class_ids = state.head.weights().mean(axis=0), state.classifier.class_ids
        probabilities = probabilities * state.rejections.factors(features, centre, class_ids)
    best = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]
    closeness = state.classifier.closeness(features, best[:, 0]) if state.confidence.needs_closeness else None
    ranking = [
        [(labels[row], float(scores[row])) for row in rows.tolist()]
        for rows, scores in zip(best, probabilities, strict=True)
    ]
    return ranking, state.confidence.familiarity(probabilities.max(axis=1), closeness)
