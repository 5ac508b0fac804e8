"""The weights of torch networks as NumPy arrays, in which they are stored and inference engines take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

__all__ = ["load_arrays", "state_arrays", "to_arrays"]


def to_arrays(state: Mapping[str, Tensor]) -> dict[str, npt.NDArray[Any]]:
    """Return the tensors of a state dict as arrays, which share their memory if they are on the CPU."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}


def state_arrays(network: nn.Module) -> dict[str, npt.NDArray[Any]]:
    """Return the weights and buffers of a network by name; see `to_arrays`."""
    return to_arrays(network.state_dict())


def load_arrays(network: nn.Module, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Copy weights and buffers into a network."""
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
