"""The network that learns online, against SGD written out by hand."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch.nn import functional as F

from siesta.backbones import make_backbone
from siesta.batch import Batch
from siesta.contracts import Backbone, SleepDefaults
from siesta.head import Head
from siesta.methods.network import OnlineNetwork
from siesta.methods.settings import OnlineSettings

SETTINGS = OnlineSettings(rate=1.0, momentum=0.8, weight_decay=0.01, layer_decay=0.5)


def backbone(dropout: float = 0.0) -> Backbone:
    made = make_backbone()
    return Backbone(**{**vars(made), "defaults": SleepDefaults(0.01, 0.99, 16.0, dropout)})


def batch(rows: list[int], seed: int = 0) -> Batch:
    latents = torch.randn(len(rows), 80, 2, 2, generator=torch.Generator().manual_seed(seed))
    return Batch(latents, torch.tensor(rows), torch.tensor(rows))


def test_a_new_row_is_a_random_direction_of_its_own() -> None:
    made = backbone()
    rows = []
    for seed in (0, 0, 1):
        network = OnlineNetwork(made, Head.empty(1280, 16.0), SETTINGS, seed)
        network.grow()
        network.grow()
        rows.append(network.head()[0])
    assert torch.equal(rows[0], rows[1]) and not torch.equal(rows[0], rows[2])
    assert torch.allclose(rows[0].norm(dim=1), torch.ones(2)) and abs(float(rows[0][0] @ rows[0][1])) < 0.2


def test_steps_are_those_of_sgd_with_rates_by_layer() -> None:
    """Output and last layer with learned weights, over three steps, of which the second brings a new class."""
    made = backbone()
    network = OnlineNetwork(made, Head.empty(1280, 16.0), SETTINGS, 0)
    network.grow()
    network.grow()
    top = copy.deepcopy(made.top)
    vectors, scale = network.head()[0].clone().requires_grad_(), torch.tensor(16.0, requires_grad=True)
    layers = [layer for layer in reversed(top) if list(layer.parameters())]
    momenta: dict[int, torch.Tensor] = {}
    for number, rows in enumerate(([0, 1, 1], [2, 0], [1])):
        if number == 1:
            network.grow()
            vectors = torch.cat([vectors.detach(), network.head()[0][2:]]).requires_grad_()
            momenta[-1] = torch.cat([momenta[-1], torch.zeros(1, 1280)])
        given, rate = batch(rows, number), 0.01 / (number + 1)
        network.step(given, rate, np.random.default_rng(0))
        logits = scale * F.linear(F.normalize(top(given.latents)), F.normalize(vectors))
        learning = [(-2, scale, rate, 0.0), (-1, vectors, rate, 0.01)]
        for depth, layer in enumerate(layers):
            learning += [(id(one), one, rate * 0.5 ** (depth + 1), 0.01) for one in layer.parameters()]
        gradients = torch.autograd.grad(F.cross_entropy(logits, given.rows), [one for _, one, _, _ in learning])
        with torch.no_grad():
            for (key, parameter, its_rate, decay), gradient in zip(learning, gradients, strict=True):
                change = gradient + decay * parameter
                momenta[key] = 0.8 * momenta[key] + change if key in momenta else change
                parameter -= its_rate * momenta[key]
    assert (
        torch.allclose(network.head()[0], vectors, atol=1e-5) and abs(network.head()[1] - float(scale.detach())) < 1e-4
    )
    for name, expected in top.state_dict().items():
        assert torch.allclose(network.top_state()[name], expected, rtol=1e-3, atol=1e-5), name


def test_a_network_goes_on_from_its_state() -> None:
    made = backbone(dropout=0.2)
    straight, resumed = (OnlineNetwork(made, Head.empty(1280, 16.0), SETTINGS, 0) for _ in range(2))
    straight.grow()
    straight.grow()
    straight.step(batch([0, 1]), 0.01, np.random.default_rng(0))
    straight.grow()
    resumed.load({name: some.clone().contiguous() for name, some in straight.state().items()})
    assert len(resumed) == 3
    for network in (straight, resumed):
        network.step(batch([2, 1], 1), 0.01, np.random.default_rng(1))
        network.grow()
        network.step(batch([3, 0], 2), 0.01, np.random.default_rng(2))
    one, other = straight.state(), resumed.state()
    assert set(one) == set(other) and all(torch.equal(one[name], other[name]) for name in one)
    assert sum(name.startswith("momentum.") for name in one) == 2 + len(list(made.top.parameters()))


def test_what_it_starts_from_is_left_alone() -> None:
    made = backbone()
    before = copy.deepcopy(made.top.state_dict())
    head = Head(torch.tensor([4, 7]), torch.eye(1280)[:2] * 3, torch.tensor([1, 1]), 10.0)
    network = OnlineNetwork(made, head, SETTINGS, 0)
    assert torch.equal(network.head()[0], torch.eye(1280)[:2]) and network.head()[1] == 10.0
    network.step(batch([0, 1]), 0.1, np.random.default_rng(0))
    assert all(torch.equal(before[name], some) for name, some in made.top.state_dict().items())
    assert torch.equal(head.weights(), torch.eye(1280)[:2] * 3)
