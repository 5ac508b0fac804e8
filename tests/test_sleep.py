"""The sleep loop: its schedule against torch's, its rates layer by layer, its budgets, its ways to end."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.budget import Budget
from siesta.contracts import Augmentation, Ids, Progress
from siesta.errors import BadInput
from siesta.head import Head, cosine_logits
from siesta.sleep import (
    CosineOutput,
    Rehearsal,
    SleepSettings,
    batches,
    layer_groups,
    rehearse,
)

CPU = torch.device("cpu")
SETTINGS = SleepSettings(rate=0.1, layer_decay=0.9, dropout=0.0, batch_size=8)


def make_top() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 1), nn.Sequential(nn.BatchNorm2d(6), nn.ReLU()), nn.Flatten())


def make_head(classes: int = 3) -> Head:
    head = Head.empty(features=24, scale=5.0)
    for class_id in range(classes):
        head.set_recent(class_id, torch.rand(24, generator=torch.Generator().manual_seed(class_id)), 1)
    return head


LATENTS = torch.rand(30, 3, 2, 2, generator=torch.Generator().manual_seed(9))


def load(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
    return ids, LATENTS[torch.from_numpy(ids)], torch.from_numpy(ids) % 3


def endless(seed: int = 0) -> Iterator[Ids]:
    rng = np.random.default_rng(seed)
    while True:
        yield rng.permutation(30)


def run(budget: Budget, settings: SleepSettings = SETTINGS, **options: object) -> tuple[nn.Sequential, Rehearsal]:
    top = make_top()
    return top, rehearse(top, make_head(), endless(), load, budget, settings, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", [4, 10, 47, 1000])
def test_one_cycle_equals_torch_for_an_update_budget_in_every_layer(steps: int) -> None:
    rates = [0.1, 0.099, 0.01]
    groups = [{"params": [nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    optimizer = torch.optim.SGD(groups)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps, cycle_momentum=False)
    seen: list[float] = []
    run(Budget(updates=8 * steps), SETTINGS, on_progress=lambda progress: seen.append(progress.rate))
    assert len(seen) == steps
    for step in range(steps):
        expected = [group["lr"] for group in optimizer.param_groups]
        assert seen[step] == pytest.approx(expected[0], rel=1e-9)
        assert expected[2] / expected[0] == pytest.approx(0.1)
        optimizer.step()
        if step + 1 < steps:
            schedule.step()


def test_rates_fall_layer_by_layer_from_the_head_down() -> None:
    top, output = make_top(), CosineOutput(make_head(), CPU)
    groups = layer_groups(top, output, SETTINGS)
    rate = {id(p): group["rate"] for group in groups for p in group["params"]}  # type: ignore[attr-defined]
    assert rate[id(output.vectors)] == rate[id(output.scale)] == 0.1
    assert rate[id(top[1][0].weight)] == pytest.approx(0.1 * 0.9)  # type: ignore[index]
    assert rate[id(top[0].weight)] == pytest.approx(0.1 * 0.9**2)
    assert groups[0]["weight_decay"] == 0.0, "the temperature does not decay"


def test_the_layer_rates_really_act() -> None:
    """With a decay of almost nothing the lower layers stay, the head moves."""
    top, result = run(Budget(updates=80), SleepSettings(rate=0.1, layer_decay=1e-6, dropout=0.0, batch_size=8))
    before = make_top()
    assert torch.allclose(top[0].weight, before[0].weight, atol=1e-6)  # type: ignore[arg-type]
    moved, _ = run(Budget(updates=80))
    assert not torch.allclose(moved[0].weight, before[0].weight, atol=1e-3)  # type: ignore[arg-type]
    assert result.head.scale != 5.0


def test_one_step_equals_sgd_written_out() -> None:
    """A single batch: weights move by rate / 25 against the gradient of the paper's loss."""
    settings = SleepSettings(rate=0.5, layer_decay=0.9, dropout=0.0, batch_size=30, weight_decay=0.01)
    top = make_top().eval()
    expected = copy.deepcopy(top)
    rehearse(top, make_head(), endless(), load, Budget(updates=30), settings)
    vectors = torch.nn.functional.normalize(make_head().weights())
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
    top, expected, output = make_top().eval(), make_top().eval(), CosineOutput(make_head(), CPU)
    result = rehearse(top, make_head(), endless(), load, Budget(updates=60), settings)
    groups = [
        {"params": output.scale, "lr": 0.01, "weight_decay": 0.0},
        {"params": output.vectors, "lr": 0.01},
        {"params": expected[1].parameters(), "lr": 0.009},
        {"params": expected[0].parameters(), "lr": 0.0081},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(momentum, 0.999), weight_decay=0.05)
    picks = endless()
    for factor in (1.0, 0.1):
        _, latents, rows = load(next(picks))
        for group in optimizer.param_groups:
            group["lr"] *= factor
        optimizer.zero_grad()
        nn.functional.cross_entropy(output(expected(latents)), rows).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    for new, wanted in zip(top.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(new, wanted)
    assert result.head.scale == pytest.approx(output.scale.item())


def test_the_rate_runs_by_the_schedule() -> None:
    seen: list[float] = []
    settings = SleepSettings(0.1, 0.9, 0.0, 8, schedule="steps")
    run(Budget(updates=400), settings, on_progress=lambda progress: seen.append(progress.rate))
    assert seen == pytest.approx([0.1 * 0.1 ** (step // 15) for step in range(50)])


def test_batch_norm_statistics_stay_frozen_while_its_weights_learn() -> None:
    top, _ = run(Budget(updates=80))
    norm, before = top[1][0], make_top()[1][0]  # type: ignore[index]
    assert torch.equal(norm.running_mean, before.running_mean) and torch.equal(norm.running_var, before.running_var)
    assert not torch.equal(norm.weight, before.weight)


@pytest.mark.parametrize("updates", [1, 7, 8, 9, 100])
def test_an_update_budget_is_kept_exactly(updates: int) -> None:
    _, result = run(Budget(updates=updates))
    assert len(result.rehearsed) == updates and len(result.losses) == math.ceil(updates / 8) and not result.interrupted


def test_the_same_seed_gives_the_same_weights() -> None:
    settings = SleepSettings(rate=0.1, layer_decay=0.9, dropout=0.5, batch_size=8, seed=4)
    (first, a), (second, b) = (run(Budget(updates=64), settings) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(first.parameters(), second.parameters(), strict=True))
    assert torch.equal(a.head.weights(), b.head.weights()) and a.losses == b.losses
    _, other = run(Budget(updates=64), SleepSettings(rate=0.1, layer_decay=0.9, dropout=0.5, batch_size=8, seed=5))
    assert other.losses != a.losses


def test_a_time_budget_ends_in_time_with_its_rate_at_the_end() -> None:
    run(Budget(updates=1))  # torch's own first step takes seconds
    seen: list[Progress] = []
    start = time.monotonic()
    run(Budget(seconds=0.5), on_progress=lambda progress: seen.append(progress))
    assert time.monotonic() - start < 2.0
    rates = [progress.rate for progress in seen]
    assert max(rates) > 0.09 and rates[-1] < 0.02 and seen[-1].fraction > 0.9
    assert [progress.fraction for progress in seen] == sorted(progress.fraction for progress in seen)


def test_a_callback_ends_it_cleanly() -> None:
    _, result = run(Budget(updates=800), on_progress=lambda progress: progress.updates >= 24)
    assert result.interrupted and len(result.rehearsed) == 24 and torch.isfinite(result.head.weights()).all()


def test_ctrl_c_ends_it_cleanly() -> None:
    calls = itertools.count()

    def interrupting(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return load(ids)

    result = rehearse(make_top(), make_head(), endless(), interrupting, Budget(updates=800), SETTINGS)
    assert result.interrupted and len(result.rehearsed) == 24


def test_ctrl_c_before_anything_was_done_is_passed_on() -> None:
    def interrupting(_ids: Ids) -> tuple[Ids, Tensor, Tensor]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rehearse(make_top(), make_head(), endless(), interrupting, Budget(updates=8), SETTINGS)


def halves(first: Tensor, second: Tensor, _rng: np.random.Generator) -> tuple[Tensor, float]:
    return (first + second) / 2, 0.5


def almost_the_first(first: Tensor, second: Tensor, _rng: np.random.Generator) -> tuple[Tensor, float]:
    return 0.99 * first + 0.01 * second, 0.99


@pytest.mark.parametrize("updates", [1, 8, 9, 20])
def test_a_mixed_pair_is_one_update(updates: int) -> None:
    seen: list[int] = []
    _, result = run(Budget(updates=updates), on_progress=lambda progress: seen.append(progress.updates), augment=halves)
    assert result.updates == seen[-1] == updates and len(result.losses) == math.ceil(updates / 8)
    assert len(result.rehearsed) == 2 * updates, "both of a pair were rehearsed"


@pytest.mark.parametrize(("augment", "means_move"), [(None, True), (halves, False), (almost_the_first, True)])
def test_means_are_not_made_of_mixtures(augment: Augmentation | None, means_move: bool) -> None:
    """Where all are mixtures, nothing is learned about the means."""
    settings = SleepSettings(0.1, 0.9, 0.0, 8, mean_share=1.0)
    after = run(Budget(updates=40), settings, augment=augment)[1].head.weights()
    before = make_head().weights()
    assert torch.allclose(F.normalize(after), F.normalize(before), atol=1e-5) != means_move


def test_means_weigh_what_was_known_against_what_was_rehearsed() -> None:
    """With a top that hardly moves: all z that were ever seen, the taught ones and the rehearsed."""
    head, top = make_head(), make_top().eval()
    with torch.no_grad():
        ids = np.concatenate(_first_batches(5))
        _, latents, rows = load(ids)
        totals = head.taught()[:, None] * head.weights()
        expected = totals.index_add(0, rows, top(latents))
    settings = SleepSettings(1e-9, 0.9, 0.0, 8, mean_share=1.0)
    after = rehearse(top, head, endless(), load, Budget(updates=40), settings).head.weights()
    assert torch.allclose(F.normalize(after), F.normalize(expected), atol=0.02)


def test_long_planning_leaves_a_time_budget_its_rest() -> None:
    def planning() -> Iterator[Ids]:
        time.sleep(0.4)
        yield from endless()

    run(Budget(updates=1))  # torch's own first step takes seconds
    seen: list[Progress] = []
    rehearse(make_top(), make_head(), planning(), load, Budget(seconds=0.7), SETTINGS, lambda some: seen.append(some))
    assert len(seen) > 3, "the planning is not taken for a slow first batch"
    assert seen[0].updates_per_second > 8 / 0.4 and seen[-1].fraction > 0.9


def test_samples_that_are_gone_are_left_out() -> None:
    def partial(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
        return load(ids[ids % 2 == 0])

    result = rehearse(make_top(), make_head(), endless(), partial, Budget(updates=40), SETTINGS)
    assert len(result.losses) == 5
    assert result.updates == len(result.rehearsed) == sum(int((ids % 2 == 0).sum()) for ids in _first_batches(5))


def _first_batches(count: int) -> list[Ids]:
    return list(batches(endless(), SETTINGS.batch_size, count * SETTINGS.batch_size))


def test_a_policy_that_ends_is_told_to_go_on() -> None:
    with pytest.raises(BadInput, match="ran out of picks"):
        rehearse(make_top(), make_head(), iter([np.arange(5)]), load, Budget(updates=40), SETTINGS)


def test_divergence_is_said_in_words() -> None:
    with pytest.raises(BadInput, match="use a lower learning rate"):
        run(Budget(updates=800), SleepSettings(rate=1e30, layer_decay=1.0, dropout=0.0, batch_size=8))


def test_vectors_end_with_the_mean_length_of_z() -> None:
    top, result = run(Budget(updates=16))
    with torch.no_grad():
        norm = top(load(result.rehearsed[-8:])[1]).norm(dim=1).mean()
    assert torch.allclose(result.head.weights().norm(dim=1), norm.expand(3), rtol=1e-5)


@pytest.mark.parametrize("total", [1, 5, 6, 13])
def test_batches_cut_picks_without_loss(total: int) -> None:
    picks = iter([np.arange(4), np.arange(4, 5), np.arange(5, 20)])
    cut = list(batches(picks, 6, total))
    assert [len(batch) for batch in cut[:-1]] == [6] * (len(cut) - 1)
    assert np.concatenate(cut).tolist() == list(range(total))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"batch_size": 0}, "a batch has 1 to"),
        ({"rate": 0.0}, "above zero"),
        ({"rate": math.inf}, "above zero"),
        ({"layer_decay": math.nan}, "layer decay"),
        ({"momentum": -1}, "momentum"),
        ({"momentum": 1, "optimizer": "adamw"}, "momentum"),
        ({"seed": -1}, "seed"),
        ({"schedule": "stairs"}, "no schedule 'stairs'"),
        ({"optimizer": "lion"}, "no optimizer 'lion': choose one of sgd, adamw"),
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        SleepSettings(**{"rate": 0.1, "layer_decay": 0.9, "dropout": 0.1, **wrong})  # type: ignore[arg-type]
