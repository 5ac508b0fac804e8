"""Selections by name; a selection chooses which samples of a class stay in a memory that cannot hold all of them."""

from siesta.contracts import Selection
from siesta.registry import Registry, function_of
from siesta.selections.herding import herding
from siesta.selections.random import random

__all__ = ["SELECTIONS", "herding", "random"]

SELECTIONS: Registry[Selection] = Registry(
    "selection",
    {"random": random, "herding": herding},
    group="siesta.selections",
    requirement=function_of(arguments=3),
)
