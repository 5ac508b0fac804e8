"""Data-parallel training over several processes that torchrun starts.

Each rank holds one part of the batch, in the order of ranks. `all_gather` is for what needs no gradient (queues,
assignments), `all_reduce_sum` for what does (statistics). DDP averages the gradients of all ranks: for losses that are
means over a rank's part, or that are equal on all ranks, this is the gradient of the loss over the whole batch. With
one process, every function here does nothing or returns its input.
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
    "DistributedBatchNorm",
    "all_gather",
    "all_reduce_mean",
    "all_reduce_sum",
    "barrier",
    "convert_batch_norms",
    "is_main_process",
    "is_multi_process",
    "local_chunk",
    "process_group",
    "rank",
    "world_size",
    "wrap_ddp",
]

_TIMEOUT = timedelta(days=7)  # one rank copies all images while the others wait; torchrun ends them if it dies


@contextlib.contextmanager
def process_group() -> Iterator[torch.device]:
    """Join the process group of torchrun, if there is one, and leave it at the end; yield the device of this rank."""
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if not is_multi_process() or dist.is_initialized():
        yield device
        return
    with _lost_process_reported():
        dist.init_process_group("nccl" if cuda else "gloo", timeout=_TIMEOUT)
    try:
        yield device
    finally:
        dist.destroy_process_group()


def world_size() -> int:
    """Return the number of ranks."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Return the index of this process."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_main_process() -> bool:
    """Return whether this process prints and writes; known before the process group is joined."""
    return int(os.environ.get("RANK", 0)) == 0


def is_multi_process() -> bool:
    """Return whether torchrun has started several processes; known before the process group is joined."""
    return int(os.environ.get("WORLD_SIZE", 1)) > 1


def barrier() -> None:
    """Wait for all ranks; where one has failed, it reports its error and the others only that it stopped."""
    if world_size() == 1:
        return
    with _lost_process_reported():
        dist.barrier()


@contextlib.contextmanager
def _lost_process_reported() -> Iterator[None]:
    """Say that another rank has stopped where torch reports its closed connections."""
    try:
        yield
    except RuntimeError as error:
        raise BadInput("another process of this run has stopped: see its error message") from error


def local_chunk(rows: Tensor) -> Tensor:
    """Return this rank's part of gathered rows: (N, ...) -> (N / ranks, ...)."""
    return rows.chunk(world_size())[rank()]


@torch.no_grad()
def all_gather(rows: Tensor) -> Tensor:
    """Return the rows of all ranks in the order of ranks, detached: (B, ...) -> (ranks * B, ...)."""
    if world_size() == 1:
        return rows.detach()
    chunks = [torch.empty_like(rows) for _ in range(world_size())]
    dist.all_gather(chunks, rows.detach().contiguous())
    return torch.cat(chunks)


class _AllReduceSum(torch.autograd.Function):
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


def all_reduce_sum(values: Tensor) -> Tensor:
    """Return the sum over all ranks; gradients pass through."""
    if world_size() == 1:
        return values
    total: Tensor = _AllReduceSum.apply(values)  # type: ignore[no-untyped-call]
    return total


def all_reduce_mean(value: float) -> float:
    """Return the mean of a number over all ranks."""
    if world_size() == 1:
        return value
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    return float(all_reduce_sum(torch.tensor(value, dtype=torch.float64, device=device))) / world_size()


class DistributedBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch norm with the statistics of all ranks; torch's SyncBatchNorm needs GPUs."""

    @classmethod
    def from_batch_norm(cls, norm: nn.BatchNorm1d | nn.BatchNorm2d) -> DistributedBatchNorm:
        """Return a norm with the settings and state of a norm of torch."""
        synced = cls(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        synced.load_state_dict(norm.state_dict())
        return synced.requires_grad_(norm.affine and norm.weight.requires_grad)

    def _check_input_dim(self, input: Tensor) -> None:  # noqa: A002
        if input.dim() < 2:
            raise ValueError(f"batch norm takes (B, C, ...), not {tuple(input.shape)}")

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, ...) -> (B, C, ...)."""
        if not self.training:
            return super().forward(x)
        dims = [dim for dim in range(x.dim()) if dim != 1]
        count = all_reduce_sum(x.new_tensor(float(x.numel() // x.shape[1])))
        mean = all_reduce_sum(x.sum(dim=dims)) / count
        shape = 1, -1, *[1] * (x.dim() - 2)
        centred = x - mean.view(shape)
        variance = all_reduce_sum(centred.square().sum(dim=dims)) / count
        self._update_running_stats(mean.detach(), variance.detach() * count / (count - 1).clamp_min(1))
        out = centred * torch.rsqrt(variance + self.eps).view(shape)
        return out * self.weight.view(shape) + self.bias.view(shape) if self.affine else out

    def _update_running_stats(self, mean: Tensor, variance: Tensor) -> None:
        if self.running_mean is not None and self.running_var is not None and self.momentum is not None:
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance, self.momentum)


def wrap_ddp(module: nn.Module) -> nn.Module:
    """Wrap a module so that gradients are averaged over ranks; its buffers are equal on all ranks without help."""
    if world_size() == 1:
        return module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # newer torch renames it, older torch has only this name
        return DistributedDataParallel(module, broadcast_buffers=False)


def convert_batch_norms(module: nn.Module) -> None:
    """Replace every batch norm inside a module by one with the statistics of all ranks; do nothing with one rank."""
    if world_size() == 1:
        return
    for name, child in module.named_children():
        if isinstance(child, (nn.BatchNorm1d, nn.BatchNorm2d)):
            setattr(module, name, DistributedBatchNorm.from_batch_norm(child))
        else:
            convert_batch_norms(child)
