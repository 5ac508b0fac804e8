"""Datasets by name, read as they come on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from siesta.data.arrays import arrays
from siesta.data.cifar import cifar10, cifar100
from siesta.data.cub200 import cub200
from siesta.data.dataset import Dataset, some_classes
from siesta.data.image_folder import image_folder
from siesta.data.imagenet import imagenet
from siesta.data.options import checked
from siesta.data.places365 import places365
from siesta.data.places365_lt import places365_lt
from siesta.data.tiny_imagenet import tiny_imagenet
from siesta.errors import BadInput

__all__ = ["DATASETS", "check_dataset", "load_dataset"]

DATASETS: dict[str, Callable[..., Dataset]] = {
    "image_folder": image_folder,
    "imagenet": imagenet,
    "cub200": cub200,
    "places365": places365,
    "places365_lt": places365_lt,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "tiny_imagenet": tiny_imagenet,
    "arrays": arrays,
}


def load_dataset(name: str, path: str | Path, *, classes: int | None = None, **options: Any) -> Dataset:
    """A dataset by its name.

    Args:
        name: A key of `DATASETS`.
        path: Where it lies.
        classes: Only the first so many classes.
        **options: Keyword arguments of its reader.
    """
    ready = check_dataset(name, options | {"classes": classes})
    count = ready.pop("classes")
    found = DATASETS[name](Path(path), **ready)
    return found if count is None else some_classes(found, count)


def check_dataset(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as `load_dataset` takes them; wrong ones get a sentence, before any disk is asked."""
    if name not in DATASETS:
        raise BadInput(f"there is no dataset '{name}': choose one of {', '.join(DATASETS)}")
    shared = {option: value for option, value in options.items() if option == "classes"}
    own = {option: value for option, value in options.items() if option not in shared}
    return checked(f"dataset {name}", DATASETS[name], own) | checked(f"dataset {name}", load_dataset, shared)
