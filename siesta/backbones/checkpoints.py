"""Read and write files of weights; every tensor in a file is either used or reported.

Supported are safetensors files and torch files of plain tensors, with the tensor names of this project, torchvision,
timm (whose ResNet18 has torchvision's names) and the reference SIESTA (torchvision's names after `model.` and sometimes
`module.`, in a dict under `state_dict` or `model_state`) and DeiT (timm's names, in a dict under `model`).
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from siesta.backbones.centre import Centre
from siesta.backbones.checkpoint_layouts import CheckpointLayout, siesta_layout
from siesta.backbones.spec import Resize
from siesta.contracts import Backbone
from siesta.errors import BadInput

__all__ = ["checkpoint_bytes", "load_weights", "read_checkpoint", "save_checkpoint"]

_WRAPPER_KEYS = ("state_dict", "model_state", "model")
_MAX_NAMES = 5  # tensor names in one error message
_PREFIX = re.compile(r"^(module\.)?(model\.)?")


def checkpoint_bytes(backbone: Backbone) -> bytes:
    """Return the weights of a backbone, without the feature centre, as a safetensors file that fits every cut."""
    layers = (layer for layer in (*backbone.bottom, *backbone.top) if not isinstance(layer, Centre))
    network = nn.Sequential(*layers)
    state = network.state_dict()
    names = siesta_layout().tensors(network)
    return save({file_name: state[name].contiguous() for name, file_name in names.items()})


def save_checkpoint(backbone: Backbone, path: Path) -> None:
    """Write `checkpoint_bytes` to a file."""
    path.write_bytes(checkpoint_bytes(backbone))


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], list[str]]:
    """Read all tensors of a file.

    Returns:
        The tensors by their names in the file, and the names of its other entries, such as an epoch or an optimiser.
    """
    if not path.is_file():
        raise BadInput(f"there is no file of weights at {path}: check the path")
    content = _read(path)
    entries: dict[str, Any] = dict(content) if isinstance(content, Mapping) else {}
    other_entries: list[str] = []
    wrapper = next((key for key in _WRAPPER_KEYS if isinstance(entries.get(key), Mapping)), None)
    if wrapper is not None:
        inner = entries.pop(wrapper)
        other_entries = [str(key) for key in entries]
        entries = dict(inner)
    tensors = {str(name): value for name, value in entries.items() if isinstance(value, Tensor)}
    if not tensors:
        raise BadInput(f"{path} holds no named tensors: save the state_dict() of a network in it")
    return tensors, [*(str(name) for name in entries if name not in tensors), *other_entries]


def _read(path: Path) -> Any:
    try:
        if _is_safetensors(path):
            return load_file(path)
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about some files before it refuses them
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BadInput(
            f"{path} is not a file of plain tensors, and pickled code is never run: save only a state_dict() in it"
        ) from error
    except Exception as error:  # torch's reader raises exceptions of any type for a malformed file
        raise BadInput(f"{path} is not a readable file of weights: download it again, or save it again") from error


def _is_safetensors(path: Path) -> bool:
    """Return whether a file starts like safetensors, whatever its name: eight bytes of length, then a JSON header."""
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def load_weights(
    network: nn.Sequential,
    path: Path,
    layouts: Iterable[CheckpointLayout],
    resize: Mapping[str, Resize] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Load all weights of a whole network from a file.

    Args:
        network: Receives the weights in place. It is not changed when the file is refused.
        path: A safetensors or torch file.
        layouts: Layouts to try besides our own; the one with the most matching names is used.
        resize: How tensors for another image size are brought to the network's shape, by name in the network.

    Returns:
        The names of entries of the file that the network does not have, such as an output layer.

    Raises:
        BadInput: The file is not readable or does not fit the network.
    """
    content, other_entries = read_checkpoint(path)
    file_names = {_PREFIX.sub("", name): name for name in content}
    if len(file_names) < len(content):
        raise BadInput(f"{path} holds more than one network: save the state_dict() of a single one in it")
    candidates = [(layout, layout.tensors(network)) for layout in (siesta_layout(), *layouts)]
    layout, names = max(candidates, key=lambda candidate: len(file_names.keys() & candidate[1].values()))
    if file_names.keys().isdisjoint(names.values()):
        raise BadInput(f"{path} has none of this network's tensors under a known name, but {_shorten(content)}")
    found = {name: content[file_names[alias]] for name, alias in names.items() if alias in file_names}
    state = network.state_dict()
    found = {name: _resized(tensor, state[name].shape, resize.get(name)) for name, tensor in found.items()}
    # in our own files, a variance may be negative by up to epsilon, see `_change_eps`
    tolerance = {} if layout.foreign else _batch_norm_eps(network)
    faults = _find_faults(found, state, names) or _find_negative_variances(found, names, tolerance)
    if faults:
        raise BadInput(f"{path} does not fit this network: {'; '.join(faults)}")
    for name, tensor in found.items():
        state[name].copy_(tensor.reshape(state[name].shape))
    if layout.norm_eps is not None:
        _change_eps(network, layout.norm_eps)
    used = {file_names[alias] for alias in names.values()}
    ignored = (name for name in content if name not in used and not name.endswith("num_batches_tracked"))
    return (*ignored, *other_entries)


def _resized(tensor: Tensor, shape: torch.Size, resize: Resize | None) -> Tensor:
    """Return the tensor in this shape if it can be resized; else as it is, for `_find_faults` to refuse."""
    if resize is None or tensor.shape == shape or not _is_plain(tensor):
        return tensor
    return resize(tensor.float(), shape)


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_meta and tensor.is_floating_point()


def _find_faults(found: Mapping[str, Tensor], state: Mapping[str, Tensor], names: Mapping[str, str]) -> list[str]:
    """Return one phrase for each kind of fault, with the file's names of the tensors; empty when there are none."""
    not_plain = [names[name] for name, tensor in found.items() if not _is_plain(tensor)]
    if not_plain:
        return [f"not plain floating-point tensors: {_shorten(not_plain)}"]
    misshaped = [
        f"{names[name]} ({tuple(tensor.shape)} for {tuple(state[name].shape)})"
        for name, tensor in found.items()
        if not _is_same_shape(tensor.shape, state[name].shape)
    ]
    faults = {
        "missing": [alias for name, alias in names.items() if name not in found],
        "of another shape": misshaped,
        "not finite": [names[name] for name, tensor in found.items() if not tensor.float().isfinite().all()],
    }
    return [f"{fault}: {_shorten(tensors)}" for fault, tensors in faults.items() if tensors]


def _find_negative_variances(
    found: Mapping[str, Tensor], names: Mapping[str, str], tolerance: Mapping[str, float]
) -> list[str]:
    negative = [
        names[name]
        for name, tensor in found.items()
        if name.endswith("running_var") and (tensor.float() + tolerance.get(name, 0.0) < 0).any()
    ]
    return [f"negative variances: {_shorten(negative)}"] if negative else []


def _batch_norm_eps(network: nn.Sequential) -> dict[str, float]:
    modules = network.named_modules()
    return {f"{name}.running_var": module.eps for name, module in modules if isinstance(module, nn.BatchNorm2d)}


def _shorten(names: Iterable[str]) -> str:
    """Join the first names for an error message, and count the others."""
    all_names = list(names)
    more = f" and {len(all_names) - _MAX_NAMES:,} more" if len(all_names) > _MAX_NAMES else ""
    return ", ".join(all_names[:_MAX_NAMES]) + more


def _is_same_shape(shape: torch.Size, expected: torch.Size) -> bool:
    """Compare shapes; a linear layer may be stored as a 1 x 1 convolution."""
    return shape == expected or (len(expected) == 2 and shape == (*expected, 1, 1))


def _change_eps(network: nn.Sequential, eps: float) -> None:
    """Make batch norms compute as with another epsilon by shifting their variances, which are saved."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_var is not None:
            module.running_var += eps - module.eps
