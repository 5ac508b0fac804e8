"""Fine-tuning, the lower bound: one step on each new sample, no memory and no rehearsal."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from siesta.contracts import Codes
from siesta.methods.online import OnlineMethod
from siesta.methods.settings import OnlineSettings
from siesta.sleep.batch import Batch

__all__ = ["Finetune"]


class Finetune(OnlineMethod[OnlineSettings]):
    """One step of top and output on the new sample alone, at a fixed learning rate; older classes are forgotten."""

    codec: ClassVar[str] = "opq"
    buffered: ClassVar[bool] = False
    Settings = OnlineSettings

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:  # noqa: ARG002
        """Return a batch of the new sample."""
        rows = torch.tensor([row])
        return Batch(self.decode(code), rows, rows)
