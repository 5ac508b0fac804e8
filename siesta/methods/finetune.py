"""Fine-tuning, the floor: a step on each new sample, nothing kept, nothing rehearsed."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from siesta.batch import Batch
from siesta.contracts import Codes
from siesta.methods.online import Online
from siesta.methods.settings import OnlineSettings

__all__ = ["Finetune"]


class Finetune(Online[OnlineSettings]):
    """One step of top and output on the new sample alone, at a fixed rate; what came before is forgotten."""

    codec: ClassVar[str] = "opq"
    buffered: ClassVar[bool] = False
    Settings = OnlineSettings

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:  # noqa: ARG002
        """The new sample."""
        rows = torch.tensor([row])
        return Batch(self.decode(code), rows, rows)
