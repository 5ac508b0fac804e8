"""Weights of torch networks as arrays, and back."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from siesta.backbones.arrays import load_arrays, state_arrays


def network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def test_arrays_are_the_state_dict_in_any_memory_layout() -> None:
    arrays, state = state_arrays(network(0)), network(0).state_dict()
    assert list(arrays) == list(state)
    assert all(np.array_equal(arrays[name], tensor.numpy()) for name, tensor in state.items())


def test_loaded_arrays_are_copied_even_if_they_are_read_only() -> None:
    other = network(1)
    arrays = state_arrays(network(0))
    for array in arrays.values():
        array.setflags(write=False)
    load_arrays(other, arrays)
    assert all(np.array_equal(array, arrays[name]) for name, array in state_arrays(other).items())
    with torch.no_grad():
        next(other.parameters()).zero_()
    assert arrays["0.weight"].any()
