"""The offline learner: everything at once, from the start each time, in THE sleep loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pytest
import torch

from siesta import Siesta
from siesta.budget import SCHEDULES
from siesta.contracts import Codes, Ids, Progress
from siesta.errors import BadInput
from siesta.halfway import Halfway
from siesta.methods.home import halfway_file
from siesta.methods.offline import Offline, OfflineSettings, OfflineWhole
from siesta.sleep import OPTIMIZERS, train_step
from tests.methods.conftest import Start


def make(folder: Path, seed: int = 0, **settings: Any) -> Offline:
    return Offline(folder, OfflineSettings(**{"epochs": 2, "batch_size": 4, **settings}), seed)


def test_updates_are_epochs_times_samples(starts: dict[str, Start]) -> None:
    method = make(starts["opq"].folder(), epochs=3)
    method.learn_many(*starts["opq"].lesson([0, 1, 2, 0, 1]))
    assert method.resources().updates == 0
    method.sleep()
    assert method.resources().updates == 3 * 5
    method.learn_many(*starts["opq"].lesson([3, 3]))
    method.sleep()
    assert method.resources().updates == 3 * 5 + 3 * 7


def test_every_epoch_goes_through_every_sample(starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(starts["opq"].folder(), epochs=3)
    method.learn_many(*starts["opq"].lesson([0, 1, 2, 0, 1]))
    picked: list[int] = []
    get = method._home.store.get

    def noted(ids: Ids) -> tuple[npt.NDArray[np.bool_], Codes]:
        picked.extend(ids.tolist())
        return get(ids)

    monkeypatch.setattr(method._home.store, "get", noted)
    method.sleep()
    assert [sorted(picked[start : start + 5]) for start in (0, 5, 10)] == [[1, 2, 3, 4, 5]] * 3


def test_it_trains_from_the_start_weights_each_time(starts: dict[str, Start]) -> None:
    some = starts["opq"]
    codes, labels = some.lesson([0, 1, 2, 0, 1, 2])
    twice, once = make(some.folder()), make(some.folder())
    twice.learn_many(codes[:3], labels[:3])
    twice.sleep()
    twice.predict_many(codes)
    twice.learn_many(codes[3:], labels[3:])
    twice.sleep()
    once.learn_many(codes[:3], labels[:3])  # as many samples go through the network at once as above
    once.learn_many(codes[3:], labels[3:])
    once.sleep()
    assert all(torch.equal(twice._trained[name], once._trained[name]) for name in once._trained)
    assert twice.predict_many(codes) == once.predict_many(codes)


def test_it_is_a_uniform_sleep_with_trained_vectors(starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same network as a learner's own sleep, if that has the same seeds."""
    some = starts["opq"]
    codes, labels = some.lesson([0, 1, 2, 0, 1, 2])
    folder = some.folder()
    with Siesta.open(folder) as learner:
        learner.learn_encoded(codes, labels)
    method = make(folder)
    monkeypatch.setattr(
        "siesta.methods.offline.np.random.default_rng", lambda _seed, fresh=np.random.default_rng: fresh((5, 2))
    )
    monkeypatch.setattr(Offline, "_sleep_settings", _with_seed_five(Offline._sleep_settings))
    method.sleep()
    monkeypatch.undo()
    expected = method.predict_many(codes)
    method.close()
    with Siesta.open(folder) as learner:
        learner.sleep(updates=12, batch_size=4, policy="uniform", mean_share=0, seed=5)
        weights = learner.pipeline.backbone.top.state_dict()
        assert all(torch.equal(weights[name], method._trained[name]) for name in weights)
        assert [[label for label, _ in answer.top] for answer in learner.predict_encoded(codes)] == expected


def _with_seed_five(settings: Any) -> Any:
    return lambda method, _seed: settings(method, 5)


def test_it_learns_what_comes_class_after_class(starts: dict[str, Start]) -> None:
    for cls in (Offline, OfflineWhole):
        some = starts[cls.codec]
        method = cls(some.folder(), OfflineSettings(epochs=6, batch_size=16), 0)
        method.learn_many(*some.lesson([number for number in range(3) for _ in range(10)]))
        method.sleep()
        asked, labels = some.lesson([0, 1, 2] * 6, 5)
        right = [answer[0] == label for answer, label in zip(method.predict_many(asked), labels, strict=True)]
        assert np.mean(right) > 0.8


def test_before_it_trained_it_answers_by_the_means(starts: dict[str, Start]) -> None:
    some = starts["opq"]
    codes, labels = some.lesson([0, 1, 2, 3])
    method, learner = make(some.folder()), Siesta.open(some.folder())
    method.learn_many(codes, labels)
    learner.learn_encoded(codes, labels)
    expected = [[label for label, _ in answer.top] for answer in learner.predict_encoded(codes)]
    assert method.predict_many(codes) == expected


def test_classes_that_came_after_its_training_are_not_known_yet(starts: dict[str, Start]) -> None:
    method = make(starts["opq"].folder())
    method.learn_many(*starts["opq"].lesson([0, 1]))
    method.sleep()
    method.learn_many(*starts["opq"].lesson([2]))
    codes, _ = starts["opq"].lesson([2])
    assert set(method.predict_many(codes)[0]) == {"class 0", "class 1"}
    method.sleep()
    assert set(method.predict_many(codes)[0]) == {"class 0", "class 1", "class 2"}


def test_an_interrupted_training_counts_for_nothing(starts: dict[str, Start]) -> None:
    method = make(starts["opq"].folder())
    codes, labels = starts["opq"].lesson([0, 1, 0, 1, 0])
    method.learn_many(codes, labels)
    before = method.predict_many(codes)
    with pytest.raises(KeyboardInterrupt):
        method.sleep(lambda _progress: True)
    assert method.predict_many(codes) == before and method.resources().updates == 0


@pytest.mark.parametrize("setting", [{"optimizer": "adamw", "schedule": "cosine", "rate": 1e-4}, {"schedule": "steps"}])
def test_schedule_and_optimizer_are_passed_on(starts: dict[str, Start], setting: dict[str, Any]) -> None:
    codes, labels = starts["opq"].lesson([0, 1, 0, 1, 0])
    trained = []
    for settings in ({}, setting):
        method = make(starts["opq"].folder(), **settings)
        method.learn_many(codes, labels)
        method.sleep()
        trained.append(method._trained)
    assert any(not torch.equal(trained[0][name], trained[1][name]) for name in trained[0])


def test_every_schedule_and_optimizer_can_be_asked_for() -> None:
    fields = OfflineSettings.model_fields
    assert set(get_args(fields["schedule"].annotation)) == set(SCHEDULES)
    assert set(get_args(fields["optimizer"].annotation)) == set(OPTIMIZERS)


def test_what_cannot_be_done_is_named(starts: dict[str, Start]) -> None:
    method = make(starts["opq"].folder(), rate=1e30)
    with pytest.raises(BadInput, match="nothing to train on"):
        method.sleep()
    method.learn_many(*starts["opq"].lesson([0, 1, 0, 1, 0]))
    with pytest.raises(BadInput, match="diverged"):
        method.sleep()


def test_lower_layers_can_stay_as_they_are(starts: dict[str, Start]) -> None:
    method = make(starts["opq"].folder(), frozen=2)
    method.learn_many(*starts["opq"].lesson([0, 1, 2]))
    method.sleep()
    same = {name.split(".")[0] for name in method._start if torch.equal(method._start[name], method._trained[name])}
    moved = {
        name.split(".")[0] for name in method._start if not torch.equal(method._start[name], method._trained[name])
    }
    assert {"0", "1"} <= same and not {"0", "1"} & moved and "2" in moved


@pytest.mark.parametrize("augment", ["mixup_cutmix", "crop_flip"])
def test_augmented_it_takes_as_many_updates_and_learns_otherwise(
    starts: dict[str, Start], augment: Literal["mixup_cutmix", "crop_flip"]
) -> None:
    some = starts["raw"]
    plain, other, again = (
        OfflineWhole(some.folder(), OfflineSettings(epochs=2, batch_size=4, augment=kind), 0)
        for kind in (None, augment, augment)
    )
    for method in (plain, other, again):
        method.learn_many(*some.lesson([0, 1, 2, 0, 1]))
        method.sleep()
        assert method.resources().updates == 2 * 5
    name = next(name for name in plain._trained if name.endswith("weight"))
    assert not torch.equal(plain._trained[name], other._trained[name])
    assert torch.equal(other._trained[name], again._trained[name])


@pytest.mark.parametrize("optimizer", get_args(OfflineSettings.model_fields["optimizer"].annotation))
@pytest.mark.parametrize("augment", [None, "mixup_cutmix", "crop_flip"])
def test_killed_in_training_it_goes_on_and_ends_the_same(
    starts: dict[str, Start], optimizer: str, augment: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siesta.methods.offline.Halfway", partial(Halfway, every=0.0))
    some, rate = starts["opq"], 0.01 if optimizer == "sgd" else 0.001
    codes, labels = some.lesson([0, 1, 2, 0, 1, 2, 0, 1])
    how: dict[str, Any] = {"optimizer": optimizer, "augment": augment, "rate": rate}
    whole = make(some.folder(), **how)
    whole.learn_many(codes, labels)
    whole.sleep()
    place = some.folder()

    def killed(progress: Progress) -> None:
        if progress.fraction >= at:
            raise RuntimeError("killed")

    for at in (0.25, 0.75):
        folder = some.folder()  # as the harness lays it out: back at the last whole step
        if at == 0.75:
            halfway_file(place).rename(halfway_file(folder))
        method, place = make(folder, **how), folder
        method.learn_many(codes, labels)
        with pytest.raises(RuntimeError, match="killed"):
            method.sleep(killed)
        assert halfway_file(folder).exists()
    last = some.folder()
    halfway_file(place).rename(halfway_file(last))
    trained: list[int] = []
    monkeypatch.setattr("siesta.sleep.train_step", _counted(trained))
    method = make(last, **how)
    method.learn_many(codes, labels)
    method.sleep()
    assert len(trained) == 1  # of four steps
    assert all(torch.equal(whole._trained[name], method._trained[name]) for name in whole._trained)
    assert method.predict_many(codes) == whole.predict_many(codes)
    assert method.resources().updates == whole.resources().updates
    method.save()
    assert not halfway_file(last).exists()


def _counted(calls: list[int]) -> Callable[..., Any]:
    def step(*arguments: Any) -> Any:
        calls.append(1)
        return train_step(*arguments)

    return step


def test_training_of_other_samples_is_not_gone_on_with(
    starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siesta.methods.offline.Halfway", partial(Halfway, every=0.0))
    some = starts["opq"]
    codes, labels = some.lesson([0, 1, 2, 0, 1, 2])
    method, fresh = make(some.folder()), make(some.folder())
    method.learn_many(codes[:4], labels[:4])
    method.sleep()
    method.learn_many(codes[4:], labels[4:])
    method.sleep()
    for part in (slice(0, 4), slice(4, 6)):
        fresh.learn_many(codes[part], labels[part])
    fresh.sleep()
    assert all(torch.equal(fresh._trained[name], method._trained[name]) for name in fresh._trained)
