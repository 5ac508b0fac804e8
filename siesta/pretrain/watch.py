"""How to see that a network says the same of every picture."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.pretrain import ranks
from siesta.pretrain.contract import Outcome

__all__ = ["collapse", "feature_std", "prototype_entropy", "watched"]

_LEAST_STD = 0.1
_LEAST_ENTROPY = 0.1


def feature_std(embedding: Tensor) -> float:
    """Spread of embeddings (B, D) brought to length one: 1 in all directions, 0 all the same (Chen & He 2021)."""
    rows = F.normalize(ranks.gathered(embedding))
    return float(rows.std(dim=0, correction=0).mean()) * math.sqrt(rows.shape[1])


def prototype_entropy(shares: Tensor) -> float:
    """How evenly a batch (B, K) uses its prototypes: 1 all of them alike, 0 a single one."""
    used = ranks.gathered(shares).mean(dim=0)
    return float(torch.special.entr(used).sum()) / math.log(len(used))


def watched(outcome: Outcome) -> dict[str, float]:
    """What is watched of a step, on all ranks alike."""
    found = {}
    if outcome.embedding is not None:
        found["feature_std"] = feature_std(outcome.embedding)
    if outcome.shares is not None and outcome.shares.shape[1] > 1:
        found["prototype_entropy"] = prototype_entropy(outcome.shares)
    return found


def collapse(found: dict[str, float]) -> str | None:
    """What looks like collapse, in words."""
    if found.get("feature_std", 1.0) < _LEAST_STD:
        return f"collapse: all pictures look alike (feature std {found['feature_std']:.3f})"
    if found.get("prototype_entropy", 1.0) < _LEAST_ENTROPY:
        return f"collapse: few prototypes are used (entropy {found['prototype_entropy']:.3f})"
    return None
