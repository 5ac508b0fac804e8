"""Configs of the paper's experiments, what each requires, and whether it is available on this machine."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import siesta
from siesta.backbones import PUBLISHED, RANDOM
from siesta.codecs import CODECS
from siesta.errors import BadInput
from siesta.experiment.config import Config, MethodEntry, load_config
from siesta.experiment.paper.tables import PublishedRow, published_row
from siesta.methods import METHODS

__all__ = [
    "Requirements",
    "find_dataset",
    "paper_configs",
    "prepare_config",
    "requirements",
]

_FOLDER = Path("configs") / "paper"
_LAYOUT_MARKERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "imagenet": (("train", "val"),),
    "places365": (("train", "val"), ("categories_places365.txt",), ("filelist_places365-standard",)),
    "places365_lt": (("Places_LT_train.txt", "Places_LT_val.txt"),),
    "cub200": (("images.txt", "images"), ("train", "test"), ("CUB_200_2011",)),
}
"""Files and folders that identify each layout of a data set; checking them takes no time."""


def paper_configs() -> dict[str, Path]:
    """Return every config of the paper by name: from the current folder, else from the package's checkout."""
    for root in (Path(), Path(siesta.__file__).parents[1]):
        files = sorted((root / _FOLDER).glob("*.toml"))
        if files:
            return {file.stem: file for file in files}
    raise BadInput(f"there is no folder {_FOLDER}: run this in a checkout of siesta")


def find_dataset(dataset: str, *folders: Path) -> Path | None:
    """Return the first of these folders, or of their subfolders of the data set's name, that has one of its layouts."""
    for folder in folders:
        for path in (folder / dataset, folder):
            if any(all((path / name).exists() for name in names) for names in _LAYOUT_MARKERS.get(dataset, ())):
                return path
    return None


@dataclass(frozen=True)
class Requirements:
    """What a config reproduces and requires.

    Attributes:
        name: The config's name.
        shows: Tables and figures of the paper that it reproduces.
        dataset: The data set.
        expected: Where the data set is expected.
        found: Where the data set is, if it was found.
        files: Other required files and folders, and whether each exists.
        rows: Order, method and published row of every comparison.
    """

    name: str
    shows: tuple[str, ...]
    dataset: str
    expected: Path
    found: Path | None
    files: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, str, PublishedRow], ...]


def requirements(data: Path | None = None) -> Iterator[Requirements]:
    """Yield what each config requires; data sets are expected below `data`, or where the configs say without it."""
    for name, file in paper_configs().items():
        config = load_config(file)
        dataset = config.data.dataset
        expected = Path(config.data.path) if data is None else data / dataset
        rows = [
            (order, method, published_row(table, row))
            for order, methods in config.published.items()
            for method, (table, row) in methods.items()
        ]
        found = find_dataset(dataset, expected if data is None else data)
        yield Requirements(
            name=name,
            shows=config.shows,
            dataset=dataset,
            expected=expected,
            found=found,
            files=tuple(_required_files(config, found or expected)),
            rows=tuple(rows),
        )


def _required_files(config: Config, data: Path) -> Iterator[tuple[str, bool]]:
    """Yield the required files and folders besides the data set, and whether each exists."""
    if name := config.data.options.get("class_order"):
        yield f"the order of classes {name}", (data / name).is_file() or Path(name).is_file()
    networks = [config.network, *(method.network for method in config.methods)]
    for file in dict.fromkeys(network.weights for network in networks):
        if file not in (RANDOM, PUBLISHED):
            yield f"weights {file}", Path(file).is_file()
    for folder in dict.fromkeys(network.codec_pictures for network in networks):
        if folder is not None:
            yield f"images of ImageNet for the codec {folder}", Path(folder).is_dir()


def prepare_config(
    name: str,
    data: Path | None = None,
    weights: str | None = None,
    codec_pictures: Path | None = None,
    changes: Iterable[str] = (),
    methods: Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
) -> tuple[Config, dict[str, str]]:
    """Return a config of the paper that can run on this machine, and the reasons why methods of it cannot.

    Args:
        name: The config's name.
        data: Folder of the data set, or a folder that contains it under its name.
        weights: A file, a folder with the files that the config names, or "random".
        codec_pictures: Folder of images to fit the codec on, for a config without base classes.
        changes: Keys to set in addition; the result is not the published experiment any more.
        methods: Names of the methods to run; all when None.
        seeds: Seeds that replace those of the file.

    Returns:
        The config without the methods that cannot run, and the reason for each of these: weights of its own are
        missing.

    Raises:
        BadInput: The data, the weights of all methods or the images for the codec are missing.
    """
    files = paper_configs()
    if name not in files:
        raise BadInput(f"the paper has no experiment '{name}': choose from {', '.join(files)}")
    original = load_config(files[name])
    locations = [
        *_data_changes(original, data),
        *_weights_changes(original, weights),
        *_codec_picture_changes(codec_pictures),
    ]
    config = load_config(files[name], [*locations, *changes], methods, seeds=seeds)
    _check_class_order(config)
    return _split_runnable(name, config)


def _split_runnable(name: str, config: Config) -> tuple[Config, dict[str, str]]:
    """Return the config without methods whose files are missing, and what is missing for each of these."""
    missing = {method.name: reason for method in config.methods if (reason := _missing_files(method)) is not None}
    runnable = tuple(method for method in config.methods if method.name not in missing)
    for method in config.methods:
        if method.name in missing and (not runnable or _uses_shared_weights(method, config)):
            raise BadInput(f"{name} cannot run: {missing[method.name]}")
    return replace(config, methods=runnable), missing


def _data_changes(config: Config, given: Path | None) -> Iterator[str]:
    """Yield the change of the data's location; refuse a data set that is not there."""
    dataset, path = config.data.dataset, Path(config.data.path)
    if given is not None:  # the reader reports an unknown layout
        yield _change("data.path", find_dataset(dataset, given) or given)
    elif find_dataset(dataset, path) is None:
        raise BadInput(f"{dataset} is not at {path}: give its folder with --data (docs/data.md describes its layouts)")


def _check_class_order(config: Config) -> None:
    """Refuse a data set without its file of the class order; the reader reports a missing data set."""
    name, path = config.data.options.get("class_order"), Path(config.data.path)
    if name is None or find_dataset(config.data.dataset, path) is None:
        return
    if not ((path / name).is_file() or Path(name).is_file()):
        raise BadInput(f"the order of classes, REMIND's {name}, is missing: put it into {config.data.path}")


def _weights_changes(config: Config, given: str | None) -> Iterator[str]:
    """Yield changes of weights: a file replaces the config's, a folder or "random" those of its methods as well."""
    if given is None:
        return
    sections = {"network": config.network.weights}
    if given == RANDOM or Path(given).is_dir():
        own = (method for method in config.methods if method.network.weights != config.network.weights)
        sections |= {f"methods.{method.name}.network": method.network.weights for method in own}
    for section, file in sections.items():
        if file not in (RANDOM, PUBLISHED):
            yield _change(f"{section}.weights", Path(given) / Path(file).name if Path(given).is_dir() else given)


def _codec_picture_changes(given: Path | None) -> Iterator[str]:
    if given is not None:
        yield _change("network.codec_pictures", given)


def _change(key: str, value: Path | str) -> str:
    """Return the change of a key to a text, quoted if TOML would read it as a number or another type."""
    try:
        tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return f"{key}={value}"
    return f"{key}={json.dumps(str(value))}"


def _missing_files(method: MethodEntry) -> str | None:
    """Return what a method requires but cannot find, and what to do; None if nothing is missing."""
    network = method.network
    if network.weights not in (RANDOM, PUBLISHED) and not Path(network.weights).is_file():
        return (
            f"there are no weights at {network.weights}: give a folder that has {Path(network.weights).name} with "
            "--weights, or a file where one is enough; the paper's weights are not part of siesta, "
            f"--weights {RANDOM} tries it without"
        )
    pictures = network.codec_pictures
    if pictures is not None and CODECS[METHODS[method.kind].codec].needs_fit and not Path(pictures).is_dir():
        return f"there are no images of ImageNet to fit the codec on at {pictures}: give a folder with --codec-pictures"
    return None


def _uses_shared_weights(method: MethodEntry, config: Config) -> bool:
    """Return whether a method uses the weights of the config rather than weights of its own."""
    return method.network.weights == config.network.weights
