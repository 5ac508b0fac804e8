"""What SIESTA is compared with, one method a file, all made and used alike: see `contracts.Method`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from siesta.contracts import Method
from siesta.methods.er import ER
from siesta.methods.finetune import Finetune
from siesta.methods.ncm import NCM
from siesta.methods.offline import Offline, OfflineWhole
from siesta.methods.remind import Remind
from siesta.methods.settings import MethodSettings
from siesta.methods.slda import SLDA

__all__ = [
    "ER",
    "METHODS",
    "NCM",
    "SLDA",
    "Finetune",
    "MethodClass",
    "MethodSettings",
    "Offline",
    "OfflineWhole",
    "Remind",
]


class MethodClass(Protocol):
    """A class of methods: `codec` names the codes that it eats, `Settings` says what it can be told."""

    @property
    def codec(self) -> str:  # noqa: D102
        ...

    @property
    def Settings(self) -> type[MethodSettings]:  # noqa: D102, N802
        ...

    def __call__(self, folder: Path, settings: Any, seed: int) -> Method:  # noqa: D102
        ...


METHODS: dict[str, MethodClass] = {
    "remind": Remind,
    "er": ER,
    "slda": SLDA,
    "ncm": NCM,
    "finetune": Finetune,
    "offline": Offline,
    "offline_whole": OfflineWhole,
}
