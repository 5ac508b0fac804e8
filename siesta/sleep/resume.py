"""Training that continues after a kill or an interrupt, from one file with all of its state that is never unpickled."""

from __future__ import annotations

import hashlib
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
from siesta.files import replace_file

__all__ = [
    "CHECKPOINT_SECONDS",
    "TrainingCheckpoint",
    "TrainingState",
    "check_same_settings",
    "load_run",
    "read_run_state",
    "save_run",
]

CHECKPOINT_SECONDS = 120.0
"""Time between two checkpoints of a rehearsal."""

_STATE = "state"
_SHA256 = "sha256"  # of the state and of all tensors
_HASHED_SETTINGS = {"pictures": "other images", "start": "other weights to start from"}  # hashes are not readable


def save_run(
    path: Path,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    others: Mapping[str, Tensor] | None = None,
) -> None:
    """Write the state of a training run.

    Args:
        path: The file to replace.
        module: What is trained.
        optimizer: Its state is kept too, such as momentum.
        state: Plain values, among them "settings".
        others: Further tensors.
    """
    tensors = {f"module.{name}": tensor.cpu().contiguous() for name, tensor in module.state_dict().items()}
    tensors |= {f"other.{name}": tensor.cpu().contiguous() for name, tensor in (others or {}).items()}
    for index, weights in enumerate(_parameters(optimizer)):
        for name, tensor in optimizer.state[weights].items():
            if tensor is not None:
                tensors[f"optimizer.{index}.{name}"] = tensor.cpu().contiguous()
    text = json.dumps(state)
    replace_file(path, save(tensors, metadata={_STATE: text, _SHA256: _digest(text, tensors)}))


def load_run(
    path: Path, module: nn.Module, optimizer: torch.optim.Optimizer, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Load what `save_run` wrote into module and optimizer.

    Args:
        path: The file.
        module: Loaded in place.
        optimizer: Loaded in place.
        settings: What the run's settings must be.

    Returns:
        The plain values and the further tensors.
    """
    state = read_run_state(path, settings)
    with _unreadable_as_damaged(path):
        tensors = _read_tensors(path)
        module.load_state_dict(_with_prefix("module.", tensors))
        parameters = list(_parameters(optimizer))
        for key, tensor in _with_prefix("optimizer.", tensors).items():
            index, _, name = key.partition(".")
            weights = parameters[int(index)]
            like = torch.empty_like(weights) if tensor.shape == weights.shape else torch.empty_like(tensor)
            optimizer.state[weights][name] = like.copy_(tensor)
    return state, _with_prefix("other.", tensors)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """Return all tensors of a file; raise ValueError if it has other bytes than were written."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    if _SHA256 in metadata and metadata[_SHA256] != _digest(metadata[_STATE], tensors):  # 0.1 wrote none
        raise ValueError("the checksum differs")
    return tensors


def _digest(state: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {list(tensors[name].shape)}".encode())
        digest.update(tensors[name].flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_run_state(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain values of a run; raise BadInput when it was made with other settings."""
    with _unreadable_as_damaged(path):
        with safe_open(path, "pt") as file:
            state: dict[str, Any] = json.loads(file.metadata()[_STATE])
        check_same_settings(path, state["settings"], settings)
    return state


@contextmanager
def _unreadable_as_damaged(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError, RuntimeError, LookupError, TypeError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: remove it to start from the beginning") from error


def check_same_settings(path: Path, used: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise BadInput when a file was made with other settings than those given."""
    for name, value in given.items():
        if used.get(name) != value:
            difference = f"{name.replace('_', ' ')} {used.get(name)}, not {value}"
            raise BadInput(
                f"{path} was made with {_HASHED_SETTINGS.get(name, difference)}: give the same, remove it, or choose "
                "another name"
            )


@dataclass(frozen=True)
class TrainingState:
    """All that a training step changes, except the random streams of NumPy; the tensors are changed in place.

    Attributes:
        module: What is trained.
        optimizer: With its state.
        totals: Of `RunningClassMeans`.
        dropout_rng: Generator of dropout.
    """

    module: nn.Module
    optimizer: torch.optim.Optimizer
    totals: Tensor
    dropout_rng: torch.Generator


class TrainingCheckpoint:
    """A file with the state of a rehearsal: after a kill or an interrupt the same call continues it and ends the same.

    The file is written every few minutes and, where epochs have a length, after each of them. Then the steps that were
    made before are gone through without learning, so that the random streams get to where they were.

    Attributes:
        seconds: Time that earlier processes spent.
    """

    def __init__(
        self, path: Path, settings: Mapping[str, Any], every: float | None = None, epoch: int | None = None
    ) -> None:
        """Use the file `path`.

        Args:
            path: The file; its folder exists.
            settings: Plain values that identify the rehearsal; the file of another one is ignored.
            every: Seconds between two writes; None takes `CHECKPOINT_SECONDS`.
            epoch: Steps of an epoch, after which the file is written too; None for a training without epochs.
        """
        self.seconds = 0.0
        self._epoch = epoch
        self._steps = 0
        self._path = path
        self._settings = settings
        self._every = CHECKPOINT_SECONDS if every is None else every
        self._start = time.monotonic()
        self._written = self._start

    def identify(self, settings: Mapping[str, Any]) -> None:
        """Let these plain values identify the training too; call it before `load`."""
        self._settings = {**self._settings, **settings}

    def remove(self) -> None:
        """Remove the file, when its training is complete or will not be continued."""
        self._path.unlink(missing_ok=True)

    def load(self, training: TrainingState) -> list[float]:
        """Load the state, if the file has one, and return the losses of the steps so far; time counts from here."""
        self._start = time.monotonic()
        self._written = self._start
        if not self._path.exists():
            return []
        try:
            state, others = load_run(self._path, training.module, training.optimizer, self._settings)
        except BadInput:
            return []
        training.totals.copy_(others["totals"])
        training.dropout_rng.set_state(others["noise"])
        self.seconds = state["seconds"]
        losses: list[float] = state["losses"]
        self._steps = len(losses)
        return losses

    def save_if_due(self, training: TrainingState, losses: Iterable[float]) -> None:
        """Write the state and the losses of all steps, unless it was written lately and no epoch ends."""
        now = time.monotonic()
        self._steps += 1
        ends_epoch = self._epoch is not None and self._steps % self._epoch == 0
        if now - self._written < self._every and not ends_epoch:
            return
        others = {"totals": training.totals, "noise": training.dropout_rng.get_state()}
        state = {"settings": self._settings, "losses": list(losses), "seconds": self.seconds + now - self._start}
        save_run(self._path, training.module, training.optimizer, state, others)
        self._written = time.monotonic()


def _with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [weights for group in optimizer.param_groups for weights in group["params"]]
