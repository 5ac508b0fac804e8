"""Data sets by name, read in their published layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from siesta.data.arrays import arrays
from siesta.data.cifar import cifar10, cifar100
from siesta.data.cub200 import cub200
from siesta.data.dataset import Dataset, first_classes, first_images
from siesta.data.image_folder import image_folder
from siesta.data.imagenet import imagenet
from siesta.data.options import check_options, option_names
from siesta.data.places365 import places365
from siesta.data.places365_lt import places365_lt
from siesta.data.tiny_imagenet import tiny_imagenet
from siesta.registry import Registry, function_of, part_name

__all__ = ["DATASETS", "check_dataset", "load_dataset"]

DATASETS: Registry[Callable[..., Dataset]] = Registry(
    "dataset",
    {
        "image_folder": image_folder,
        "imagenet": imagenet,
        "cub200": cub200,
        "places365": places365,
        "places365_lt": places365_lt,
        "cifar10": cifar10,
        "cifar100": cifar100,
        "tiny_imagenet": tiny_imagenet,
        "arrays": arrays,
    },
    group="siesta.datasets",
    requirement=function_of(1),
)


def load_dataset(
    name: str | Callable[..., Dataset],
    path: str | Path,
    *,
    classes: int | None = None,
    images_per_class: int | None = None,
    **options: Any,
) -> Dataset:
    """Read a data set by its name.

    Args:
        name: A key of `DATASETS`, or a function of your own that is called like one of them.
        path: Its folder or file.
        classes: Number of classes to use, the first ones; all when None.
        images_per_class: Number of training images of each class to use, the first ones; all when None.
        **options: Keyword arguments of the reader.
    """
    checked = check_dataset(name, options | {"classes": classes, "images_per_class": images_per_class})
    class_count = checked.pop("classes")
    image_count = checked.pop("images_per_class")
    dataset = DATASETS.resolve(name)(Path(path), **checked)
    if class_count is not None:
        dataset = first_classes(dataset, class_count)
    return dataset if image_count is None else first_images(dataset, image_count)


def check_dataset(name: str | Callable[..., Dataset], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the types that `load_dataset` takes, without reading the data set.

    Raises:
        BadInput: There is no such data set, or an option is wrong.
    """
    reader, owner = DATASETS.resolve(name), f"dataset {part_name(name)}"
    shared_names = option_names(load_dataset)
    shared = {option: value for option, value in options.items() if option in shared_names}
    own = {option: value for option, value in options.items() if option not in shared}
    return check_options(owner, reader, own) | check_options(owner, load_dataset, shared)
