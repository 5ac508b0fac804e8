"""The rehearsal loop: its steps against torch, its budgets and its ways to end."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.contracts import Augmentation, Ids, Memory, OnProgress, Progress
from siesta.errors import BadInput
from siesta.head import Head
from siesta.head.cosine import unit_vectors
from siesta.sleep.batch import Batch, id_batches
from siesta.sleep.budget import Budget
from siesta.sleep.cosine_output import CosineOutput, cosine_logits
from siesta.sleep.loop import Pace, Rehearsal, Samples, Trainee, rehearse, rows_of_samples, train, train_step
from siesta.sleep.resume import TrainingCheckpoint
from siesta.sleep.schedule import falling_at
from siesta.sleep.settings import SleepSettings

CPU = torch.device("cpu")
SETTINGS = SleepSettings(lr=0.1, layer_decay=0.9, dropout=0.0, batch_size=8)


def make_top() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 1), nn.Sequential(nn.BatchNorm2d(6), nn.ReLU()), nn.Flatten())


def make_head(classes: int = 3) -> Head:
    head = Head.empty(features=24, scale=5.0)
    for class_id in range(classes):
        head.set_recent(class_id, np.random.default_rng(class_id).random(24), 1)
    return head


LATENTS = torch.rand(30, 3, 2, 2, generator=torch.Generator().manual_seed(9))


def load(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
    return ids, LATENTS[torch.from_numpy(ids)], torch.from_numpy(ids) % 3


def endless(seed: int = 0) -> Iterator[Ids]:
    rng = np.random.default_rng(seed)
    while True:
        yield rng.permutation(30)


def run(
    budget: Budget,
    settings: SleepSettings = SETTINGS,
    on_progress: OnProgress | None = None,
    augment: Augmentation | None = None,
) -> tuple[nn.Sequential, Rehearsal]:
    top = make_top()
    samples = Samples(endless(), load, augment)
    return top, rehearse(top, make_head(), samples, budget, settings, on_progress)


@pytest.mark.parametrize("steps", [4, 10, 47, 1000])
def test_the_learning_rate_of_every_layer_is_that_of_torchs_one_cycle(steps: int) -> None:
    rates = [0.1, 0.099, 0.01]
    groups = [{"params": [nn.Parameter(torch.zeros(1))], "lr": lr} for lr in rates]
    optimizer = torch.optim.SGD(groups)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps, cycle_momentum=False)
    seen: list[float] = []
    run(Budget(updates=8 * steps), SETTINGS, on_progress=lambda progress: seen.append(progress.lr))
    assert len(seen) == steps
    for step in range(steps):
        expected = [group["lr"] for group in optimizer.param_groups]
        assert seen[step] == pytest.approx(expected[0], rel=1e-9)
        assert expected[2] / expected[0] == pytest.approx(0.1)
        optimizer.step()
        if step + 1 < steps:
            schedule.step()


def test_a_small_layer_decay_leaves_the_lower_layers_unchanged() -> None:
    """With a decay of almost nothing the lower layers stay, the head moves."""
    top, result = run(Budget(updates=80), SleepSettings(lr=0.1, layer_decay=1e-6, dropout=0.0, batch_size=8))
    before = make_top()
    assert torch.allclose(top[0].weight, before[0].weight, atol=1e-6)  # type: ignore[arg-type]
    moved, _ = run(Budget(updates=80))
    assert not torch.allclose(moved[0].weight, before[0].weight, atol=1e-3)  # type: ignore[arg-type]
    assert result.head.scale != 5.0


def test_one_step_equals_the_formula_of_sgd() -> None:
    """A single batch: weights move by lr / 25 against the gradient of the paper's loss."""
    settings = SleepSettings(lr=0.5, layer_decay=0.9, dropout=0.0, batch_size=30, weight_decay=0.01)
    top = make_top().eval()
    expected = copy.deepcopy(top)
    rehearse(top, make_head(), Samples(endless(), load), Budget(updates=30), settings)
    vectors = torch.from_numpy(unit_vectors(make_head().weights()))
    ids = next(endless())
    _, latents, rows = load(ids)
    loss = nn.functional.cross_entropy(cosine_logits(expected(latents), vectors, 5.0), rows)
    gradients = torch.autograd.grad(loss, list(expected.parameters()))
    decays = [0.9**2, 0.9**2, 0.9, 0.9]
    for new, old, gradient, decay in zip(top.parameters(), expected.parameters(), gradients, decays, strict=True):
        assert torch.allclose(new, old - 0.5 * decay / 25 * (gradient + 0.01 * old), atol=1e-6)


@pytest.mark.parametrize("momentum", [0.9, 0.5])
def test_adamw_steps_equal_torchs_own(momentum: float) -> None:
    """Two batches of all samples: the first at the full rate, the second at a tenth."""
    settings = SleepSettings(
        0.01, 0.9, 0.0, 30, momentum, weight_decay=0.05, mean_share=0, schedule="steps", optimizer="adamw"
    )
    top = make_top().eval()
    expected = make_top().eval()
    output = CosineOutput(make_head(), CPU)
    result = rehearse(top, make_head(), Samples(endless(), load), Budget(updates=60), settings)
    groups = [
        {"params": output.scale, "lr": 0.01, "weight_decay": 0.0},
        {"params": output.vectors, "lr": 0.01},
        {"params": expected[1].parameters(), "lr": 0.009},
        {"params": expected[0].parameters(), "lr": 0.0081},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(momentum, 0.999), weight_decay=0.05)
    sample_ids = endless()
    for factor in (1.0, 0.1):
        _, latents, rows = load(next(sample_ids))
        for group in optimizer.param_groups:
            group["lr"] *= factor
        optimizer.zero_grad()
        nn.functional.cross_entropy(output(expected(latents)), rows).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    for new, wanted in zip(top.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(new, wanted)
    assert result.head.scale == pytest.approx(output.scale.item())


def test_batch_norm_statistics_stay_frozen_while_its_weights_learn() -> None:
    top, _ = run(Budget(updates=80))
    norm, before = top[1][0], make_top()[1][0]  # type: ignore[index]
    assert torch.equal(norm.running_mean, before.running_mean) and torch.equal(norm.running_var, before.running_var)
    assert not torch.equal(norm.weight, before.weight)


@pytest.mark.parametrize("updates", [1, 7, 8, 9, 100])
def test_an_update_budget_is_kept_exactly(updates: int) -> None:
    _, result = run(Budget(updates=updates))
    assert len(result.sample_ids) == updates and len(result.losses) == math.ceil(updates / 8) and not result.interrupted


def test_the_same_seed_gives_the_same_weights() -> None:
    settings = SleepSettings(lr=0.1, layer_decay=0.9, dropout=0.5, batch_size=8, seed=4)
    (first, a), (second, b) = (run(Budget(updates=64), settings) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(first.parameters(), second.parameters(), strict=True))
    assert np.array_equal(a.head.weights(), b.head.weights()) and a.losses == b.losses
    _, other = run(Budget(updates=64), SleepSettings(lr=0.1, layer_decay=0.9, dropout=0.5, batch_size=8, seed=5))
    assert other.losses != a.losses


def test_a_time_budget_ends_in_time_with_the_schedule_at_its_end() -> None:
    run(Budget(updates=1))  # torch's own first step takes seconds
    seen: list[Progress] = []
    start = time.monotonic()
    run(Budget(seconds=0.5), on_progress=lambda progress: seen.append(progress))
    assert time.monotonic() - start < 2.0
    rates = [progress.lr for progress in seen]
    assert max(rates) > 0.09 and rates[-1] < 0.02 and seen[-1].fraction > 0.9
    assert [progress.fraction for progress in seen] == sorted(progress.fraction for progress in seen)


def test_a_callback_that_returns_true_ends_the_loop() -> None:
    _, result = run(Budget(updates=800), on_progress=lambda progress: progress.updates >= 24)
    assert result.interrupted and len(result.sample_ids) == 24 and np.isfinite(result.head.weights()).all()


def test_ctrl_c_ends_the_loop_with_what_was_learned() -> None:
    calls = itertools.count()

    def interrupting(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return load(ids)

    result = rehearse(make_top(), make_head(), Samples(endless(), interrupting), Budget(updates=800), SETTINGS)
    assert result.interrupted and len(result.sample_ids) == 24


def test_ctrl_c_before_the_first_step_is_raised() -> None:
    def interrupting(_ids: Ids) -> tuple[Ids, Tensor, Tensor]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rehearse(make_top(), make_head(), Samples(endless(), interrupting), Budget(updates=8), SETTINGS)


def test_ctrl_c_is_raised_where_a_checkpoint_keeps_the_training(tmp_path: Path) -> None:
    checkpoint = TrainingCheckpoint(tmp_path / "c", {}, every=0.0)
    arguments = (make_top(), make_head(), Samples(endless(), load), Budget(updates=800), SETTINGS)
    with pytest.raises(KeyboardInterrupt, match="the same call continues"):
        rehearse(*arguments, lambda progress: progress.updates >= 24, checkpoint)
    assert (tmp_path / "c").exists()


def halves(first: Tensor, second: Tensor, _rng: np.random.Generator) -> tuple[Tensor, float]:
    return (first + second) / 2, 0.5


def almost_the_first(first: Tensor, second: Tensor, _rng: np.random.Generator) -> tuple[Tensor, float]:
    return 0.99 * first + 0.01 * second, 0.99


@pytest.mark.parametrize("updates", [1, 8, 9, 20])
def test_a_mixed_pair_is_one_update(updates: int) -> None:
    seen: list[int] = []
    _, result = run(Budget(updates=updates), on_progress=lambda progress: seen.append(progress.updates), augment=halves)
    assert result.updates == seen[-1] == updates and len(result.losses) == math.ceil(updates / 8)
    assert len(result.sample_ids) == 2 * updates, "both of a pair were rehearsed"


@pytest.mark.parametrize(("augment", "means_move"), [(None, True), (halves, False), (almost_the_first, True)])
def test_class_means_ignore_mixtures(augment: Augmentation | None, means_move: bool) -> None:
    """Where all are mixtures, nothing is learned about the means."""
    settings = SleepSettings(0.1, 0.9, 0.0, 8, mean_share=1.0)
    after = run(Budget(updates=40), settings, augment=augment)[1].head.weights()
    before = make_head().weights()
    assert np.allclose(unit_vectors(after), unit_vectors(before), atol=1e-5) != means_move


def test_class_means_are_those_of_all_samples_taught_and_rehearsed() -> None:
    """With a top that hardly moves: all z that were ever seen, the taught ones and the rehearsed."""
    head, top = make_head(), make_top().eval()
    with torch.no_grad():
        ids = np.concatenate(_first_batches(5))
        _, latents, rows = load(ids)
        totals = (head.total_counts()[:, None] * head.weights()).astype(np.float32)
        expected = torch.from_numpy(totals).index_add(0, rows, top(latents)).numpy()
    settings = SleepSettings(1e-9, 0.9, 0.0, 8, mean_share=1.0)
    after = rehearse(top, head, Samples(endless(), load), Budget(updates=40), settings).head.weights()
    assert np.allclose(unit_vectors(after), unit_vectors(expected), atol=0.02)


def test_planning_is_not_taken_for_a_slow_first_batch() -> None:
    def planning() -> Iterator[Ids]:
        time.sleep(0.4)
        yield from endless()

    run(Budget(updates=1))  # torch's own first step takes seconds
    seen: list[Progress] = []
    rehearse(
        make_top(),
        make_head(),
        Samples(planning(), load),
        Budget(seconds=0.7),
        SETTINGS,
        lambda some: seen.append(some),
    )
    assert len(seen) > 3, "many batches fit after the planning"
    assert seen[0].updates_per_second > 8 / 0.4 and seen[-1].fraction > 0.9


def test_evicted_samples_are_left_out() -> None:
    def partial(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
        return load(ids[ids % 2 == 0])

    result = rehearse(make_top(), make_head(), Samples(endless(), partial), Budget(updates=40), SETTINGS)
    assert len(result.losses) == 5
    assert result.updates == len(result.sample_ids) == sum(int((ids % 2 == 0).sum()) for ids in _first_batches(5))


def _first_batches(count: int) -> list[Ids]:
    return list(id_batches(endless(), SETTINGS.batch_size, count * SETTINGS.batch_size))


def test_divergence_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(BadInput, match="use a lower learning rate"):
        run(Budget(updates=800), SleepSettings(lr=1e30, layer_decay=1.0, dropout=0.0, batch_size=8))


def test_vectors_end_with_the_mean_length_of_z() -> None:
    top, result = run(Budget(updates=16))
    with torch.no_grad():
        norm = float(top(load(result.sample_ids[-8:])[1]).norm(dim=1).mean())
    assert np.allclose(np.linalg.norm(result.head.weights(), axis=1), norm, rtol=1e-5)


def test_rows_of_samples_are_those_of_their_classes() -> None:
    head = Head.empty(features=2, scale=5.0)
    for class_id in (2, 4, 9):
        head.set_recent(class_id, np.ones(2), 1)
    memory = Memory(np.array([30, 10, 20]), np.array([9, 2, 4], np.int32), np.zeros(3, np.int32), np.zeros(0, np.int32))
    rows = rows_of_samples(memory, head)(np.array([10, 20, 30, 10]))
    assert head.class_ids[rows].tolist() == [2, 4, 9, 2]


def test_a_step_returns_loss_and_features_from_before_it() -> None:
    top = make_top().eval()
    output = CosineOutput(make_head(), CPU)
    _, latents, rows = load(np.arange(6))
    batch = Batch.of(latents, rows, None, np.random.default_rng(0))
    with torch.no_grad():
        features = top(latents)
        loss = F.cross_entropy(output(features), rows)
    optimizer = torch.optim.SGD([*top.parameters(), *output.parameters()], lr=0.1)
    found, seen = train_step(top, output, optimizer, batch, 0.0, torch.Generator().manual_seed(0))
    assert found == pytest.approx(loss.item()) and torch.equal(seen, features)
    assert not torch.equal(top(latents), features), "the weights have changed"


def test_dropout_keeps_the_mean_of_features() -> None:
    output = CosineOutput(make_head(), CPU)
    seen: list[Tensor] = []
    output.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0].detach()))
    latents = torch.ones(1, 24, 1, 1)
    batch = Batch.of(latents, torch.tensor([0]), None, np.random.default_rng(0))
    rng = torch.Generator().manual_seed(0)
    optimizer = torch.optim.SGD(output.parameters(), lr=0.0)
    for _ in range(400):
        train_step(nn.Sequential(nn.Flatten()), output, optimizer, batch, 0.25, rng)
    values = torch.cat(seen).numpy()
    assert sorted(set(values.flatten().tolist())) == pytest.approx([0.0, 1 / 0.75])
    assert values.mean() == pytest.approx(1.0, abs=0.02)


def test_any_network_with_any_output_is_trained() -> None:
    """As a loop written out, with a learning rate that falls halfway."""

    def parts() -> tuple[nn.Sequential, nn.Linear]:
        torch.manual_seed(1)
        return make_top().eval(), nn.Linear(24, 3)

    top, output = parts()
    optimizer = torch.optim.SGD([{"params": output.parameters(), "max_lr": 0.5}], lr=0.0, momentum=0.9)
    pace = Pace(batch_size=10, lr=0.5, schedule=falling_at(0.5), seed=0)
    result = train(Trainee(top, output, optimizer), Samples(endless(), load), Budget.of(updates=60), pace)
    assert (result.updates, len(result.losses), result.interrupted) == (60, 6, False)

    top, expected = parts()
    other = torch.optim.SGD(expected.parameters(), lr=0.5, momentum=0.9)
    order = np.concatenate([next(orders) for orders in [endless()] for _ in range(2)])
    for number in range(6):
        other.param_groups[0]["lr"] = 0.5 if number < 3 else 0.05
        ids = order[10 * number : 10 * number + 10]
        loss = F.cross_entropy(expected(top(LATENTS[torch.from_numpy(ids)])), torch.from_numpy(ids) % 3)
        other.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        other.step()
        assert result.losses[number] == pytest.approx(float(loss.detach()), rel=1e-5)
    assert torch.allclose(output.weight, expected.weight, atol=1e-6)
