"""The paper's experiments: which configs there are, what they need, and whether that is here."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import siesta
from siesta.backbones import PUBLISHED, RANDOM
from siesta.codecs import Raw
from siesta.errors import BadInput
from siesta.experiment.config import Config, MethodEntry, load_config
from siesta.experiment.published import Row, published
from siesta.methods import METHODS

__all__ = ["NOT_YET", "Needs", "find_data", "needs", "paper_configs", "prepared"]

NOT_YET = "not here yet"

_FOLDER = Path("configs") / "paper"
_SIGNS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "imagenet": (("train", "val"),),
    "places365": (("train", "val"), ("categories_places365.txt",), ("filelist_places365-standard",)),
    "places365_lt": (("Places_LT_train.txt", "Places_LT_val.txt"),),
    "cub200": (("images.txt", "images"), ("train", "test"), ("CUB_200_2011",)),
}
"""What a data set's folder has at least, in each of its layouts: a look that takes no time."""


def paper_configs() -> dict[str, Path]:
    """Every config of the paper by its name: of the folder that one is in, or of the package's checkout."""
    for root in (Path(), Path(siesta.__file__).parents[1]):
        files = sorted((root / _FOLDER).glob("*.toml"))
        if files:
            return {file.stem: file for file in files}
    raise BadInput(f"there is no {_FOLDER} here: run this in a checkout of siesta")


def find_data(dataset: str, *folders: Path) -> Path | None:
    """The first of these folders, or of those with the data set's name in them, that looks like it."""
    for folder in folders:
        for path in (folder / dataset, folder):
            if any(all((path / name).exists() for name in names) for names in _SIGNS.get(dataset, ())):
                return path
    return None


@dataclass(frozen=True)
class Needs:
    """What a config needs, and what it is for.

    Attributes:
        name: The config's.
        shows: Tables and figures of the paper.
        dataset: The data set.
        looked: Where it was looked for.
        found: Where it is, if it is there.
        also: What else it needs, and whether that is there.
        rows: Order, method and published row of everything that is compared.
        later: Methods that are not here yet.
    """

    name: str
    shows: tuple[str, ...]
    dataset: str
    looked: Path
    found: Path | None
    also: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, str, Row], ...]
    later: tuple[str, ...]


def needs(data: Path | None = None) -> Iterator[Needs]:
    """What each config needs; `data` is a folder of data sets, else each is looked for where its config says."""
    for name, file in paper_configs().items():
        config = load_config(file)
        dataset = config.data.dataset
        looked = Path(config.data.path) if data is None else data / dataset
        rows = [
            (order, method, published(table, row))
            for order, methods in config.published.items()
            for method, (table, row) in methods.items()
        ]
        found = find_data(dataset, looked if data is None else data)
        also = tuple(_also(config, found or looked))
        yield Needs(name, config.shows, dataset, looked, found, also, tuple(rows), tuple(config.later))


def _also(config: Config, data: Path) -> Iterator[tuple[str, bool]]:
    """Files besides the pictures, and pictures for the codec."""
    if name := config.data.options.get("class_order"):
        yield f"the order of classes {name}", (data / name).is_file() or Path(name).is_file()
    networks = [config.network, *(method.network for method in config.methods)]
    for file in dict.fromkeys(network.weights for network in networks):
        if file not in (RANDOM, PUBLISHED):
            yield f"weights {file}", Path(file).is_file()
    for folder in dict.fromkeys(network.codec_pictures for network in networks):
        if folder is not None:
            yield f"pictures of ImageNet for the codec {folder}", Path(folder).is_dir()


def prepared(
    name: str,
    data: Path | None = None,
    weights: str | None = None,
    codec_pictures: Path | None = None,
    changes: Iterable[str] = (),
    methods: Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
) -> tuple[Config, dict[str, str]]:
    """A config of the paper that can run here, and why which of its methods cannot.

    Args:
        name: The config.
        data: The data set's folder, or the folder that has it under its name.
        weights: A file, a folder that has the files that the config names, or "random".
        codec_pictures: What the codec is fitted on, where the config has no base classes of its own.
        changes: Keys to set besides; what comes out is not the published experiment any more.
        methods: Which of its methods; all when None.
        seeds: Seeds in place of its own.

    Raises:
        BadInput: Where the data, the config's weights or the codec's pictures are not here. Methods that exist only
            later, or whose own weights are not here, are left out.
    """
    files = paper_configs()
    if name not in files:
        raise BadInput(f"the paper has no experiment '{name}': choose from {', '.join(files)}")
    plain = load_config(files[name])
    wanted = [method.name for method in plain.methods] if methods is None else list(methods)
    places = [*_data(plain, data), *_weights(plain, weights), *_codec_pictures(codec_pictures)]
    here = [method for method in wanted if method not in plain.later]
    if not here:
        raise BadInput(f"{', '.join(wanted)} of {name}: {NOT_YET}")
    config = load_config(files[name], [*places, *changes], here, seeds=seeds)
    _check_class_order(config)
    later = {method: NOT_YET for method in plain.later if methods is None or method in wanted}
    lacks = {method.name: lack for method in config.methods if (lack := _lack(method)) is not None}
    able = tuple(method for method in config.methods if method.name not in lacks)
    for method in config.methods:
        if method.name in lacks and (not able or _shared(method, config)):
            raise BadInput(f"{name} cannot run: there {lacks[method.name]}")
    return replace(config, methods=able), later | {method: f"there {lack}" for method, lack in lacks.items()}


def _data(config: Config, given: Path | None) -> Iterator[str]:
    dataset, path = config.data.dataset, Path(config.data.path)
    if given is not None:  # a folder of another layout is refused by its reader, in a sentence of its own
        yield _change("data.path", find_data(dataset, given) or given)
    elif find_data(dataset, path) is None:
        raise BadInput(
            f"{dataset} is not at {path}: give its folder with --data (docs/data.md says how it should look)"
        )


def _check_class_order(config: Config) -> None:
    """A data set that is there may lack the order of its classes; one that is not has a sentence of its reader's."""
    name, path = config.data.options.get("class_order"), Path(config.data.path)
    if name is None or find_data(config.data.dataset, path) is None:
        return
    if not ((path / name).is_file() or Path(name).is_file()):
        raise BadInput(f"the order of classes, REMIND's {name}, is not there: put it into {config.data.path}")


def _weights(config: Config, given: str | None) -> Iterator[str]:
    """A file is for the config's network; a folder, or random weights, for those of its methods as well."""
    if given is None:
        return
    parts = {"network": config.network.weights}
    if given == RANDOM or Path(given).is_dir():
        own = (method for method in config.methods if method.network.weights != config.network.weights)
        parts |= {f"methods.{method.name}.network": method.network.weights for method in own}
    for part, file in parts.items():
        if file not in (RANDOM, PUBLISHED):
            yield _change(f"{part}.weights", Path(given) / Path(file).name if Path(given).is_dir() else given)


def _codec_pictures(given: Path | None) -> Iterator[str]:
    if given is not None:
        yield _change("network.codec_pictures", given)


def _change(key: str, value: Path | str) -> str:
    """A key to set to a text; quoted where that would be taken for a number or the like."""
    try:
        tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return f"{key}={value}"
    return f"{key}={json.dumps(str(value))}"


def _lack(method: MethodEntry) -> str | None:
    """What a method would need and does not find."""
    network = method.network
    if network.weights not in (RANDOM, PUBLISHED) and not Path(network.weights).is_file():
        return (
            f"are no weights at {network.weights}: give a folder that has {Path(network.weights).name} with --weights, "
            f"or a file where one is enough; the paper's do not come with siesta, --weights {RANDOM} tries it without"
        )
    pictures = network.codec_pictures
    if pictures is not None and METHODS[method.kind].codec != Raw.name and not Path(pictures).is_dir():
        return f"are no pictures of ImageNet to fit the codec on at {pictures}: give a folder with --codec-pictures"
    return None


def _shared(method: MethodEntry, config: Config) -> bool:
    """Whether what a method lacks is what all others need as well, not weights of its own."""
    return method.network.weights == config.network.weights
