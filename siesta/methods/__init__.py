"""The methods that the harness compares, by name, one file each; all implement `contracts.Method`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from siesta.contracts import Method
from siesta.head.kinds import COSINE
from siesta.methods.batch.bic import BiC
from siesta.methods.batch.der import DER
from siesta.methods.batch.der_pruned import DERPruned
from siesta.methods.batch.dytox import DyTox
from siesta.methods.batch.end_to_end import EndToEnd
from siesta.methods.batch.foster import Foster
from siesta.methods.batch.icarl import ICaRL
from siesta.methods.batch.memo import MEMO
from siesta.methods.batch.podnet import PODNet
from siesta.methods.batch.simple_der import SimpleDER
from siesta.methods.batch.wa import WA
from siesta.methods.er import ER
from siesta.methods.finetune import Finetune
from siesta.methods.ncm import NCM
from siesta.methods.offline import Offline, OfflineWhole
from siesta.methods.remind import Remind
from siesta.methods.settings import MethodSettings
from siesta.methods.siesta import SiestaER, SiestaMethod
from siesta.methods.slda import SLDA
from siesta.registry import Registry, class_of

__all__ = ["METHODS", "MethodSettings", "MethodSpec"]


@dataclass(frozen=True)
class MethodSpec:
    """A named method.

    Attributes:
        make: Its class.
        preset: Settings by which the name differs from the defaults of its class.
        sleeps: Whether `sleep` changes its predictions, so that it is evaluated before and after.
        offline: Whether it gets all samples as one step.
        collects: Whether it computes nothing awake; only its sleep changes its predictions, so that it is evaluated
            after it.
    """

    make: type[Method]
    preset: Mapping[str, Any] = field(default_factory=dict)
    sleeps: bool = False
    offline: bool = False
    collects: bool = False

    @property
    def codec(self) -> str:
        """The codec that its learner must use."""
        return self.make.codec

    @property
    def settings_class(self) -> type[MethodSettings]:
        """The class of its settings."""
        settings_class: type[MethodSettings] = self.make.Settings
        return settings_class

    def settings(self, values: Mapping[str, Any]) -> MethodSettings:
        """Return validated settings: these values over the preset."""
        return self.settings_class.model_validate({**self.preset, **values})


_implements_method = class_of(Method, arguments=3)


def _spec_problem(part: object) -> str | None:
    """Return what is wrong with an object as an entry of `METHODS`, as the end of a sentence; None if nothing is."""
    if not isinstance(part, MethodSpec):
        return f"is of type {type(part).__name__}, not a MethodSpec"
    problem = _implements_method(part.make)
    if problem is not None:
        return problem
    settings: object = part.make.Settings
    valid = isinstance(settings, type) and issubclass(settings, MethodSettings)
    return None if valid else f"has {settings!r} as its Settings, not a subclass of MethodSettings"


METHODS: Registry[MethodSpec] = Registry(
    "method",
    {
        "siesta": MethodSpec(SiestaMethod, sleeps=True),
        "siesta_paper": MethodSpec(SiestaMethod, {"mean_share": 0.0, "crop": 1.0, "head": COSINE}, sleeps=True),
        "siesta_aug": MethodSpec(SiestaMethod, {"augment": "mixup_cutmix"}, sleeps=True),
        "siesta_awake": MethodSpec(SiestaMethod, {"updates": 0}),
        "siesta_uniform": MethodSpec(SiestaMethod, {"policy": "uniform"}, sleeps=True),
        "siesta_er": MethodSpec(SiestaER, sleeps=True),
        "remind": MethodSpec(Remind),
        "er": MethodSpec(ER),
        "slda": MethodSpec(SLDA),
        "ncm": MethodSpec(NCM),
        "finetune": MethodSpec(Finetune),
        "offline": MethodSpec(Offline, offline=True),
        "offline_whole": MethodSpec(OfflineWhole, offline=True),
        "icarl": MethodSpec(ICaRL, collects=True),
        "end_to_end": MethodSpec(EndToEnd, collects=True),
        "bic": MethodSpec(BiC, collects=True),
        "wa": MethodSpec(WA, collects=True),
        "podnet": MethodSpec(PODNet, collects=True),
        "simple_der": MethodSpec(SimpleDER, collects=True),
        "der": MethodSpec(DER, collects=True),
        "der_pruned": MethodSpec(DERPruned, collects=True),
        "memo": MethodSpec(MEMO, collects=True),
        "foster": MethodSpec(Foster, collects=True),
        "dytox": MethodSpec(DyTox, collects=True),
    },
    group="siesta.methods",
    requirement=_spec_problem,
)
