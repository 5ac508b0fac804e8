"""BiC (Wu et al. 2019, "Large Scale Incremental Learning"): distillation, then a correction of new classes' logits.

The correction has two parameters, alpha and beta: the logits of the step's classes become alpha times themselves plus
beta. It is fitted on images that are held out from training: a tenth of the exemplars, and as many of each new class.
The paper fits it by SGD; here it is the exact minimum of the same loss, with weight decay, which needs one forward pass
for each held-out image. Of an old class with fewer than ten exemplars one is held out.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from siesta.contracts import Ids
from siesta.methods.batch.distillation import distilled_cross_entropy, old_logits_of
from siesta.methods.batch.heads import LinearHead
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import GrowingNetwork
from siesta.methods.batch.settings import BatchSettings, Share, Shares
from siesta.methods.batch.step import Step
from siesta.rng import Purpose, generator
from siesta.sleep.batch import Batch

__all__ = ["BiC", "BiCSettings", "BiasedHead", "fit_bias"]

_NEWTON_STEPS = 50
_CONVERGED = 1e-10


def fit_bias(
    logits: npt.NDArray[np.floating], rows: npt.NDArray[np.int64], known: int, weight_decay: float
) -> tuple[float, float]:
    """Return the alpha and beta that minimise the mean cross-entropy plus weight_decay / 2 (alpha^2 + beta^2).

    The loss is convex in both: Newton's method with halved steps finds the minimum.

    Args:
        logits: Of held-out images, (N, K).
        rows: Their classes, (N,).
        known: The first class whose logits are corrected.
        weight_decay: Above zero.
    """
    fixed = np.asarray(logits, dtype=np.float64)
    inputs = np.zeros((2, *fixed.shape))  # derivatives of the corrected logits by alpha and beta
    inputs[0, :, known:] = fixed[:, known:]
    inputs[1, :, known:] = 1
    base = fixed.copy()
    base[:, known:] = 0
    own = np.eye(fixed.shape[1])[rows]

    def evaluate(values: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        corrected = base + np.tensordot(values, inputs, 1)
        corrected -= corrected.max(axis=1, keepdims=True)
        shares = np.exp(corrected)
        totals = shares.sum(axis=1, keepdims=True)
        shares /= totals
        loss = (np.log(totals[:, 0]) - (own * corrected).sum(axis=1)).mean() + weight_decay / 2 * (values**2).sum()
        gradient = ((shares - own) * inputs).sum(axis=2).mean(axis=1) + weight_decay * values
        means = (shares * inputs).sum(axis=2)
        second = np.einsum("nk,ank,bnk->ab", shares, inputs, inputs) - means @ means.T
        return float(loss), gradient, second / len(fixed) + weight_decay * np.eye(2)

    values = np.array([1.0, 0.0])
    loss, gradient, curvature = evaluate(values)
    for _ in range(_NEWTON_STEPS):
        move, share = np.linalg.solve(curvature, gradient), 1.0
        while share > _CONVERGED and evaluate(values - share * move)[0] > loss:
            share /= 2
        values = values - share * move
        previous, (loss, gradient, curvature) = loss, evaluate(values)
        if previous - loss < _CONVERGED:
            break
    return float(values[0]), float(values[1])


class BiasedHead(LinearHead):
    """Linear logits, of which those of each step's classes are multiplied by an alpha and added to a beta."""

    alpha: Tensor
    beta: Tensor

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self.register_buffer("alpha", torch.ones(0))  # of each class
        self.register_buffer("beta", torch.zeros(0))

    def forward(self, features: Tensor) -> Tensor:
        """(B, D) -> (B, K)."""
        return self.alpha * super().forward(features) + self.beta

    def grow(self, classes: int, features: int = 0) -> None:
        """Add rows without a correction."""
        super().grow(classes, features)
        self.alpha = torch.cat([self.alpha, torch.ones(classes)])
        self.beta = torch.cat([self.beta, torch.zeros(classes)])

    def correct(self, known: int, alpha: float, beta: float) -> None:
        """Correct the logits from row `known` on."""
        self.alpha[known:] = alpha
        self.beta[known:] = beta


class BiCSettings(BatchSettings):
    """Public code's values for CIFAR-100.

    Attributes:
        temperature: Of the distillation.
        held_out: Share of the exemplars that the correction is fitted on.
    """

    first_weight_decay: float | None = Field(default=None, ge=0, le=1)
    drops: Shares = (60 / 170, 100 / 170, 140 / 170)
    temperature: float = Field(default=2.0, gt=0)
    held_out: Share = 0.1


class BiC(BatchLearner[BiCSettings]):
    """Trains with distillation and corrects the bias towards new classes."""

    Settings: ClassVar[type[BatchSettings]] = BiCSettings

    def make_network(self) -> GrowingNetwork:
        """Return the backbone with an output that can be corrected."""
        return GrowingNetwork(self.body(), BiasedHead(self.features))

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Train on all but the held-out images, then fit the correction on these."""
        held_out = self._held_out(step) if step.known and step.new else np.zeros(0, dtype=np.int64)

        def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
            return distilled_cross_entropy(
                logits, batch.rows, old_logits_of(previous, batch.latents), self.settings.temperature
            )

        self.train_stage(self.training(step, ids=np.setdiff1d(step.ids, held_out), loss=loss, others=[previous]))
        if len(held_out):
            output = self.network.output
            assert isinstance(output, BiasedHead)
            logits = self.embed(held_out, self.network)
            decay = max(self.settings.weight_decay, _CONVERGED)
            output.correct(step.known, *fit_bias(logits, self.rows_of(held_out), step.known, decay))

    def _held_out(self, step: Step) -> Ids:
        """Return as many images of each class, drawn at random; at least one is left of a class that has several."""
        rows = self.rows_of(step.ids)
        sizes = np.bincount(rows, minlength=step.classes)
        count = max(int(self.settings.held_out * sizes[: step.known].min()), 1)
        rng = generator(self.seed, Purpose.METHOD_EXEMPLARS, self.workspace.seen)
        chosen = [rng.permutation(step.ids[rows == row])[: min(count, sizes[row] - 1)] for row in range(step.classes)]
        return np.sort(np.concatenate(chosen))
