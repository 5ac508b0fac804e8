"""Training on its way: one file with all that it takes to go on, written whole or not at all, and never unpickled."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from siesta.errors import BadInput, Damaged
from siesta.store.files import replace_file

__all__ = ["Halfway", "Learning", "check_same", "checked_run", "load_run", "save_run"]

_STATE = "state"
_HASHED = {"pictures": "other pictures", "start": "other weights to start from"}  # settings that are only hashes


def save_run(
    path: Path,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    others: Mapping[str, Tensor] | None = None,
) -> None:
    """Writes a run: what learns, what the optimizer remembers of it, plain values and other tensors."""
    tensors = {f"module.{name}": tensor.cpu().contiguous() for name, tensor in module.state_dict().items()}
    tensors |= {f"other.{name}": tensor.cpu().contiguous() for name, tensor in (others or {}).items()}
    for place, weights in enumerate(_parameters(optimizer)):
        for name, known in optimizer.state[weights].items():
            if known is not None:
                tensors[f"optimizer.{place}.{name}"] = known.cpu().contiguous()
    replace_file(path, save(tensors, metadata={_STATE: json.dumps(state)}))


def load_run(
    path: Path, module: nn.Module, optimizer: torch.optim.Optimizer, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Puts a run back as it was; returns its plain values, whose "settings" must be these, and other tensors."""
    state = checked_run(path, settings)
    with _readable(path):
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        module.load_state_dict(_part("module.", tensors))
    parameters = list(_parameters(optimizer))
    for key, known in _part("optimizer.", tensors).items():
        place, _, name = key.partition(".")
        weights = parameters[int(place)]
        like = torch.empty_like(weights) if known.shape == weights.shape else torch.empty_like(known)
        optimizer.state[weights][name] = like.copy_(known)
    return state, _part("other.", tensors)


def checked_run(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The plain values of a run; refuses one that was made with other settings."""
    with _readable(path):
        with safe_open(path, "pt") as file:
            state: dict[str, Any] = json.loads(file.metadata()[_STATE])
        check_same(path, state["settings"], settings)
    return state


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: remove it to begin anew") from error


def check_same(path: Path, made: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuses what was made with other settings."""
    for name, value in asked.items():
        if made.get(name) != value:
            words = f"{name.replace('_', ' ')} {made.get(name)}, not {value}"
            raise BadInput(
                f"{path} was made with {_HASHED.get(name, words)}: give the same, remove it, or choose another name"
            )


@dataclass(frozen=True)
class Learning:
    """All that changes from step to step, but for what is drawn; the tensors are changed in place."""

    module: nn.Module
    optimizer: torch.optim.Optimizer
    totals: Tensor
    noise: torch.Generator


class Halfway:
    """A file in which a long rehearsal is kept, so that after a kill the same call goes on and ends the same.

    It is written every few minutes. What was learned before is not learned again, but gone through once more: so all
    random streams are where they were.

    Attributes:
        seconds: Spent by those who went before.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], every: float = 120.0) -> None:
        """Takes a file to write, and what makes this rehearsal this one: that of another is passed over."""
        self._path, self._settings, self._every = path, settings, every
        self.seconds, self._written = 0.0, time.monotonic()
        self._start = self._written

    def load(self, learning: Learning) -> list[float]:
        """Brings what learns to where it was, if it ever got anywhere; returns the losses so far."""
        if not self._path.exists():
            return []
        try:
            state, others = load_run(self._path, learning.module, learning.optimizer, self._settings)
        except BadInput:
            return []
        learning.totals.copy_(others["totals"])
        learning.noise.set_state(others["noise"])
        self.seconds = state["seconds"]
        losses: list[float] = state["losses"]
        return losses

    def note(self, learning: Learning, losses: Iterable[float]) -> None:
        """Writes it, if it is time to."""
        now = time.monotonic()
        if now - self._written < self._every:
            return
        others = {"totals": learning.totals, "noise": learning.noise.get_state()}
        state = {"settings": self._settings, "losses": list(losses), "seconds": self.seconds + now - self._start}
        save_run(self._path, learning.module, learning.optimizer, state, others)
        self._written = time.monotonic()


def _part(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [weights for group in optimizer.param_groups for weights in group["params"]]
