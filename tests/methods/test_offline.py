"""The offline learner: everything at once, from the start each time, in THE sleep loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pytest
import torch

from siesta import Siesta
from siesta.budget import SCHEDULES
from siesta.contracts import Codes, Ids
from siesta.errors import BadInput
from siesta.methods import Offline, OfflineWhole
from siesta.methods.offline import OfflineSettings
from siesta.sleep import OPTIMIZERS
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
