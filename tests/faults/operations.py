"""A small learner, and the operations on it that are killed, refused by the disk and repeated."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unittest import mock

import numpy as np
import numpy.typing as npt

from siesta.backbones import BACKBONES
from siesta.codecs import CODECS
from siesta.codecs.opq import OPQ
from siesta.contracts import Latents, LatentShape, Normalization
from siesta.learner import Siesta, state
from siesta.learner.integrity import repair
from siesta.service.tokens import TokenStore
from siesta.store import settings
from siesta.store.settings import read_settings, write_settings
from tests.registry.outside_parts.network import THREE_LAYERS

__all__ = ["OPERATIONS", "Operation", "make_learner", "open_learner", "picture", "use_small_parts"]


class RandomOPQ(OPQ):
    """OPQ with random centroids: made in no time, without images."""

    name = "random_opq"
    needs_fit = False

    @classmethod
    def fit(
        cls,
        _vectors: Latents,
        seed: int,
        _normalization: Normalization | None = None,
        *,
        codebooks: int = 2,
        bits: int = 4,
    ) -> Self:
        centroids = np.random.default_rng(seed).random((codebooks, 2**bits, 24 // codebooks), dtype=np.float32)
        return cls(np.eye(24, dtype=np.float32), centroids)

    @classmethod
    def check(cls, latent_shape: LatentShape, *, codebooks: int = 2, bits: int = 4) -> None:
        pass


_LABELS = ["ant", "bee", "cat"]
_SLEEPS = 7  # so many that the next one removes a generation
_OF_FORMAT_4 = """
    DROP TABLE rejected;
    PRAGMA user_version = 4;
"""
_OF_FORMAT_3 = f"""
    {_OF_FORMAT_4}
    DROP TABLE gram;
    DROP TABLE class_sums;
    DROP TABLE counted_since;
    ALTER TABLE samples DROP COLUMN counted;
    PRAGMA user_version = 3;
"""
_OF_FORMAT_2 = f"""
    {_OF_FORMAT_3}
    DELETE FROM settings WHERE name IN ('format', 'checksum');
    DROP TABLE thumbnails;
    PRAGMA user_version = 2;
"""
_OF_FORMAT_1 = f"""
    ALTER TABLE classes DROP COLUMN held;
    ALTER TABLE samples DROP COLUMN held;
    ALTER TABLE generations DROP COLUMN since;
    DROP TABLE in_use;
    DROP TABLE audit;
    DROP TABLE drift;
    {_OF_FORMAT_2}
    PRAGMA user_version = 1;
"""


def use_small_parts() -> None:
    """Let this process, which runs operations only, find the small parts, and fold the statistics of few images."""
    BACKBONES["three_layers"] = THREE_LAYERS
    CODECS["random_opq"] = RandomOPQ
    state._FEWEST_TO_FOLD = 2


def picture(number: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def make_learner(path: Path, engine: str) -> None:
    """Make a closed learner with fifteen samples, some of them learned since the last of seven sleeps."""
    network: Any = {"backbone": "three_layers", "cut": 2, "weights": "random", "image_size": 32}
    network["head"] = "discriminant"  # it stores all that a cosine head does, and more
    with Siesta.create(path, memory="20 samples", codec="random_opq", engine=engine, **network) as learner:
        learner.learn_many([picture(number) for number in range(10)], [_LABELS[number % 3] for number in range(10)])
        for number in range(_SLEEPS):
            learner.sleep(updates=2, batch_size=4)
            if number > 2:
                learner.learn_one(picture(10 + number), _LABELS[number % 3])
        learner.learn_one(picture(20), "late")
        learner.keep_thumbnails({11: b"thumbnail of a bee", 15: b"thumbnail of a late one"})
    TokenStore(path).new("ask")


def open_learner(path: Path, durability: str = "process") -> Siesta:
    return Siesta.open(path, durability=durability, engine="torch")


Acknowledge = Callable[[], None]


@dataclass(frozen=True)
class Operation:
    """Something that is done to a learner.

    Attributes:
        run: Does it, with a durability, and acknowledges each step after which its result must last.
        prepare: Changes the learner before; no learner is there before when None.
        damages: Whether it is prepared by damage, which `repair` mends.
    """

    run: Callable[[Path, str, Acknowledge], None]
    prepare: Callable[[Path], None] | None = lambda _: None
    damages: bool = False


def _with_learner(*steps: Callable[[Siesta], object], durability: str | None = None) -> Operation:
    """Return the operation of opening a learner, taking each step, and closing it; always at a durability if given."""

    def run(path: Path, chosen: str, acknowledge: Acknowledge) -> None:
        with open_learner(path, durability or chosen) as learner:
            for step in steps:
                step(learner)
                acknowledge()

    return Operation(run)


def _learning(number: int, label: str) -> Callable[[Siesta], object]:
    return lambda learner: learner.learn_one(picture(number), label)


def _create(path: Path, _durability: str, acknowledge: Acknowledge) -> None:
    network: Any = {"backbone": "three_layers", "weights": "random", "image_size": 32}
    Siesta.create(path, codec="raw", engine="torch", **network).close()
    acknowledge()


def _refit(learner: Siesta) -> None:
    """Use another codec, and encode one sample from its image."""
    learner.renew_codec(RandomOPQ.fit(np.zeros((0, 24), np.float32), seed=1), 0.5, {11: picture(11)})


def _change_tokens(path: Path, _durability: str, acknowledge: Acknowledge) -> None:
    tokens = TokenStore(path)
    tokens.new("teach")
    acknowledge()
    tokens.revoke(tokens.all()[0].id)
    acknowledge()


def _migrate(path: Path, durability: str, acknowledge: Acknowledge) -> None:
    open_learner(path, durability).close()
    acknowledge()


def _repair(path: Path, _durability: str, acknowledge: Acknowledge) -> None:
    repair(path)
    acknowledge()


def _of_format(number: int, script: str) -> Callable[[Path], None]:
    """Return a preparation that makes a learner with a cosine head in an older format."""

    def prepare(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path / "store.sqlite")) as connection, connection:
            cosine = {**read_settings(connection, path), "head": "cosine"}
            with mock.patch.object(settings, "FORMAT", number):
                write_settings(connection, cosine)
        _executing(script)(path)

    return prepare


def _executing(script: str) -> Callable[[Path], None]:
    """Return a preparation that executes SQL."""

    def prepare(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path / "store.sqlite")) as connection:
            connection.executescript(script)

    return prepare


def _damage_rows_and_files(path: Path) -> None:
    _executing("UPDATE codes SET codes = x'00' WHERE id = 3; DELETE FROM recent; DELETE FROM in_use;")(path)
    for name in ("generations/000006/head.safetensors", "graphs.safetensors"):
        (path / name).write_bytes(b"damaged")


def _damage_statistics(path: Path) -> None:
    """Damage the statistics of the head, and the generation in use, so that they are made under other weights."""
    _executing("UPDATE class_sums SET count = count + 64; DELETE FROM in_use;")(path)


OPERATIONS = {
    "create": Operation(_create, prepare=None),
    "learn": _with_learner(_learning(30, "ant"), _learning(31, "new"), _learning(32, "late")),
    "learn_synced": _with_learner(_learning(33, "ant"), _learning(34, "new"), durability="power"),
    "evict": _with_learner(*(_learning(number, "new") for number in range(40, 48))),
    "thumbnails": _with_learner(
        lambda learner: learner.keep_thumbnails({12: b"a thumbnail", 13: b"another thumbnail"}),
        lambda learner: learner.drop_thumbnails(),
    ),
    "reject": _with_learner(
        lambda learner: learner.reject(picture(60), "ant"),
        lambda learner: learner.reject(picture(61), "bee"),
        lambda learner: learner.reject(picture(62), "bee"),  # the third replaces the first
        lambda learner: learner.forget_sample(17),
    ),
    "rename": _with_learner(lambda learner: learner.rename("ant", "wasp")),
    "merge": _with_learner(lambda learner: learner.merge("cat", "ant")),
    "correct": _with_learner(
        lambda learner: learner.correct(2, "cat"),
        lambda learner: learner.correct(15, "new"),  # the last of its class, with a thumbnail
    ),
    "forget": _with_learner(
        lambda learner: learner.forget_sample(2),
        lambda learner: learner.forget("bee"),
    ),
    "sleep": _with_learner(lambda learner: learner.sleep(updates=2, batch_size=4)),
    "rollback": _with_learner(lambda learner: learner.roll_back(4)),
    "refit": _with_learner(_refit),
    "migrate_from_1": Operation(_migrate, _of_format(1, _OF_FORMAT_1)),
    "migrate_from_2": Operation(_migrate, _of_format(2, _OF_FORMAT_2)),
    "migrate_from_3": Operation(_migrate, _of_format(3, _OF_FORMAT_3)),
    "migrate_from_4": Operation(_migrate, _of_format(4, _OF_FORMAT_4)),
    "tokens": Operation(_change_tokens),
    "repair": Operation(_repair, _damage_rows_and_files, damages=True),
    "repair_statistics": Operation(_repair, _damage_statistics, damages=True),
    "salvage": Operation(_repair, _executing("DROP INDEX samples_by_class;"), damages=True),
}
