"""DyTox (Douillard et al. 2022): a transformer with a token and an output for each step, and a divergence output.

It uses its own transformer, from random weights; of the learner's network only the normalisation of pixels is used.
Images are cropped, flipped and changed by RandAugment. The authors' stochastic depth and label smoothing are left out,
and batches of a step are not repeated; mixup, which their later version adds, is not part of the paper's method.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from siesta.errors import BadInput
from siesta.methods.batch.distillation import old_logits_of
from siesta.methods.batch.expanding import auxiliary_rows
from siesta.methods.batch.heads import seeded
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import GrowingNetwork
from siesta.methods.batch.settings import BatchSettings
from siesta.methods.batch.step import Step
from siesta.methods.batch.transformer import TaskHeads, TaskTransformer, binary_loss
from siesta.rng import Purpose, derived_seed
from siesta.sleep.batch import Batch
from siesta.sleep.schedule import cosine

__all__ = ["DyTox", "DyToxSettings", "dytox_loss"]


def dytox_loss(
    logits: Tensor, rows: Tensor, old_logits: Tensor | None, divergence: Tensor | None, weight: float
) -> Tensor:
    """Return the binary cross-entropy, a distillation, and the divergence loss (section 3.3).

    Args:
        logits: (B, K).
        rows: (B,).
        old_logits: Of the previous network, (B, K'); None in the first step.
        divergence: Logits of "old" and each new class from the newest token's embedding; None in the first step.
        weight: Of the divergence loss.
    """
    loss = binary_loss(logits, rows)
    if old_logits is not None:
        known = old_logits.shape[1]
        share = known / logits.shape[1]
        new, old = (values.log_softmax(dim=1) for values in (logits[:, :known], old_logits))
        loss = (1 - share) * loss + share * (old.exp() * (old - new)).mean()  # over images and classes
    if divergence is not None:
        known = logits.shape[1] - divergence.shape[1] + 1
        loss = loss + weight * binary_loss(divergence, auxiliary_rows(rows, known))
    return loss


class _Output(nn.Module):
    """The heads, and the divergence head, which only training needs."""

    def __init__(self, main: TaskHeads, divergence: nn.Module) -> None:
        super().__init__()
        self.main = main
        self.divergence = divergence

    def forward(self, embedded: Tensor) -> Tensor:
        """(B, T, d) -> (B, K)."""
        logits: Tensor = self.main(embedded)
        return logits


class DyToxSettings(BatchSettings):
    """The authors' values for CIFAR-100 and ImageNet, which differ in the size of patches only.

    Attributes:
        width: Length of a token.
        depth: Blocks, of which the last is the steps' own.
        heads: Of each attention.
        divergence: Weight of the divergence loss.
        tuning_epochs: Epochs on balanced exemplars, in which the shared blocks do not change.
        tuning_lr: Learning rate of that.
    """

    epochs: int = Field(default=500, ge=1)
    lr: float = Field(default=1.25e-4, gt=0)
    weight_decay: float = Field(default=1e-6, ge=0, le=1)
    first_weight_decay: float | None = Field(default=None, ge=0, le=1)
    schedule: Literal["steps", "cosine"] = "cosine"
    augment: Literal["none", "crop_flip", "shift_flip", "rand_augment"] = "rand_augment"
    width: int = Field(default=384, ge=1)
    depth: int = Field(default=6, ge=2)
    heads: int = Field(default=12, ge=1)
    divergence: float = Field(default=0.1, ge=0)
    tuning_epochs: int = Field(default=20, ge=1)
    tuning_lr: float = Field(default=1.25e-5, gt=0)

    def further_updates(self, step: int, samples: int, kept: int) -> int:
        """Return the updates on balanced exemplars."""
        return self.tuning_epochs * min(2 * kept, samples) if step else 0


class DyTox(BatchLearner[DyToxSettings]):
    """Adds a token and a head for each step; tokens and heads of earlier steps stay as they are."""

    Settings: ClassVar[type[BatchSettings]] = DyToxSettings

    def make_network(self) -> GrowingNetwork:
        """Return the transformer without tokens."""
        settings = self.settings
        if settings.width % settings.heads:
            raise BadInput(f"a width of {settings.width} is no multiple of {settings.heads} heads: change one of them")
        with seeded(derived_seed(self.seed, Purpose.METHOD_GROWTH)):
            top = TaskTransformer(self.workspace.pipeline.image_size, settings.width, settings.depth, settings.heads)
        return _TokenNetwork(top, TaskHeads(settings.width))

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Train all but old tokens and heads, then all but the shared blocks on balanced exemplars."""
        settings, top, heads = self.settings, self.network.top, self.network.output
        assert isinstance(top, TaskTransformer) and isinstance(heads, TaskHeads)
        with seeded(derived_seed(self.seed, Purpose.METHOD_GROWTH, step.classes)):
            output = _Output(heads, heads.make_head(step.new + 1))
        diverges = previous is not None and step.new > 0

        def loss(batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
            divergence = output.divergence(features[:, -1]) if diverges else None
            old_logits = old_logits_of(previous, batch.latents)
            return dytox_loss(logits, batch.rows, old_logits, divergence, settings.divergence)

        own = [*top.decoder.parameters(), top.tokens[-1], *heads.heads[-1].parameters()]
        newest = [*top.encoder_parameters(), *own, *(output.divergence.parameters() if diverges else ())]
        main = {"loss": loss, "parameters": newest, "others": [previous], "optimizer": "adamw", "schedule": cosine}
        self.train_stage(self.training(step, output=output, **main))
        if diverges:
            tuning = {
                "ids": self.balanced(step),
                "epochs": settings.tuning_epochs,
                "lr": settings.tuning_lr,
                "schedule": lambda _fraction, _batch=0.0: 1.0,
                "loss": lambda batch, _features, logits: binary_loss(logits, batch.rows),
                "parameters": [*top.decoder.parameters(), *top.tokens, *heads.parameters()],
                "optimizer": "adamw",
            }
            self.train_stage(self.training(step, **tuning))

    def _start_from_base(self) -> None:
        """Learn the images of a base initialisation in the first step, as its network is of no use here."""


class _TokenNetwork(GrowingNetwork):
    top: TaskTransformer
    output: TaskHeads

    def grow(self, classes: int) -> None:
        """Add a token and a head."""
        self.top.add_token()
        self.output.grow(classes)
