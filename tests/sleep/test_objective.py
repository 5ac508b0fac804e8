"""What a training minimises and over which parameters, through the loop and against torch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.contracts import Ids
from siesta.errors import BadInput
from siesta.head import Head
from siesta.head.cosine import unit_vectors
from siesta.sleep.batch import Batch
from siesta.sleep.budget import Budget
from siesta.sleep.cosine_output import CosineOutput
from siesta.sleep.loop import Rehearsal, Samples, rehearse
from siesta.sleep.objective import Objective, all_parameters, cross_entropy
from siesta.sleep.settings import SleepSettings

LATENTS = torch.rand(30, 3, 2, 2, generator=torch.Generator().manual_seed(9))
SETTINGS = SleepSettings(0.1, 0.9, 0.0, batch_size=8, momentum=0.0, weight_decay=0.0, mean_share=0.0, schedule="steps")


def make_top() -> nn.Sequential:
    torch.manual_seed(0)
    lower = nn.Sequential(nn.Conv2d(3, 6, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU())
    return nn.Sequential(lower, nn.Sequential(nn.Conv2d(6, 6, 1, bias=False), nn.BatchNorm2d(6)), nn.Flatten())


def make_head() -> Head:
    head = Head.empty(features=24, scale=5.0)
    for class_id in range(3):
        head.set_recent(class_id, np.random.default_rng(class_id).random(24), 1)
    return head


def load(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
    return ids, LATENTS[torch.from_numpy(ids)], torch.from_numpy(ids) % 3


def run(objective: Objective | None, updates: int) -> tuple[nn.Sequential, Rehearsal]:
    top = make_top()
    ids = itertools.repeat(np.arange(30))
    return top, rehearse(top, make_head(), Samples(ids, load), Budget(updates=updates), SETTINGS, None, None, objective)


def batches(updates: int) -> Iterator[Tensor]:
    """Yield the indices of the samples of each step that `run` takes."""
    indices = list(itertools.islice(itertools.cycle(range(30)), updates))
    for start in range(0, updates, SETTINGS.batch_size):
        yield torch.tensor(indices[start : start + SETTINGS.batch_size])


def changed_between(before: nn.Module, after: nn.Module) -> set[str]:
    old, new = before.state_dict(), after.state_dict()
    return {name for name in old if not torch.equal(old[name], new[name])}


def test_cross_entropy_weighs_both_labels() -> None:
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    batch = Batch(LATENTS[:3], torch.tensor([0, 1, 2]), torch.tensor([3, 3, 0]), 0.3)
    logs = logits.numpy() - np.log(np.exp(logits.numpy()).sum(axis=1, keepdims=True))
    expected = -np.mean(0.3 * logs[[0, 1, 2], [0, 1, 2]] + 0.7 * logs[[0, 1, 2], [3, 3, 0]])
    assert float(cross_entropy(batch, torch.zeros(3, 2), logits)) == pytest.approx(expected, rel=1e-5)


def test_without_mixing_it_is_plain_cross_entropy() -> None:
    rows = torch.tensor([0, 1, 2, 2, 1, 0])
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    batch = Batch(LATENTS[:6], rows, rows)
    assert torch.equal(cross_entropy(batch, torch.zeros(6, 2), logits), F.cross_entropy(logits, rows))


def test_a_loss_sees_batch_features_and_logits() -> None:
    """Distillation from a copy of the top, written as a loss, equals its steps written out."""
    teacher = make_top().eval()
    teacher.state_dict()["1.0.weight"].mul_(0.5)

    def distillation(batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
        assert logits.shape == (len(batch.rows), 3)
        with torch.no_grad():
            wanted = teacher(batch.latents)
        return F.mse_loss(features, wanted) + F.cross_entropy(logits, batch.rows)

    top, result = run(Objective(distillation), updates=16)
    expected = make_top().eval()
    output = CosineOutput(make_head(), torch.device("cpu"))
    losses = []
    optimizer = sgd(expected, output)
    for chosen in batches(16):
        features = expected(LATENTS[chosen])
        loss = F.mse_loss(features, teacher(LATENTS[chosen]).detach()) + F.cross_entropy(output(features), chosen % 3)
        losses.append(take_step(optimizer, loss))
    assert result.losses == pytest.approx(losses, rel=1e-5)
    for found, wanted in zip(top.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(found, wanted)


def test_live_norms_train_as_torch_does_and_are_kept() -> None:
    top, result = run(Objective(norms="live"), updates=24)
    expected, output = make_top().train(), CosineOutput(make_head(), torch.device("cpu"))
    optimizer = sgd(expected, output)
    losses = [
        take_step(optimizer, F.cross_entropy(output(expected(LATENTS[chosen])), chosen % 3)) for chosen in batches(24)
    ]
    assert result.losses == pytest.approx(losses, rel=1e-5)
    for name, tensor in expected.state_dict().items():
        torch.testing.assert_close(top.state_dict()[name], tensor)
    assert not any(module.training for module in top.modules())


def sgd(top: nn.Module, output: CosineOutput) -> torch.optim.Optimizer:
    """Return plain SGD with the maximum objective rates of `SETTINGS`."""
    first, second, _ = top.children()
    groups: list[dict[str, Any]] = [
        {"params": first.parameters(), "lr": 0.081},
        {"params": second.parameters(), "lr": 0.09},
        {"params": output.parameters(), "lr": 0.1},
    ]
    return torch.optim.SGD(groups)


def take_step(optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    """Take a step, then lower the objective rates to a tenth, as the schedule of `SETTINGS` does within three steps."""
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] /= 10
    return float(loss.detach())


def test_frozen_norms_keep_their_statistics() -> None:
    top, _ = run(None, updates=24)
    changed = changed_between(make_top(), top)
    assert changed and not any("running" in name or "num_batches" in name for name in changed)


def test_a_live_norm_uses_its_running_statistics_for_a_single_sample() -> None:
    """Nine updates in batches of eight: the ninth sample alone has no statistics, and changes none."""
    top, _ = run(Objective(norms="live"), updates=9)
    assert int(top.state_dict()["0.1.num_batches_tracked"]) == 1


def test_only_the_trained_parameters_change() -> None:
    head_only = run(Objective(parameters=lambda _top, output: output.parameters()), updates=24)
    assert changed_between(make_top(), head_only[0]) == set() and head_only[1].head.scale != 5.0
    top_only, result = run(Objective(parameters=lambda top, _output: top.parameters()), updates=24)
    directions = unit_vectors(result.head.weights())
    np.testing.assert_allclose(directions, unit_vectors(make_head().weights()), atol=1e-6)
    assert result.head.scale == 5.0 and changed_between(make_top(), top_only)


def test_live_norms_of_layers_that_do_not_learn_stay_frozen() -> None:
    objective = Objective(norms="live", parameters=lambda top, output: [*top[1].parameters(), *output.parameters()])
    changed = changed_between(make_top(), run(objective, updates=24)[0])
    assert {name.split(".")[0] for name in changed} == {"1"} and "1.1.running_mean" in changed


def test_a_training_that_lets_all_learn_again_does_so() -> None:
    top, output = make_top(), CosineOutput(make_head(), torch.device("cpu"))
    Objective(parameters=lambda _top, output: output.parameters()).select(top, output)
    assert not any(parameter.requires_grad for parameter in top.parameters())
    Objective().select(top, output)
    assert all(parameter.requires_grad for parameter in all_parameters(top, output))


def test_an_unknown_norm_mode_and_nothing_to_train_are_refused() -> None:
    mode: Any = "melted"
    with pytest.raises(BadInput, match="there is no norm mode 'melted': choose one of frozen, live"):
        Objective(norms=mode)
    with pytest.raises(BadInput, match="no parameter of top and output is trained"):
        run(Objective(parameters=lambda _top, _output: ()), updates=8)


def test_the_network_to_train_shares_its_tensors() -> None:
    for objective in (Objective(), Objective(norms="live")):
        top = make_top()
        network = objective.prepared(top)
        assert {id(one) for one in network.parameters()} == {id(one) for one in top.parameters()}
        torch.testing.assert_close(network(LATENTS[:2]), top(LATENTS[:2]))
