"""What an experiment is: one TOML file, checked key by key before anything runs."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from siesta.backbones import DEFAULT_BACKBONE, MAX_IMAGE_SIZE, MIN_IMAGE_SIZE, PUBLISHED
from siesta.data import check_dataset, check_order
from siesta.errors import BadInput
from siesta.experiment.config_file import read_values, set_key
from siesta.experiment.published import FIGURES, TABLES, find_row
from siesta.methods import METHODS
from siesta.methods.settings import MethodSettings

__all__ = ["Base", "Config", "Data", "MethodEntry", "Network", "OrderEntry", "load_config"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Data(_Part):
    """Which pictures, and how large they are seen.

    Attributes:
        dataset: A name from `DATASETS`.
        path: Where it lies.
        options: What its reader takes besides.
        image_size: Side of the square that pictures are brought to.
        held_out: Share of the training pictures that takes the test set's place, for searches; 0 is the real thing.
        held_out_seed: Which pictures those are.
    """

    dataset: str
    path: str
    options: dict[str, Any] = {}
    image_size: Annotated[int, Field(ge=MIN_IMAGE_SIZE, le=MAX_IMAGE_SIZE)] = 224
    held_out: Annotated[float, Field(ge=0, lt=1)] = 0.0
    held_out_seed: Annotated[int, Field(ge=0)] = 0


class Network(_Part):
    """What every method starts from; `codec_pictures` is a folder to fit the codec on, the shipped one if left out."""

    backbone: str = DEFAULT_BACKBONE
    cut: int | None = None
    weights: str = PUBLISHED
    space: str = "centred"
    codec_pictures: str | None = None


class Base(_Part):
    """Base initialisation on the first step: codec, then supervised training of top and head; see `train_base`."""

    epochs: Annotated[int, Field(ge=1)] = 50
    batch_size: Annotated[int, Field(ge=1)] = 64
    rate: Annotated[float, Field(gt=0)] | None = None
    mean_share: Annotated[float, Field(ge=0, le=1)] = 0.5


class _Start(_Part):
    """What a method starts from."""

    network: Network
    base: Base | None


class _File(_Part):
    """The file as it is written; the entries below `orders` and `methods` are read by their kind.

    Attributes:
        shows: Tables and figures of the paper that it is for.
        published: By order and method, the table and the row that its results stand beside.
        later: Methods that do not exist yet, with the settings that they will have; nothing of them is checked.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**63)], ...], Field(min_length=1, strict=False)] = (0,)
    samples: Annotated[int, Field(ge=1)] | None = None
    data: Data
    network: Network = Network()
    base: Base | None = None
    orders: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    methods: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    shows: Annotated[tuple[str, ...], Field(strict=False)] = ()
    published: dict[str, dict[str, Annotated[tuple[str, str], Field(strict=False)]]] = {}
    later: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class OrderEntry:
    """An order by its name in the config: its kind in `ORDERS` and that one's options."""

    name: str
    kind: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class MethodEntry:
    """A method by its name in the config.

    Attributes:
        name: Its name.
        kind: A key of `METHODS`.
        settings: What it is told.
        samples: How many samples it may store.
        network: The network that it starts from: the config's, but for keys of its own.
        base: How that is initialised, in the same way.
    """

    name: str
    kind: str
    settings: MethodSettings
    samples: int | None
    network: Network
    base: Base | None


@dataclass(frozen=True)
class Config:
    """An experiment: data, start, and every order, method and seed to be combined.

    Attributes:
        shows: See `_File`, and so for `published` and `later`.
    """

    name: str
    seeds: tuple[int, ...]
    data: Data
    network: Network
    base: Base | None
    orders: tuple[OrderEntry, ...]
    methods: tuple[MethodEntry, ...]
    shows: tuple[str, ...]
    published: Mapping[str, Mapping[str, tuple[str, str]]]
    later: Mapping[str, Mapping[str, Any]]
    file: str = ""
    changes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What was typed to run it, but for where things lie on this machine."""
        words = ["siesta", "run", _in_checkout(self.file)]
        for change in self.changes:
            key, _, value = change.partition("=")
            if key != "data.path":
                words += ["--set", f"{key}={_without_folder(value)}"]
        return shlex.join(words)

    def identity(self, order: OrderEntry, method: MethodEntry, seed: int) -> str:
        """Hash of all in the config that the results of one run depend on; where the data lie is not among it."""
        parts = {
            "data": self.data.model_dump(mode="json", exclude={"path"}),
            "network": method.network.model_dump(mode="json"),
            "base": None if method.base is None else method.base.model_dump(mode="json"),
            "order": [order.kind, dict(order.options)],
            "method": [method.kind, method.settings.model_dump(mode="json"), method.samples],
            "seed": seed,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def load_config(
    path: Path,
    changes: Iterable[str] = (),
    methods: Iterable[str] | None = None,
    orders: Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
) -> Config:
    """Reads a config.

    Args:
        path: A TOML file.
        changes: Keys to set besides, each like "data.image_size=128".
        methods: Which of its methods to run; all when None.
        orders: Which of its orders.
        seeds: Seeds in place of its own.
    """
    values, changes = read_values(path), tuple(changes)
    for change in changes:
        set_key(values, change)
    if seeds is not None:
        values["seeds"] = list(seeds)
    try:
        file = _File.model_validate(values)
        _check_published(file)
        check_dataset(file.data.dataset, {name: some for name, some in file.data.options.items() if name != "classes"})
        return Config(
            name=file.name,
            seeds=file.seeds,
            data=file.data,
            network=file.network,
            base=file.base,
            orders=tuple(_order(name, file.orders[name]) for name in _chosen("order", file.orders, orders)),
            methods=tuple(_method(name, file.methods[name], file) for name in _chosen("method", file.methods, methods)),
            shows=file.shows,
            published=file.published,
            later=file.later,
            file=str(path),
            changes=changes,
        )
    except ValidationError as error:
        raise BadInput(f"{path}: {_sentence(error)}") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _in_checkout(file: str) -> str:
    """A config of the checkout by its place in it, any other by its name where its place says nothing elsewhere."""
    root = Path(__file__).parents[2]
    return str(Path(file).relative_to(root)) if Path(file).is_relative_to(root) else _without_folder(file)


def _without_folder(text: str) -> str:
    """The name alone of what lies at an absolute path."""
    return Path(text).name if Path(text).is_absolute() else text


def _chosen(what: str, there: Mapping[str, Any], wanted: Iterable[str] | None) -> list[str]:
    names = list(there) if wanted is None else list(dict.fromkeys(wanted))
    for name in names:
        if name not in there:
            raise BadInput(f"there is no {what} '{name}' in it: choose from {', '.join(there)}")
    return names


def _check_name(where: str, name: str) -> None:
    """Names become those of folders, with a hyphen between method, order and seed."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.]{0,99}", name):
        raise BadInput(f"{where}: '{name[:120]}' is no name: use letters, digits, _ and . (not first), 100 at most")


def _order(name: str, entry: Mapping[str, Any]) -> OrderEntry:
    _check_name("orders", name)
    options = dict(entry)
    kind = str(options.pop("kind", name))
    try:
        check_order(kind, options)
    except BadInput as error:
        raise BadInput(f"orders.{name}: {error}") from None
    return OrderEntry(name, kind, options)


def _method(name: str, entry: Mapping[str, Any], file: _File) -> MethodEntry:
    _check_name("methods", name)
    settings = dict(entry)
    kind = str(settings.pop("kind", name))
    samples = settings.pop("samples", file.samples)
    if kind not in METHODS:
        raise BadInput(f"methods.{name}: there is no method '{kind}': choose from {', '.join(METHODS)}")
    if samples is not None and not (type(samples) is int and samples >= 1):
        raise BadInput(f"methods.{name}.samples is how many samples may be stored, at least one, not {samples}")
    try:
        start = _Start.model_validate(
            {part: _own(part, settings.pop(part, {}), getattr(file, part)) for part in _Start.model_fields}
        )
        return MethodEntry(name, kind, METHODS[kind].settings(settings), samples, start.network, start.base)
    except ValidationError as error:
        raise BadInput(_sentence(error, f"methods.{name}.")) from None
    except BadInput as error:
        raise BadInput(f"methods.{name}: {error}") from None


def _own(part: str, keys: Any, shared: _Part | None) -> dict[str, Any] | None:
    """A part of the config with a method's own keys in it; None where the config does not have it."""
    if not isinstance(keys, dict):
        raise BadInput(f"{part} is a table of keys, not {keys!r}")
    if shared is None and keys:
        raise BadInput(f"{part} changes what is not there: add [{part}]")
    return None if shared is None else shared.model_dump() | keys


def _check_published(file: _File) -> None:
    """What a config is compared with has to exist."""
    for name in file.shows:
        if name not in TABLES and name not in FIGURES:
            raise BadInput(f"shows: the paper has no '{name}': choose from {', '.join([*TABLES, *FIGURES])}")
    for order, rows in file.published.items():
        if order not in file.orders:
            raise BadInput(f"published.{order}: there is no such order in it")
        for method, (table, row) in rows.items():
            if method not in file.methods and method not in file.later:
                raise BadInput(f"published.{order}.{method}: there is no such method in it, now or later")
            if find_row(table, row) is None:
                raise BadInput(f"published.{order}.{method}: the paper has no row '{row}' in '{table}'")


def _sentence(error: ValidationError, where: str = "") -> str:
    """The first thing that is wrong, in words."""
    first = error.errors()[0]
    key = where + ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"there is no key '{key}'{_meant(str(first['loc'][-1]))}"
    if first["type"] == "value_error":
        return f"{key}: {first['ctx']['error']}"
    if first["type"] == "missing":
        return f"the key '{key}' is missing"
    wanted = _WANTED.get(first["type"])
    if wanted is None:
        return f"{key}: {first['msg'][0].lower()}{first['msg'][1:]}, not {first['input']!r}"
    return f"{key} must be {wanted.format_map(first.get('ctx', {}))}, not {first['input']!r}"


def _meant(key: str) -> str:
    """A hint at the key that was meant."""
    known = _KEYS | {name for kind in METHODS.values() for name in kind.model.model_fields}
    close = difflib.get_close_matches(key, known, n=1)
    return f": did you mean '{close[0]}'?" if close else ": remove it"


_WANTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "dict_type": "a table of keys",
    "model_type": "a table of keys",
    "tuple_type": "a list",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
    "literal_error": "{expected}",
}
_KEYS = {name for part in (_File, Data, Network, Base) for name in part.model_fields}
