"""Where an interrupted run goes on: one file with everything, written whole or not at all, and never unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from siesta.errors import BadInput, Damaged
from siesta.store.files import disk_errors

__all__ = ["check_same", "load_run", "replace_file", "save_run"]

_STATE = "state"
_HASHED = {"pictures": "other pictures", "start": "other weights to start from"}  # settings that are only hashes


def save_run(path: Path, method: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Writes a run: the method's tensors, the optimizer's momentum, and plain values."""
    tensors = {f"method.{name}": tensor.cpu().contiguous() for name, tensor in method.state_dict().items()}
    for place, weights in enumerate(_parameters(optimizer)):
        momentum = optimizer.state[weights].get("momentum_buffer")
        if momentum is not None:
            tensors[f"momentum.{place}"] = momentum.cpu().contiguous()
    replace_file(path, save(tensors, metadata={_STATE: json.dumps(state)}))


def load_run(
    path: Path, method: nn.Module, optimizer: torch.optim.Optimizer, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Puts a run back as it was; returns its plain values, whose "settings" must be these."""
    try:
        with safe_open(path, "pt") as file:
            state: dict[str, Any] = json.loads(file.metadata()[_STATE])
            check_same(path, state["settings"], settings)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        method.load_state_dict(_part("method.", tensors))
    except (SafetensorError, OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: remove it to begin anew") from error
    parameters = list(_parameters(optimizer))
    for place, momentum in _part("momentum.", tensors).items():
        weights = parameters[int(place)]
        optimizer.state[weights]["momentum_buffer"] = torch.empty_like(weights).copy_(momentum)
    return state


def check_same(path: Path, made: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuses what was made with other settings."""
    for name, value in asked.items():
        if made.get(name) != value:
            words = f"{name.replace('_', ' ')} {made.get(name)}, not {value}"
            raise BadInput(
                f"{path} was made with {_HASHED.get(name, words)}: give the same, remove it, or choose another name"
            )


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all; what was there before stays until then."""
    new = path.with_name(f"{path.name}.new")
    with disk_errors(path):
        try:
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)


def _part(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [weights for group in optimizer.param_groups for weights in group["params"]]
