"""Every layout names every tensor of its network once, as the lists in `names/` have them."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from siesta.backbones import BACKBONES
from siesta.backbones.checkpoint_layouts import siesta_layout

NAMES = Path(__file__).parent / "names"
CASES = [(name, layout) for name, spec in BACKBONES.items() for layout in spec.layouts]


def network_of(name: str) -> nn.Sequential:
    return nn.Sequential(*BACKBONES[name].layers(224))


def tensors_of(network: nn.Sequential) -> set[str]:
    return {name for name in network.state_dict() if not name.endswith("num_batches_tracked")}


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_a_layout_maps_all_tensors_to_the_projects_names(name: str, layout: str) -> None:
    network = network_of(name)
    names = BACKBONES[name].layouts[layout].tensors(network)
    assert set(names) == tensors_of(network)
    assert len(set(names.values())) == len(names)
    file = NAMES / f"{name}-{layout}.txt"
    if file.exists():
        listed = [line.split()[0].removeprefix("model.") for line in file.read_text().splitlines()]
        assert [alias for alias in listed if alias in names.values()] == list(names.values()), "in the same order"


@pytest.mark.parametrize("name", BACKBONES)
def test_our_own_layout_prefixes_our_own_names(name: str) -> None:
    network = network_of(name)
    assert siesta_layout().tensors(network) == {
        tensor: f"layers.{tensor}" for tensor in network.state_dict() if tensor in tensors_of(network)
    }


def test_only_our_own_layout_is_not_foreign() -> None:
    assert not siesta_layout().foreign
    assert all(layout.foreign for spec in BACKBONES.values() for layout in spec.layouts.values())
