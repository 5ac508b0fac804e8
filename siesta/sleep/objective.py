"""What a training minimises: its loss, over which parameters, and how batch norms behave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.errors import BadInput
from siesta.sleep.batch import Batch
from siesta.sleep.cosine_output import CosineOutput

__all__ = ["Loss", "Norms", "Objective", "ParameterChoice", "all_parameters", "cross_entropy"]

Loss = Callable[[Batch, Tensor, Tensor], Tensor]
"""(batch, z (B, D) before dropout, logits (B, K)) -> the mean loss, a scalar."""

Norms = Literal["frozen", "live"]
"""Batch norms use their running statistics, or those of the batch, which also update the running ones."""

ParameterChoice = Callable[[nn.Sequential, CosineOutput], Iterable[nn.Parameter]]
"""(top, output) -> the parameters of either that are trained; the others keep their values."""

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def cross_entropy(batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
    """Return the cross-entropy of logits (B, K); for mixed pairs that of either label, weighted by its share."""
    del features
    loss = F.cross_entropy(logits, batch.rows)
    if batch.share == 1:
        return loss
    return batch.share * loss + (1 - batch.share) * F.cross_entropy(logits, batch.second_rows)


def all_parameters(top: nn.Sequential, output: CosineOutput) -> Iterator[nn.Parameter]:
    """Yield every parameter of top and output."""
    yield from top.parameters()
    yield from output.parameters()


@dataclass(frozen=True)
class Objective:
    """What a training minimises; the defaults are those of a sleep.

    Attributes:
        loss: What is minimised.
        norms: "frozen" suits a pretrained top: the statistics of its batch norms stay, their affine parameters learn.
            "live" suits a top that is trained from scratch. Norms whose parameters are not trained stay frozen.
        parameters: The parameters that are trained.

    Example:
        >>> Objective(norms="live", parameters=lambda top, output: [*top[-1].parameters(), *output.parameters()]).norms
        'live'
    """

    loss: Loss = cross_entropy
    norms: Norms = "frozen"
    parameters: ParameterChoice = all_parameters

    def __post_init__(self) -> None:
        if self.norms not in get_args(Norms):
            raise BadInput(f"there is no norm mode '{self.norms}': choose one of {', '.join(get_args(Norms))}")

    def prepared(self, top: nn.Sequential) -> nn.Sequential:
        """Return the network to train in place of `top`, in eval mode; it shares all parameters and buffers."""
        top.eval()
        return with_frozen_norms(top) if self.norms == "frozen" else top

    def select(self, top: nn.Sequential, output: CosineOutput) -> None:
        """Let gradients flow to the parameters that are trained, and to no others."""
        trained = {id(parameter) for parameter in self.parameters(top, output)}
        for parameter in all_parameters(top, output):
            parameter.requires_grad_(id(parameter) in trained)
        if not any(parameter.requires_grad for parameter in all_parameters(top, output)):
            raise BadInput("no parameter of top and output is trained: let `parameters` return at least one of them")

    def live_norms(self, top: nn.Sequential) -> list[nn.Module]:
        """Return the batch norms of `top`, after `select`, that use and update the statistics of batches."""
        if self.norms == "frozen":
            return []
        norms = [module for module in top.modules() if isinstance(module, _BATCH_NORMS)]
        return [norm for norm in norms if all(parameter.requires_grad for parameter in norm.parameters())]
