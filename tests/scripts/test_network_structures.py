"""The files that the wake side reads are what the script writes today."""

from __future__ import annotations

import pytest

from scripts.network_structures import STRUCTURES, WEIGHTS, structure, structure_text, table_text, tensor_table
from siesta.backbones import BACKBONES, VECTOR_NETWORKS
from siesta.backbones.efficientnet_lite import VARIANTS


@pytest.mark.parametrize("name", [*BACKBONES.own, *VECTOR_NETWORKS])
def test_a_structure_is_up_to_date(name: str) -> None:
    assert (STRUCTURES / f"{name}.json").read_text("utf-8") == structure_text(structure(name))


def test_there_is_no_other_structure() -> None:
    assert {file.stem for file in STRUCTURES.iterdir()} <= {*BACKBONES.own, *VECTOR_NETWORKS}
    assert {file.stem for file in WEIGHTS.iterdir()} == set(VARIANTS)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_table_of_tensors_is_up_to_date(name: str) -> None:
    assert (WEIGHTS / f"{name}.json").read_text("utf-8") == table_text(tensor_table(name, VARIANTS[name]))
