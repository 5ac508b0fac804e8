"""The network of online methods against SGD written out by hand."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch.nn import functional as F

from siesta.backbones import make_backbone
from siesta.contracts import Backbone, SleepDefaults
from siesta.head import Head
from siesta.methods.network import OnlineNetwork
from siesta.methods.settings import OnlineSettings
from siesta.sleep.batch import Batch

SETTINGS = OnlineSettings(lr=1.0, momentum=0.8, weight_decay=0.01, layer_decay=0.5)


def backbone(dropout: float = 0.0) -> Backbone:
    network = make_backbone()
    return Backbone(**{**vars(network), "defaults": SleepDefaults(0.01, 0.99, 16.0, dropout)})


def batch(rows: list[int], seed: int = 0) -> Batch:
    latents = torch.randn(len(rows), 80, 2, 2, generator=torch.Generator().manual_seed(seed))
    return Batch(latents, torch.tensor(rows), torch.tensor(rows))


def test_a_new_row_is_a_random_unit_vector_of_its_seed() -> None:
    start = backbone()
    rows = []
    for seed in (0, 0, 1):
        network = OnlineNetwork(start, Head.empty(1280, 16.0), SETTINGS, seed)
        network.add_class()
        network.add_class()
        rows.append(network.head()[0])
    assert torch.equal(rows[0], rows[1]) and not torch.equal(rows[0], rows[2])
    assert torch.allclose(rows[0].norm(dim=1), torch.ones(2)) and abs(float(rows[0][0] @ rows[0][1])) < 0.2


def test_steps_equal_sgd_with_learning_rates_by_layer() -> None:
    """Three steps, of which the second adds a class, with the gradients of a plain copy of the network."""
    start = backbone()
    network = OnlineNetwork(start, Head.empty(1280, 16.0), SETTINGS, 0)
    network.add_class()
    network.add_class()
    top = copy.deepcopy(start.top)
    vectors, scale = network.head()[0].clone().requires_grad_(), torch.tensor(16.0, requires_grad=True)
    layers = [layer for layer in reversed(top) if list(layer.parameters())]
    momenta: dict[int, torch.Tensor] = {}
    for number, rows in enumerate(([0, 1, 1], [2, 0], [1])):
        if number == 1:
            network.add_class()
            vectors = torch.cat([vectors.detach(), network.head()[0][2:]]).requires_grad_()
            momenta[-1] = torch.cat([momenta[-1], torch.zeros(1, 1280)])
        step_batch = batch(rows, number)
        lr = 0.01 / (number + 1)
        network.step(step_batch, lr, np.random.default_rng(0))
        logits = scale * F.linear(F.normalize(top(step_batch.latents)), F.normalize(vectors))
        parameters = [(-2, scale, lr, 0.0), (-1, vectors, lr, 0.01)]  # key, tensor, learning rate, weight decay
        for depth, layer in enumerate(layers):
            parameters += [(id(one), one, lr * 0.5 ** (depth + 1), 0.01) for one in layer.parameters()]
        gradients = torch.autograd.grad(F.cross_entropy(logits, step_batch.rows), [one for _, one, _, _ in parameters])
        with torch.no_grad():
            for (key, parameter, layer_lr, decay), gradient in zip(parameters, gradients, strict=True):
                change = gradient + decay * parameter
                momenta[key] = 0.8 * momenta[key] + change if key in momenta else change
                parameter -= layer_lr * momenta[key]
    assert (
        torch.allclose(network.head()[0], vectors, atol=1e-5) and abs(network.head()[1] - float(scale.detach())) < 1e-4
    )
    for name, expected in top.state_dict().items():
        assert torch.allclose(network.top_state()[name], expected, rtol=1e-3, atol=1e-5), name


def test_a_network_resumes_from_its_state() -> None:
    start = backbone(dropout=0.2)
    straight, resumed = (OnlineNetwork(start, Head.empty(1280, 16.0), SETTINGS, 0) for _ in range(2))
    straight.add_class()
    straight.add_class()
    straight.step(batch([0, 1]), 0.01, np.random.default_rng(0))
    straight.add_class()
    resumed.load({name: tensor.clone().contiguous() for name, tensor in straight.state().items()})
    assert len(resumed) == 3
    for network in (straight, resumed):
        network.step(batch([2, 1], 1), 0.01, np.random.default_rng(1))
        network.add_class()
        network.step(batch([3, 0], 2), 0.01, np.random.default_rng(2))
    one, other = straight.state(), resumed.state()
    assert set(one) == set(other) and all(torch.equal(one[name], other[name]) for name in one)
    assert sum(name.startswith("momentum.") for name in one) == 2 + len(list(start.top.parameters()))


def test_backbone_and_head_are_not_changed() -> None:
    start = backbone()
    before = copy.deepcopy(start.top.state_dict())
    head = Head(np.array([4, 7]), np.eye(2, 1280, dtype=np.float32) * 3, np.array([1, 1]), 10.0)
    network = OnlineNetwork(start, head, SETTINGS, 0)
    assert torch.equal(network.head()[0], torch.eye(1280)[:2]) and network.head()[1] == 10.0
    network.step(batch([0, 1]), 0.1, np.random.default_rng(0))
    assert all(torch.equal(before[name], tensor) for name, tensor in start.top.state_dict().items())
    assert np.array_equal(head.weights(), np.eye(2, 1280) * 3)


def test_a_step_takes_another_loss() -> None:
    """A loss on z alone moves the top and leaves the output where it was."""
    network = OnlineNetwork(backbone(), Head.empty(1280, 16.0), SETTINGS.model_copy(update={"weight_decay": 0.0}), 0)
    network.add_class()
    before = {name: tensor.clone() for name, tensor in network.state().items()}
    network.step(batch([0, 0]), 0.01, np.random.default_rng(0), lambda _batch, z, logits: z.mean() + 0 * logits.sum())
    changed = {name for name, tensor in network.state().items() if name in before and not tensor.equal(before[name])}
    assert changed and all(name.startswith("top.") for name in changed)
