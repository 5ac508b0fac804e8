"""A sleep of a learner: budget, seed, policy, augmentation, and failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from siesta import Siesta
from siesta.contracts import Embedded, Ids, Memory, Progress
from siesta.errors import BadInput
from siesta.policies import POLICIES, Uniform
from siesta.sleep.augment import AUGMENTATIONS
from siesta.sleep.resume import TrainingCheckpoint
from siesta.sleep.round_limits import RoundLimits
from tests.kills import count_steps
from tests.learner.colours import COLOURS, labelled_pictures, picture
from tests.small import create_small
from tests.stores import store_of


def test_a_sleep_spends_its_budget_and_class_counts_continue(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(10))
    report = learner.sleep(updates=50, batch_size=16)
    assert report.updates == 50 and report.generation == 1 and report.new_classes == 3 and not report.interrupted
    assert report.top_change > 0 and report.samples == 30
    vector = learner.head.weights()[0].copy()
    learner.learn_one(picture("red", 99), "red")
    feature = learner.pipeline.features(learner.encode([picture("red", 99)]))[0]
    assert np.allclose(learner.head.weights()[0], (10 * vector + feature) / 11, atol=1e-5)
    assert learner.head.count(1) == 11
    learner.learn_one(picture("grey"), "grey")
    assert learner.sleep(updates=8, batch_size=8).new_classes == 1


def test_the_same_seed_gives_the_same_weights() -> None:
    weights = []
    for seed in (3, 3, 4):
        learner = create_small(memory="100KB")
        learner.learn_many(*labelled_pictures(5))
        learner.sleep(updates=32, batch_size=8, seed=seed)
        weights.append(next(learner.pipeline.backbone.top.parameters()).detach().clone())
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_a_sleep_that_is_ended_early_leaves_a_usable_learner(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(5))
    report = learner.sleep(updates=1000, batch_size=8, on_progress=lambda progress: progress.updates >= 16)
    assert report.interrupted and report.updates == 16 and learner.predict_one(picture("red")).label in COLOURS
    assert learner.info().sleeps[0]["interrupted"]


def test_a_checkpoint_is_used_only_by_the_same_sleep_on_the_same_samples(
    learner: Siesta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_at_half(progress: Progress) -> None:
        if progress.fraction >= 0.5:
            raise RuntimeError("killed")

    def continued(**fields: Any) -> int:
        """Return the number of training steps of a sleep that fails after half of its four steps."""
        steps.clear()
        with pytest.raises(RuntimeError, match="killed"):
            learner.sleep(on_progress=fail_at_half, checkpoint=TrainingCheckpoint(tmp_path / "c", {}, 0.0), **fields)
        return len(steps)

    learner.learn_many(*labelled_pictures(5))
    steps = count_steps(monkeypatch)
    same: dict[str, Any] = {"updates": 32, "batch_size": 8}
    assert [continued(**same), continued(**same)] == [2, 0]
    for other in ({"seed": 7}, {"policy": "uniform"}, {"lr": 0.02}, {"updates": 31}, {"augment": "mixup_cutmix"}):
        assert [continued(**{**same, **other}), continued(**{**same, **other})] == [2, 0], other
    learner.learn_one(picture("grey"), "grey")
    assert [continued(**same), continued(**same)] == [2, 0]
    learner.forget("grey")
    assert [continued(**same), continued(**same)] == [2, 0]


def test_a_checkpoint_needs_an_update_budget(learner: Siesta, tmp_path: Path) -> None:
    learner.learn_many(*labelled_pictures(5))
    with pytest.raises(BadInput, match="a time budget cannot be continued after a kill: give it updates"):
        learner.sleep(seconds=5, checkpoint=TrainingCheckpoint(tmp_path / "c", {}))
    with pytest.raises(BadInput, match="without a budget cannot be continued after a kill: give it updates"):
        learner.sleep(checkpoint=TrainingCheckpoint(tmp_path / "c", {}))


def test_a_sleep_without_a_budget_makes_passes_or_judged_rounds(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(5))
    report = learner.sleep(batch_size=4)
    assert (report.ended, report.rounds, report.optimistic, report.held_out) == ("passes", 1, False, 0)
    assert report.updates == RoundLimits.of(15, 4, judged=False).most_updates
    width = learner.encode([picture("red")]).shape[1]
    codes = np.random.default_rng(0).integers(0, 256, (200, width), np.uint8)
    learner.learn_encoded(codes, [f"class {number // 40}" for number in range(200)])
    report = learner.sleep(batch_size=16)
    assert report.held_out == 25 and report.optimistic and "optimistic" in report.summary()
    limits = RoundLimits.of(15 + 200 - 25, 16)
    assert report.updates == sum(limits.updates[: report.rounds])
    assert report.ended in ("no_gain", "ceiling") and (report.ended == "no_gain" or report.rounds == 4)


def test_a_failed_sleep_changes_nothing(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(5))
    before = learner.predict_one(picture("red"))
    with pytest.raises(BadInput, match="lower learning rate"):
        learner.sleep(updates=400, batch_size=4, lr=1e20)
    with pytest.raises(BadInput, match="lower learning rate"):
        learner.sleep(updates=4, batch_size=4, lr=1e38)  # a single step, so its own loss is still fine
    assert learner.predict_one(picture("red")) == before
    assert learner.info().sleeps == ()


def test_a_policy_can_be_an_object(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(3))
    assert learner.sleep(updates=8, batch_size=4, policy=Uniform()).settings["policy"] == "Uniform"


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_can_be_used_and_its_embeddings_are_counted(learner: Siesta, policy: str) -> None:
    learner.learn_many(*labelled_pictures(3))
    report = learner.sleep(updates=9, batch_size=4, policy=policy)
    assert report.updates == 9 and report.settings["policy"] == policy
    assert learner.info().sleeps[0]["embedded"] == report.embedded
    assert report.embedded in (0, 9) and (report.embedded or policy not in ("max_loss", "grasp"))
    assert learner.predict_one(picture("red")).label == "red"


@pytest.mark.parametrize("augment", AUGMENTATIONS)
def test_every_augmentation_can_be_used(learner: Siesta, augment: str) -> None:
    learner.learn_many(*labelled_pictures(3))
    report = learner.sleep(updates=10, batch_size=4, augment=augment)
    assert report.updates == 10 and report.settings["augment"] == augment
    assert store_of(learner).samples.memory().rehearsed.sum() == 20, "both of a pair were rehearsed"
    assert learner.predict_one(picture("red")).label == "red"


def test_schedule_and_optimizer_can_be_chosen(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(3))
    rates: list[float] = []
    report = learner.sleep(
        updates=20,
        batch_size=2,
        lr=0.001,
        schedule="steps",
        optimizer="adamw",
        on_progress=lambda progress: rates.append(progress.lr),
    )
    assert report.settings["schedule"] == "steps" and report.settings["optimizer"] == "adamw"
    assert rates == pytest.approx([1e-3] * 3 + [1e-4] * 3 + [1e-5] * 3 + [1e-6])
    for wrong in ({"schedule": "stairs"}, {"optimizer": "lion"}):
        with pytest.raises(BadInput, match="choose one of"):
            learner.sleep(updates=2, **wrong)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_weights_with_augmentation() -> None:
    weights = []
    for _ in range(2):
        some = create_small(memory="100KB")
        some.learn_many(*labelled_pictures(2))
        some.sleep(updates=16, batch_size=4, policy="grasp", augment="mixup_cutmix", seed=3)
        weights.append(some.head.weights())
    assert np.array_equal(weights[0], weights[1])


def test_a_policy_sees_the_embeddings_that_predictions_use() -> None:
    learner = create_small(head="cosine")
    learner.learn_many(*labelled_pictures(2))
    seen: list[Embedded] = []

    class Looking(Uniform):
        def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
            seen.extend(memory.embed(memory.ids[::-1]))
            return super().sample_ids(memory, rng)

    expected = learner.predict_one(picture("red"))
    assert learner.sleep(updates=2, batch_size=2, policy=Looking()).embedded == 6
    (chunk,) = seen
    assert chunk.ids.tolist() == [6, 5, 4, 3, 2, 1] and chunk.rows.tolist() == [2, 1, 0, 2, 1, 0]
    assert chunk.features.shape[0] == 6 and chunk.logits.shape == (6, 3)
    odds = np.exp(chunk.logits[-1] - chunk.logits[-1].max())
    assert (odds / odds.sum()).max() == pytest.approx(expected.score, rel=1e-5)


@pytest.mark.parametrize("share", [1.5, -3.0, float("nan")])
def test_an_augmentation_with_an_invalid_share_is_refused(learner: Siesta, share: float) -> None:
    learner.learn_many(*labelled_pictures(2))
    with pytest.raises(BadInput, match=r"a share in 0\.\.1"):
        learner.sleep(updates=8, batch_size=4, augment=lambda first, _second, _rng: (first, share))
    assert learner.info().sleeps == ()
