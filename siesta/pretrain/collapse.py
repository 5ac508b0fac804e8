"""Indicators of representation collapse: the network gives all images the same embedding."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.pretrain import distributed
from siesta.pretrain.contract import PretrainOutput

__all__ = ["collapse_indicators", "collapse_warning", "feature_std", "prototype_entropy"]

_MIN_FEATURE_STD = 0.1
_MIN_PROTOTYPE_ENTROPY = 0.1


def feature_std(embedding: Tensor) -> float:
    """Scaled standard deviation of L2-normalised embeddings (B, D): 1 if isotropic, 0 if equal (Chen & He 2021)."""
    rows = F.normalize(distributed.all_gather(embedding))
    return float(rows.std(dim=0, correction=0).mean()) * math.sqrt(rows.shape[1])


def prototype_entropy(assignments: Tensor) -> float:
    """Normalised entropy of a batch's mean assignment (B, K): 1 if all prototypes are used equally, 0 if only one."""
    mean_assignment = distributed.all_gather(assignments).mean(dim=0)
    return float(torch.special.entr(mean_assignment).sum()) / math.log(len(mean_assignment))


def collapse_indicators(output: PretrainOutput) -> dict[str, float]:
    """Return the indicators that a method's output allows; they are the same on all ranks."""
    indicators = {}
    if output.embedding is not None:
        indicators["feature_std"] = feature_std(output.embedding)
    if output.assignments is not None and output.assignments.shape[1] > 1:
        indicators["prototype_entropy"] = prototype_entropy(output.assignments)
    return indicators


def collapse_warning(indicators: dict[str, float]) -> str | None:
    """Return a warning if an indicator is below its threshold, and None otherwise."""
    if indicators.get("feature_std", 1.0) < _MIN_FEATURE_STD:
        return f"collapse: all images look alike (feature std {indicators['feature_std']:.3f})"
    if indicators.get("prototype_entropy", 1.0) < _MIN_PROTOTYPE_ENTROPY:
        return f"collapse: few prototypes are used (entropy {indicators['prototype_entropy']:.3f})"
    return None
