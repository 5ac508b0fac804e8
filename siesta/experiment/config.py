"""The config of an experiment: one TOML file, validated completely before anything runs."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from siesta.data import check_dataset, check_order
from siesta.errors import BadInput
from siesta.experiment.config_errors import describe_error
from siesta.experiment.config_file import read_values, set_key
from siesta.experiment.config_schema import (
    BaseConfig,
    ConfigFile,
    ConfigSection,
    DataConfig,
    InitialStateConfig,
    NetworkConfig,
)
from siesta.experiment.paper.tables import FIGURES, TABLES, find_published_row
from siesta.methods import METHODS
from siesta.methods.settings import MethodSettings

__all__ = ["Config", "MethodEntry", "OrderEntry", "load_config"]


@dataclass(frozen=True)
class OrderEntry:
    """An order of samples.

    Attributes:
        name: Its name in the config.
        kind: A key of `ORDERS`.
        options: Options of that order.
    """

    name: str
    kind: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class MethodEntry:
    """A method with its settings.

    Attributes:
        name: Its name in the config.
        kind: A key of `METHODS`.
        settings: Settings of that method.
        samples: Number of samples that it may store; all of them when None.
        network: The network that it starts from: the config's, changed by the method's own keys.
        base: Its base initialisation, likewise.
    """

    name: str
    kind: str
    settings: MethodSettings
    samples: int | None
    network: NetworkConfig
    base: BaseConfig | None


@dataclass(frozen=True)
class Config:
    """An experiment: the data, the network, and the orders, methods and seeds to combine.

    Attributes:
        name: See `ConfigFile` for this and the other keys of the file.
        orders: The chosen orders.
        methods: The chosen methods.
        file: Path of the file.
        changes: Keys that were set in addition, such as "data.image_size=128".
    """

    name: str
    seeds: tuple[int, ...]
    data: DataConfig
    network: NetworkConfig
    base: BaseConfig | None
    orders: tuple[OrderEntry, ...]
    methods: tuple[MethodEntry, ...]
    shows: tuple[str, ...]
    published: Mapping[str, Mapping[str, tuple[str, str]]]
    file: str = ""
    changes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that runs the experiment, without absolute paths."""
        words = ["siesta", "run", _relative_to_checkout(self.file)]
        for change in self.changes:
            key, _, value = change.partition("=")
            if key != "data.path":
                words += ["--set", f"{key}={_without_folder(value)}"]
        return shlex.join(words)

    def identity(self, order: OrderEntry, method: MethodEntry, seed: int) -> str:
        """Return the hash of everything in the config that the results of one run depend on.

        The path of the data set is not part of it. Keys have their names of version 0.1 (`by_alias`), so that recorded
        runs keep their hashes.
        """
        parts = {
            "data": self.data.model_dump(mode="json", exclude={"path"}),
            "network": method.network.model_dump(mode="json"),
            "base": None if method.base is None else method.base.model_dump(mode="json", by_alias=True),
            "order": [order.kind, dict(order.options)],
            "method": [method.kind, method.settings.model_dump(mode="json", by_alias=True), method.samples],
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
    """Load and validate a config.

    Args:
        path: A TOML file.
        changes: Keys to set in addition, each as in "data.image_size=128".
        methods: Names of the methods to run; all when None.
        orders: Names of the orders to run; all when None.
        seeds: Seeds that replace those of the file.

    Raises:
        BadInput: The file, a change or a name is wrong; the message is one sentence.
    """
    values = read_values(path)
    changes = tuple(changes)
    for change in changes:
        set_key(values, change)
    if seeds is not None:
        values["seeds"] = list(seeds)
    try:
        return _validated(values, str(path), changes, methods, orders)
    except ValidationError as error:
        raise BadInput(f"{path}: {describe_error(error)}") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _validated(
    values: Mapping[str, Any],
    path: str,
    changes: tuple[str, ...],
    methods: Iterable[str] | None,
    orders: Iterable[str] | None,
) -> Config:
    file = ConfigFile.model_validate(values)
    _check_published(file)
    check_dataset(file.data.dataset, file.data.options)
    return Config(
        name=file.name,
        seeds=file.seeds,
        data=file.data,
        network=file.network,
        base=file.base,
        orders=tuple(_order(name, file.orders[name]) for name in _selected("order", file.orders, orders)),
        methods=tuple(_method(name, file.methods[name], file) for name in _selected("method", file.methods, methods)),
        shows=file.shows,
        published=file.published,
        file=path,
        changes=changes,
    )


def _relative_to_checkout(file: str) -> str:
    """Return a config's path relative to the checkout; the file's name alone if its absolute path lies elsewhere."""
    root = Path(__file__).parents[2]
    return str(Path(file).relative_to(root)) if Path(file).is_relative_to(root) else _without_folder(file)


def _without_folder(text: str) -> str:
    """Return the last part of an absolute path, and any other text unchanged."""
    return Path(text).name if Path(text).is_absolute() else text


def _selected(what: str, available: Mapping[str, Any], requested: Iterable[str] | None) -> list[str]:
    names = list(available) if requested is None else list(dict.fromkeys(requested))
    for name in names:
        if name not in available:
            raise BadInput(f"there is no {what} '{name}' in the config: choose from {', '.join(available)}")
    return names


def _check_name(section: str, name: str) -> None:
    """Refuse a name that cannot be part of a folder's name, which is <method>-<order>-<seed>."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.]{0,99}", name):
        raise BadInput(
            f"{section}: '{name[:120]}' is not a valid name: use letters, digits, _ and . (not first), 100 at most"
        )


def _order(name: str, entry: Mapping[str, Any]) -> OrderEntry:
    _check_name("orders", name)
    options = dict(entry)
    kind = str(options.pop("kind", name))
    try:
        check_order(kind, options)
    except BadInput as error:
        raise BadInput(f"orders.{name}: {error}") from None
    return OrderEntry(name, kind, options)


def _method(name: str, entry: Mapping[str, Any], file: ConfigFile) -> MethodEntry:
    _check_name("methods", name)
    settings = dict(entry)
    kind = str(settings.pop("kind", name))
    samples = settings.pop("samples", file.samples)
    if samples is not None and not (type(samples) is int and samples >= 1):
        raise BadInput(f"methods.{name}.samples must be a whole number of samples, 1 or more, not {samples!r}")
    try:
        spec = METHODS[kind]
        initial = InitialStateConfig.model_validate(
            {
                section: _overridden(section, settings.pop(section, {}), getattr(file, section))
                for section in InitialStateConfig.model_fields
            }
        )
        return MethodEntry(name, kind, spec.settings(settings), samples, initial.network, initial.base)
    except ValidationError as error:
        raise BadInput(describe_error(error, f"methods.{name}.")) from None
    except BadInput as error:
        raise BadInput(f"methods.{name}: {error}") from None


def _overridden(section: str, keys: Any, shared: ConfigSection | None) -> dict[str, Any] | None:
    """Return a section of the config with a method's own keys applied; None if the config does not have it.

    `base = false` leaves the section out: such a method learns the base step like any other.
    """
    if section == "base" and keys is False:
        return None
    if not isinstance(keys, dict):
        raise BadInput(f"{section} must be a table of keys, not {keys!r}")
    if shared is None and keys:
        raise BadInput(f"{section} changes keys of a section that the config does not have: add [{section}]")
    return None if shared is None else shared.model_dump() | keys


def _check_published(file: ConfigFile) -> None:
    """Refuse references to tables, rows, orders or methods that do not exist."""
    for name in file.shows:
        if name not in TABLES and name not in FIGURES:
            raise BadInput(f"shows: the paper has no '{name}': choose from {', '.join([*TABLES, *FIGURES])}")
    for order, rows in file.published.items():
        if order not in file.orders:
            raise BadInput(f"published.{order}: the config has no such order: add it or remove the entry")
        for method, (table, row) in rows.items():
            key = f"published.{order}.{method}"
            if method not in file.methods:
                raise BadInput(f"{key}: the config has no such method: add it or remove the key")
            if find_published_row(table, row) is None:
                raise BadInput(f"{key}: the paper has no row '{row}' in '{table}'")
