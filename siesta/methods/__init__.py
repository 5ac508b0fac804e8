"""What the harness compares, one method a file, all made and used alike: see `contracts.Method`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from siesta.contracts import Method
from siesta.methods.er import ER
from siesta.methods.finetune import Finetune
from siesta.methods.ncm import NCM
from siesta.methods.offline import Offline, OfflineWhole
from siesta.methods.remind import Remind
from siesta.methods.settings import MethodSettings
from siesta.methods.siesta import SiestaER, SiestaMethod
from siesta.methods.slda import SLDA

__all__ = ["METHODS", "Kind", "MethodSettings"]


@dataclass(frozen=True)
class Kind:
    """A method under a name.

    Attributes:
        make: Its class: folder, settings and seed give a method.
        preset: Settings in which the name differs from its class.
        sleeps: Whether the end of a step changes it, so that it is asked before and after.
        offline: Whether it is given all samples at once.
    """

    make: Callable[[Path, Any, int], Method]
    preset: Mapping[str, Any] = field(default_factory=dict)
    sleeps: bool = False
    offline: bool = False

    @property
    def codec(self) -> str:
        """The codes that it eats."""
        return str(self.make.codec)  # type: ignore[attr-defined]

    @property
    def model(self) -> type[MethodSettings]:
        """What it can be told."""
        model: type[MethodSettings] = self.make.Settings  # type: ignore[attr-defined]
        return model

    def settings(self, values: Mapping[str, Any]) -> MethodSettings:
        """Checked settings, the name's own where nothing else is said."""
        return self.model.model_validate({**self.preset, **values})


METHODS: dict[str, Kind] = {
    "siesta": Kind(SiestaMethod, sleeps=True),
    "siesta_aug": Kind(SiestaMethod, {"augment": "mixup_cutmix"}, sleeps=True),
    "siesta_awake": Kind(SiestaMethod, {"updates": 0}),
    "siesta_uniform": Kind(SiestaMethod, {"policy": "uniform"}, sleeps=True),
    "siesta_er": Kind(SiestaER, sleeps=True),
    "remind": Kind(Remind),
    "er": Kind(ER),
    "slda": Kind(SLDA),
    "ncm": Kind(NCM),
    "finetune": Kind(Finetune),
    "offline": Kind(Offline, offline=True),
    "offline_whole": Kind(OfflineWhole, offline=True),
}
