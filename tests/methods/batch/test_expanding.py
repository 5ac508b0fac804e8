"""The auxiliary output and the training of the output alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from siesta.methods.batch.expanding import AuxiliaryOutput, auxiliary_rows, expanding_loss, trained_parameters
from siesta.methods.batch.heads import LinearHead
from siesta.methods.batch.network import ExpandingNetwork
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.batch.test_distillation import log_softmax, numbers
from tests.methods.conftest import Template


def test_old_classes_are_one_in_the_auxiliary_target() -> None:
    rows = np.array([0, 3, 4, 5, 2])
    expected = [0 if row < 4 else row - 4 + 1 for row in rows]
    assert auxiliary_rows(torch.from_numpy(rows), 4).tolist() == expected


def test_the_loss_has_both_parts() -> None:
    logits, auxiliary, rows = numbers(4, 6), numbers(4, 3, seed=1), np.array([0, 3, 4, 5])
    first = -log_softmax(logits)[np.arange(4), rows].mean()
    second = -log_softmax(auxiliary)[np.arange(4), [0, 0, 1, 2]].mean()
    found = expanding_loss(torch.from_numpy(logits), torch.from_numpy(auxiliary), torch.from_numpy(rows), 4, 0.5)
    assert float(found) == pytest.approx(first + 0.5 * second)


def test_the_auxiliary_output_reads_the_newest_features() -> None:
    output = AuxiliaryOutput(LinearHead(4, 3), 2, 2)
    features = torch.randn(5, 4)
    assert torch.equal(output(features), output.main(features))
    assert torch.equal(output.newest(features), output.auxiliary(features[:, 2:]))


def test_only_trunk_newest_branch_and_output_are_trained() -> None:
    network = ExpandingNetwork(nn.Linear(4, 3), nn.Linear(3, 2), 2)
    network.grow(2)
    network.grow(2)
    trained = {id(parameter) for parameter in trained_parameters(network, network.output)}
    expected = [network.top.trunk, network.top.branches[1], network.output]
    assert trained == {id(parameter) for part in expected for parameter in part.parameters()}


def test_the_output_is_trained_anew_on_balanced_exemplars(templates: dict[str, Template]) -> None:
    method = make(templates, "der", exemplars=4, classifier_epochs=3)
    step(templates, method, FIRST)
    updates = method.resources().updates
    step(templates, method, SECOND)
    balanced = 4 * 2  # two of each class
    assert method.resources().updates - updates == 2 * (len(SECOND) + 4) + 3 * balanced
