"""Batch learners on a tiny network, taken through steps."""

from __future__ import annotations

from typing import Any

from siesta.methods import METHODS
from siesta.methods.batch.learner import BatchLearner
from tests.methods.conftest import Template, small_settings
from tests.methods.tiny import TINY

FIRST = [0, 1] * 4
SECOND = [2, 3] * 4


def make(templates: dict[str, Template], name: str, seed: int = 3, **settings: Any) -> Any:
    """Return a method that starts without classes."""
    spec = METHODS[name]
    method = spec.make(templates[TINY].folder(), spec.settings({**small_settings(name), **settings}), seed)
    assert isinstance(method, BatchLearner)
    return method


def step(templates: dict[str, Template], method: BatchLearner[Any], classes: list[int], seed: int = 0) -> None:
    """Let a method learn images of these classes and sleep."""
    method.learn_many(*templates[TINY].samples(classes, seed))
    method.sleep()


def after_two_steps(templates: dict[str, Template], name: str, **settings: Any) -> Any:
    """Return a method that has learned classes 0 and 1, then 2 and 3."""
    method = make(templates, name, **settings)
    step(templates, method, FIRST)
    step(templates, method, SECOND)
    return method
