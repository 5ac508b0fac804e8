"""Sleeps without a budget: when they end, and what they keep."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from siesta.backbones.arrays import state_arrays
from siesta.contracts import Ids, OnProgress, Progress
from siesta.head import Head
from siesta.sleep.loop import Samples
from siesta.sleep.round_limits import LEAST_GAIN, RoundLimits
from siesta.sleep.rounds import Judge, Rounds, rehearse_in_rounds
from siesta.sleep.settings import SleepSettings

SETTINGS = SleepSettings(lr=0.1, layer_decay=0.9, dropout=0.1, batch_size=8)
LIMITS = RoundLimits((16, 16, 16, 16))
LATENTS = torch.rand(30, 3, 2, 2, generator=torch.Generator().manual_seed(9))


def load(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
    return ids, LATENTS[torch.from_numpy(ids)], torch.from_numpy(ids) % 3


def endless() -> Iterator[Ids]:
    rng = np.random.default_rng(0)
    while True:
        yield rng.permutation(30)


def scripted(accuracies: Sequence[float]) -> Judge:
    """Return a judge that gives these accuracies in turn, one after each round."""
    coming = iter(accuracies)

    def judge(top: nn.Sequential, head: Head) -> float:
        return next(coming)

    return judge


def run(
    judge: Judge | None,
    limits: RoundLimits = LIMITS,
    on_progress: OnProgress | None = None,
    samples: Samples | None = None,
) -> tuple[nn.Sequential, Rounds]:
    torch.manual_seed(0)
    top = nn.Sequential(nn.Conv2d(3, 6, 1), nn.Sequential(nn.BatchNorm2d(6), nn.ReLU()), nn.Flatten())
    head = Head.empty(features=24, scale=5.0)
    for class_id in range(3):
        head.set_recent(class_id, np.random.default_rng(class_id).random(24), 1)
    chosen = samples or Samples(endless(), load)
    return top, rehearse_in_rounds(top, head, chosen, limits, SETTINGS, judge, on_progress)


def same(first: tuple[nn.Sequential, Rounds], second: tuple[nn.Sequential, Rounds]) -> bool:
    """Return whether two sleeps gave the same weights, head included."""
    tensors = [(*state_arrays(top).values(), rounds.rehearsal.head.weights()) for top, rounds in (first, second)]
    return all(np.array_equal(a, b) for a, b in zip(*tensors, strict=True))


def test_it_ends_with_a_round_that_gains_too_little_and_keeps_the_best() -> None:
    better = run(scripted([0.6, 0.7]), RoundLimits((16, 16)))
    worse = run(scripted([0.6, 0.7, 0.65]))
    assert (worse[1].rounds, worse[1].ended, worse[1].rehearsal.updates) == (3, "no_gain", 48)
    assert len(worse[1].rehearsal.sample_ids) == 32 and len(worse[1].rehearsal.losses) == 4, "of the rounds that count"
    assert same(better, worse)
    little = run(scripted([0.6, 0.6 + LEAST_GAIN / 2]))
    assert (little[1].rounds, little[1].ended, len(little[1].rehearsal.losses)) == (2, "no_gain", 4)


def test_it_ends_at_the_ceiling_while_it_gains() -> None:
    _, result = run(scripted([0.1, 0.2, 0.3, 0.4]))
    assert (result.rounds, result.ended, result.rehearsal.interrupted) == (4, "ceiling", False)
    assert result.rehearsal.updates == LIMITS.most_updates


def test_without_judges_it_makes_one_round() -> None:
    _, result = run(None, RoundLimits((24,)))
    assert (result.rounds, result.ended, result.rehearsal.updates) == (1, "passes", 24)


def test_a_second_round_that_is_worse_leaves_the_first() -> None:
    top, result = run(scripted([0.9, 0.1]))
    assert (result.rounds, result.ended) == (2, "no_gain") and len(result.rehearsal.losses) == 2
    assert same((top, result), run(None, RoundLimits((16,))))


def test_the_same_seed_gives_the_same_weights_and_rounds_have_seeds_of_their_own() -> None:
    accuracies = [0.1, 0.2, 0.2]
    assert same(run(scripted(accuracies)), run(scripted(accuracies)))


def test_a_round_goes_on_with_the_samples_where_the_one_before_ended() -> None:
    _, result = run(scripted([0.1, 0.2, 0.3, 0.4]))
    assert result.rehearsal.sample_ids.tolist() == np.concatenate(list(itertools.islice(endless(), 3)))[:64].tolist()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_it_makes_rounds_as_long_as_each_gains(accuracies: list[float]) -> None:
    gains = np.diff(accuracies)
    expected = next((at + 2 for at, gain in enumerate(gains) if gain < LEAST_GAIN), 4)
    last = gains[expected - 2]
    _, result = run(scripted(accuracies))
    assert (result.rounds, result.ended) == (expected, "no_gain" if last < LEAST_GAIN else "ceiling")
    assert len(result.rehearsal.losses) == 2 * (expected - (last < 0)), "a round that lost does not count"


def test_progress_goes_towards_the_ceiling() -> None:
    seen: list[Progress] = []
    run(scripted([0.1, 0.2, 0.3]), RoundLimits((8, 24, 32)), on_progress=seen.append)
    assert [progress.round for progress in seen] == [1, 2, 2, 2, 3, 3, 3, 3]
    assert [progress.updates for progress in seen] == list(range(8, 72, 8))
    assert [progress.fraction for progress in seen] == pytest.approx([step / 8 for step in range(1, 9)])
    assert all(progress.seconds_left > 0 for progress in seen[:-1]) and seen[-1].seconds_left == 0


def test_waking_up_in_a_round_keeps_the_better_weights() -> None:
    for accuracy, losses in ((0.6, 2), (0.8, 3)):  # of the round that was cut
        result = run(scripted([0.7, accuracy]), on_progress=lambda progress: progress.updates >= 24)[1]
        assert (result.rounds, result.ended, result.rehearsal.interrupted) == (2, "interrupted", True)
        assert (result.rehearsal.updates, len(result.rehearsal.losses)) == (24, losses)


def test_waking_up_at_the_end_of_a_round_begins_no_other() -> None:
    _, result = run(scripted([0.7]), on_progress=lambda progress: progress.updates == 16)
    assert (result.rounds, result.ended, result.rehearsal.updates) == (1, "interrupted", 16)


def test_ctrl_c_in_a_round_ends_the_sleep_with_what_it_has() -> None:
    loaded = itertools.count()

    def interrupted(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
        if next(loaded) == 1:
            raise KeyboardInterrupt
        return load(ids)

    _, result = run(scripted([0.6, 0.7]), samples=Samples(endless(), interrupted))
    assert (result.rounds, result.ended, result.rehearsal.interrupted) == (1, "interrupted", True)
    assert (result.rehearsal.updates, len(result.rehearsal.losses)) == (8, 1)


@pytest.mark.parametrize("calls", [0, 2], ids=["first-round", "second-round"])
def test_ctrl_c_before_the_first_step_of_a_round(calls: int) -> None:
    loaded = itertools.count()

    def interrupted(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
        if next(loaded) == calls:
            raise KeyboardInterrupt
        return load(ids)

    samples = Samples(endless(), interrupted)
    if not calls:
        with pytest.raises(KeyboardInterrupt):
            run(scripted([0.6]), samples=samples)
        return
    result = run(scripted([0.6]), samples=samples)
    assert (result[1].rounds, result[1].ended) == (1, "interrupted")
    assert same(result, run(scripted([0.6]), RoundLimits((16,))))
