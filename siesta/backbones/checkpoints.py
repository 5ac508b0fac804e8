"""Weights from files, with every tensor accounted for.

Read are safetensors files and torch files of plain tensors; in our own names, torchvision's, timm's (whose ResNet18 is
named as torchvision's) and those of the reference SIESTA (torchvision's behind `model.` and sometimes `module.`, in a
dict under `state_dict` or `model_state`).
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from siesta.backbones.centre import Centre
from siesta.backbones.layouts import Layout, ours
from siesta.contracts import Backbone
from siesta.errors import BadInput

__all__ = ["checkpoint_bytes", "fill", "read_checkpoint", "save_checkpoint"]

_WRAPPERS = ("state_dict", "model_state")
_NAMED = 5  # tensors in a sentence
_PREFIX = re.compile(r"^(module\.)?(model\.)?")


def checkpoint_bytes(backbone: Backbone) -> bytes:
    """A backbone's network, without the centre of its features, as a file that serves every cut of it."""
    layers = (layer for layer in (*backbone.bottom, *backbone.top) if not isinstance(layer, Centre))
    network = nn.Sequential(*layers)
    state = network.state_dict()
    return save({theirs: state[name].contiguous() for name, theirs in ours().tensors(network).items()})


def save_checkpoint(backbone: Backbone, path: Path) -> None:
    """Writes that file."""
    path.write_bytes(checkpoint_bytes(backbone))


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], list[str]]:
    """All tensors of a file by the names in it, and the names of what lies beside them (an epoch, an optimiser)."""
    if not path.is_file():
        raise BadInput(f"there is no file of weights at {path}")
    content = _content(path)
    entries: dict[str, Any] = dict(content) if isinstance(content, Mapping) else {}
    beside: list[str] = []
    wrapper = next((key for key in _WRAPPERS if isinstance(entries.get(key), Mapping)), None)
    if wrapper is not None:
        inner = entries.pop(wrapper)
        beside, entries = [str(key) for key in entries], dict(inner)
    tensors = {str(name): value for name, value in entries.items() if isinstance(value, Tensor)}
    if not tensors:
        raise BadInput(f"{path} holds no tensors by name: save a network's state_dict() in it")
    return tensors, [*(str(name) for name in entries if name not in tensors), *beside]


def _content(path: Path) -> Any:
    try:
        if _is_safetensors(path):
            return load_file(path)
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what torch thinks of a file that it then refuses
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BadInput(
            f"{path} is not a file of plain tensors, and nothing else is run here: save only a state_dict() in it"
        ) from error
    except Exception as error:  # torch's reader meets anything with any exception
        raise BadInput(f"{path} is not a readable file of weights: get it again, or save it again") from error


def _is_safetensors(path: Path) -> bool:
    """Whatever it is called: the length of a header in eight bytes, then the header, as JSON."""
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def fill(network: nn.Sequential, path: Path, layouts: Iterable[Layout]) -> tuple[str, ...]:
    """Fills a whole network from a file.

    Args:
        network: Gets its weights in place: all of them, or none when the file is refused.
        path: A safetensors or torch file.
        layouts: Names to look for besides our own; the one that fits best is taken.

    Returns:
        What the file has and the network has not, such as an output layer, by the file's own names.
    """
    content, beside = read_checkpoint(path)
    in_file = {_PREFIX.sub("", name): name for name in content}
    if len(in_file) < len(content):
        raise BadInput(f"{path} holds more than one network: save the state_dict() of one in it")
    candidates = [(layout, layout.tensors(network)) for layout in (ours(), *layouts)]
    layout, names = max(candidates, key=lambda candidate: len(in_file.keys() & candidate[1].values()))
    if in_file.keys().isdisjoint(names.values()):
        raise BadInput(f"{path} has none of this network's tensors under a known name, but {_some(content)}")
    found = {name: content[in_file[theirs]] for name, theirs in names.items() if theirs in in_file}
    state = network.state_dict()
    faults = _faults(found, state, names) or _negative(found, names, {} if layout.others else _epsilons(network))
    if faults:
        raise BadInput(f"{path} does not fit this network: {'; '.join(faults)}")
    for name, tensor in found.items():
        state[name].copy_(tensor.reshape(state[name].shape))
    if layout.norm_eps is not None:
        _adopt_eps(network, layout.norm_eps)
    used = {in_file[theirs] for theirs in names.values()}
    ignored = (name for name in content if name not in used and not name.endswith("num_batches_tracked"))
    return (*ignored, *beside)


def _faults(found: Mapping[str, Tensor], state: Mapping[str, Tensor], names: Mapping[str, str]) -> list[str]:
    """What is wrong with the tensors found, tensor by tensor under their names; empty when nothing is."""
    odd = [
        names[name]
        for name, tensor in found.items()
        if tensor.layout != torch.strided or tensor.is_meta or not tensor.is_floating_point()
    ]
    if odd:
        return [f"not plain floating-point tensors: {_some(odd)}"]
    misshaped = [
        f"{names[name]} ({tuple(tensor.shape)} for {tuple(state[name].shape)})"
        for name, tensor in found.items()
        if not _same_shape(tensor.shape, state[name].shape)
    ]
    kinds = {
        "missing": [theirs for name, theirs in names.items() if name not in found],
        "of another shape": misshaped,
        "not finite": [names[name] for name, tensor in found.items() if not tensor.float().isfinite().all()],
    }
    return [f"{kind}: {_some(tensors)}" for kind, tensors in kinds.items() if tensors]


def _negative(found: Mapping[str, Tensor], names: Mapping[str, str], slack: Mapping[str, float]) -> list[str]:
    """Variances below zero; in our own files by up to an epsilon, see `_adopt_eps`."""
    negative = [
        names[name]
        for name, tensor in found.items()
        if name.endswith("running_var") and (tensor.float() + slack.get(name, 0.0) < 0).any()
    ]
    return [f"negative variances: {_some(negative)}"] if negative else []


def _epsilons(network: nn.Sequential) -> dict[str, float]:
    modules = network.named_modules()
    return {f"{name}.running_var": module.eps for name, module in modules if isinstance(module, nn.BatchNorm2d)}


def _some(names: Iterable[str]) -> str:
    """Names in a sentence that stays short."""
    every = list(names)
    more = f" and {len(every) - _NAMED:,} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def _same_shape(theirs: torch.Size, wanted: torch.Size) -> bool:
    """A linear layer may come as a 1 x 1 convolution: the same numbers."""
    return theirs == wanted or (len(wanted) == 2 and theirs == (*wanted, 1, 1))


def _adopt_eps(network: nn.Sequential, eps: float) -> None:
    """Makes batch norms act as with another epsilon: the variance takes the difference, so that it is saved along."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_var is not None:
            module.running_var += eps - module.eps
