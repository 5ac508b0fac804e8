"""SIESTA itself: the learner of this package, on codes that are already made.

Its variants are settings of the one method: `siesta_aug` mixes pairs asleep, `siesta_awake` never sleeps,
`siesta_uniform` rehearses without balancing classes, `siesta_er` stores pictures and trains the whole network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, field_validator

from siesta import resources
from siesta.augment import make_augmentation
from siesta.contracts import Codes, OnProgress, Resources
from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.methods.home import Home
from siesta.methods.settings import MethodSettings
from siesta.policies import DEFAULT_POLICY, make_policy

__all__ = ["SiestaER", "SiestaMethod", "SiestaSettings"]

_SLEEP = 15  # purpose number of the random stream of a sleep


def _known(name: str, make: Callable[[str], object]) -> str:
    """The name, if something is made of it; pydantic wants a ValueError otherwise."""
    try:
        make(name)
    except BadInput as error:
        raise ValueError(str(error)) from None
    return name


class SiestaSettings(MethodSettings):
    """How it sleeps; the paper's values unless the backbone has its own.

    Attributes:
        updates: m, updates of each sleep; 0 never sleeps.
        policy: What is rehearsed.
        augment: How pairs are mixed; None mixes nothing.
        batch_size: Samples a step.
        rate: OneCycle maximum of the last layer; the backbone's own, scaled with the batch, when None.
        layer_decay: Factor on the rate for each layer below the last; the backbone's own when None.
        mean_share: What class vectors are after a sleep, see `SleepSettings`; 0 is the paper's variant.
    """

    updates: Annotated[int, Field(ge=0)] = 9600
    policy: str = DEFAULT_POLICY
    augment: str | None = None
    batch_size: Annotated[int, Field(ge=1)] = 64
    rate: Annotated[float, Field(gt=0)] | None = None
    layer_decay: Annotated[float, Field(gt=0, le=1)] | None = None
    mean_share: Annotated[float, Field(ge=0, le=1)] = 0.5

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, name: str) -> str:
        return _known(name, make_policy)

    @field_validator("augment")
    @classmethod
    def _known_augmentation(cls, name: str | None) -> str | None:
        return None if name is None else _known(name, make_augmentation)

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """M a sleep, a sleep a step."""
        return self.updates * len(sizes)

    def planned_batch(self) -> int:
        """Samples of a training step."""
        return self.batch_size


class SiestaMethod:
    """A `Siesta` in its folder, taught with codes and put to sleep at the end of each step."""

    codec: ClassVar[str] = "opq"
    Settings = SiestaSettings

    def __init__(self, folder: Path, settings: SiestaSettings, seed: int) -> None:
        self._settings, self._seed = settings, seed
        self._learner = Siesta.open(folder)
        self._home = Home(folder, self.codec, self._learner)

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Stores each sample and counts it into its class's mean."""
        home = self._home
        home.check(codes, labels)
        with home.counter.timed("wake"):
            self._learner.learn_encoded(codes, labels)
        for label in labels:
            home.row_of(label)
        home.seen += len(codes)
        home.counter.spend("wake", looked=len(codes))

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Consolidates for m updates."""
        settings = self._settings
        if not settings.updates:
            return
        with self._home.counter.timed("sleep"):
            report = self._learner.sleep(
                updates=settings.updates,
                policy=settings.policy,
                augment=settings.augment,
                batch_size=settings.batch_size,
                rate=settings.rate,
                layer_decay=settings.layer_decay,
                mean_share=settings.mean_share,
                seed=int(np.random.default_rng((self._seed, _SLEEP, self._home.seen)).integers(2**63)),
                on_progress=on_progress,
            )
        if report.interrupted:  # a step counts whole or not at all
            raise KeyboardInterrupt
        self._home.trained("sleep", report.updates)
        self._home.counter.spend("sleep", embedded=report.embedded)

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """The best labels of each sample."""
        home = self._home
        home.check(codes)
        with home.counter.timed("inference"):
            answers = self._learner.predict_encoded(codes, top)
        home.counter.spend("inference", looked=len(codes), scored=len(codes) * len(home.labels))
        return [[label for label, _ in answer.top] for answer in answers]

    def resources(self) -> Resources:
        """What it has cost so far."""
        means = resources.means(len(self._home.labels), self._learner.pipeline.backbone.features)
        return self._home.resources(buffer=True, means=means)

    def save(self) -> None:
        """The learner is on disk already; what it cost goes beside it."""
        self._home.save({})

    def close(self) -> None:
        """Lets go of the learner's files."""
        self._learner.close()


class SiestaER(SiestaMethod):
    """The same on stored pictures: the paper's veridical variant, all of the network learns asleep."""

    codec: ClassVar[str] = "raw"
