"""Simple-DER: a share of the channels of each network stays."""

from __future__ import annotations

from siesta.methods.batch.channels import inner_channels
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.conftest import Template


def test_each_network_is_pruned_to_a_share_of_its_channels(templates: dict[str, Template]) -> None:
    method = make(templates, "simple_der", kept=0.5)
    step(templates, method, FIRST)
    step(templates, method, SECOND)
    widths = [[len(inner) for inner in inner_channels(branch)] for branch in method.network.top.branches]
    assert widths == [[4, 8], [4, 8]]
    bytes_of = method.resources().bytes
    assert bytes_of["copies"] > bytes_of["network"] / 2, "the previous network and the weights to start from"
