"""Several processes that train as one: torchrun starts them, and what concerns the whole batch is summed over them.

Ranks hold the batch in pieces, one after the other. `gathered` is for what needs no gradient (queues, assignments),
`summed` for what does (statistics). DDP then takes the mean of all ranks' gradients: of losses that are means over a
piece, or that are the same on all ranks, this is the gradient of the one loss over the whole batch.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from siesta.errors import BadInput

__all__ = [
    "SharedNorm",
    "count",
    "gathered",
    "joined",
    "mean",
    "own",
    "rank",
    "several",
    "speaks",
    "summed",
    "together",
    "wait",
    "with_shared_norms",
]

_PATIENCE = timedelta(days=7)  # one rank copies all pictures while the others wait; torchrun ends them if it dies


@contextlib.contextmanager
def joined() -> Iterator[torch.device]:
    """Joins the processes that torchrun started, if it did, and leaves them in the end; yields this one's device."""
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if not several() or dist.is_initialized():
        yield device
        return
    dist.init_process_group("nccl" if cuda else "gloo", timeout=_PATIENCE)
    try:
        yield device
    finally:
        dist.destroy_process_group()


def count() -> int:
    """How many ranks there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is."""
    return dist.get_rank() if dist.is_initialized() else 0


def speaks() -> bool:
    """Whether this process talks for all of them; known before they have joined."""
    return int(os.environ.get("RANK", 0)) == 0


def several() -> bool:
    """Whether torchrun has started more than one; known before they have joined."""
    return int(os.environ.get("WORLD_SIZE", 1)) > 1


def wait() -> None:
    """Until all are here; one that fails alone says why, the others only that it did."""
    if count() == 1:
        return
    try:
        dist.barrier()
    except RuntimeError as error:  # its connections are closed
        raise BadInput("another process of this run has stopped: it says why") from error


def own(rows: Tensor) -> Tensor:
    """This rank's piece of what was gathered: (N, ...) -> (N / ranks, ...)."""
    return rows.chunk(count())[rank()]


@torch.no_grad()
def gathered(rows: Tensor) -> Tensor:
    """All ranks' rows, one rank after the other: (B, ...) -> (ranks * B, ...)."""
    if count() == 1:
        return rows.detach()
    pieces = [torch.empty_like(rows) for _ in range(count())]
    dist.all_gather(pieces, rows.detach().contiguous())
    return torch.cat(pieces)


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(_context: Any, values: Tensor) -> Tensor:
        total = values.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_context: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total


def summed(values: Tensor) -> Tensor:
    """The sum over all ranks, with its gradient."""
    if count() == 1:
        return values
    total: Tensor = _Summed.apply(values)  # type: ignore[no-untyped-call]
    return total


def mean(value: float) -> float:
    """The mean over all ranks."""
    if count() == 1:
        return value
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    return float(summed(torch.tensor(value, dtype=torch.float64, device=device))) / count()


class SharedNorm(nn.modules.batchnorm._BatchNorm):
    """Batch norm over all ranks' pictures; torch's own SyncBatchNorm wants GPUs."""

    def _check_input_dim(self, input: Tensor) -> None:  # noqa: A002
        if input.dim() < 2:
            raise ValueError(f"batch norm takes (B, C, ...), not {tuple(input.shape)}")

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, ...) -> (B, C, ...)."""
        if not self.training:
            return super().forward(x)
        places = [dim for dim in range(x.dim()) if dim != 1]
        number = summed(x.new_tensor(float(x.numel() // x.shape[1])))
        mean = summed(x.sum(dim=places)) / number
        shape = 1, -1, *[1] * (x.dim() - 2)
        centred = x - mean.view(shape)
        variance = summed(centred.square().sum(dim=places)) / number
        self._remember(mean.detach(), variance.detach() * number / (number - 1).clamp_min(1))
        out = centred * torch.rsqrt(variance + self.eps).view(shape)
        return out * self.weight.view(shape) + self.bias.view(shape) if self.affine else out

    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        if self.running_mean is not None and self.running_var is not None and self.momentum is not None:
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance, self.momentum)


def together(module: nn.Module) -> nn.Module:
    """The module with the mean of all ranks' gradients; its buffers are the same on all of them as it is."""
    if count() == 1:
        return module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # newer torch has another name for it, older ones only this
        return DistributedDataParallel(module, broadcast_buffers=False)


def with_shared_norms(module: nn.Module) -> None:
    """Replaces every batch norm inside by one over all ranks; does nothing when there is one."""
    if count() == 1:
        return
    for name, child in module.named_children():
        if isinstance(child, (nn.BatchNorm1d, nn.BatchNorm2d)):
            setattr(module, name, _shared(child))
        else:
            with_shared_norms(child)


def _shared(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> SharedNorm:
    shared = SharedNorm(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    shared.load_state_dict(norm.state_dict())
    return shared.requires_grad_(norm.affine and norm.weight.requires_grad)
