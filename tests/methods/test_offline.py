"""The offline learner: all samples, many epochs, from the initial weights each time, in the one sleep loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from siesta import Siesta
from siesta.contracts import Progress
from siesta.errors import BadInput
from siesta.methods.offline import Offline, OfflineSettings, OfflineWhole
from siesta.methods.workspace import checkpoint_file
from siesta.sleep.loop import train_step
from siesta.sleep.optimizers import OPTIMIZERS
from siesta.sleep.resume import TrainingCheckpoint
from siesta.sleep.schedule import SCHEDULES
from tests.methods.conftest import Samples, Template, images
from tests.methods.steps import record_rehearsal


def make(folder: Path, **settings: Any) -> Offline:
    return Offline(folder, OfflineSettings(**{"epochs": 2, "batch_size": 4, **settings}), 0)


def trained(folder: Path, samples: Samples, **settings: Any) -> Offline:
    """Return a method that has learned the samples and slept."""
    method = make(folder, **settings)
    method.learn_many(*samples)
    method.sleep()
    return method


def top_of(method: Offline) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in method.state().items() if name.startswith("top.")}


def same_network(one: Offline, other: Offline) -> bool:
    first, second = one.state(), other.state()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_updates_are_epochs_times_samples(templates: dict[str, Template]) -> None:
    method = make(templates["opq"].folder(), epochs=3)
    method.learn_many(*templates["opq"].samples([0, 1, 2, 0, 1]))
    assert method.resources().updates == 0
    method.sleep()
    assert method.resources().updates == 3 * 5
    method.learn_many(*templates["opq"].samples([3, 3]))
    method.sleep()
    assert method.resources().updates == 3 * 5 + 3 * 7


def test_every_epoch_goes_through_every_sample(templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsal = record_rehearsal(monkeypatch)
    trained(templates["opq"].folder(), templates["opq"].samples([0, 1, 2, 0, 1]), epochs=3)
    epochs = [rehearsal.loaded[start : start + 5] for start in (0, 5, 10)]
    assert [sorted(epoch) for epoch in epochs] == [[1, 2, 3, 4, 5]] * 3
    assert len(rehearsal.loaded) == 15 and epochs[0] != epochs[1]


def test_each_training_starts_from_the_initial_weights(templates: dict[str, Template]) -> None:
    codes, labels = templates["opq"].samples([0, 1, 2, 0, 1, 2])
    twice = make(templates["opq"].folder())
    once = make(templates["opq"].folder())
    twice.learn_many(codes[:3], labels[:3])
    twice.sleep()
    twice.predict_many(codes)
    twice.learn_many(codes[3:], labels[3:])
    twice.sleep()
    once.learn_many(codes[:3], labels[:3])  # in forward passes of the same sizes as above
    once.learn_many(codes[3:], labels[3:])
    once.sleep()
    assert same_network(twice, once)
    assert twice.predict_many(codes) == once.predict_many(codes)


def test_training_equals_a_sleep_of_the_learner_on_the_same_samples(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, labels = templates["opq"].samples([0, 1, 2, 0, 1, 2])
    folder = templates["opq"].folder()
    with Siesta.open(folder) as learner:
        learner.learn_encoded(codes, labels)
    rehearsal = record_rehearsal(monkeypatch)
    method = make(folder)
    method.sleep()
    top = top_of(method)
    answers = method.predict_many(codes)
    method.close()
    with Siesta.open(folder) as learner:
        learner.sleep(updates=12, batch_size=4, policy=rehearsal, mean_share=0, crop=1, seed=rehearsal.seed)
        weights = learner.pipeline.backbone.top.state_dict()
        assert all(torch.equal(weights[name], top[f"top.{name}"]) for name in weights)
        scores = learner.head.logits(learner.pipeline.features(codes))
        names = [learner.classes()[row].label for row in scores.argmax(axis=1).tolist()]
    assert names == [answer[0] for answer in answers]


@pytest.mark.parametrize("method_class", [Offline, OfflineWhole])
def test_classes_learned_one_after_another_are_all_remembered(
    templates: dict[str, Template], method_class: type[Offline]
) -> None:
    template = templates[method_class.codec]
    method = method_class(template.folder(), OfflineSettings(epochs=6, batch_size=16), 0)
    method.learn_many(*template.samples([number for number in range(3) for _ in range(10)]))
    method.sleep()
    queries, labels = template.samples([0, 1, 2] * 6, 5)
    right = [answer[0] == label for answer, label in zip(method.predict_many(queries), labels, strict=True)]
    assert np.mean(right) > 0.8


def test_before_its_first_sleep_it_answers_by_class_means(templates: dict[str, Template]) -> None:
    codes, labels = templates["opq"].samples([0, 1, 2, 3])
    method = make(templates["opq"].folder())
    method.learn_many(codes, labels)
    features = method.workspace.pipeline.features(codes)  # with one sample each they are the class means
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    expected = [[f"class {row}" for row in order] for order in np.argsort(-units @ units.T, axis=1).tolist()]
    assert method.predict_many(codes) == expected


def test_classes_learned_after_the_last_training_are_not_known(templates: dict[str, Template]) -> None:
    method = trained(templates["opq"].folder(), templates["opq"].samples([0, 1]))
    method.learn_many(*templates["opq"].samples([2]))
    codes, _ = templates["opq"].samples([2])
    assert set(method.predict_many(codes)[0]) == {"class 0", "class 1"}
    method.sleep()
    assert set(method.predict_many(codes)[0]) == {"class 0", "class 1", "class 2"}


def test_an_interrupted_training_is_discarded(templates: dict[str, Template]) -> None:
    method = make(templates["opq"].folder())
    codes, labels = templates["opq"].samples([0, 1, 0, 1, 0])
    method.learn_many(codes, labels)
    before = method.predict_many(codes)
    with pytest.raises(KeyboardInterrupt):
        method.sleep(lambda _progress: True)
    assert method.predict_many(codes) == before and method.resources().updates == 0


@pytest.mark.parametrize("settings", [{"optimizer": "adamw", "schedule": "cosine", "lr": 1e-4}, {"schedule": "steps"}])
def test_schedule_and_optimizer_change_the_training(templates: dict[str, Template], settings: dict[str, Any]) -> None:
    samples = templates["opq"].samples([0, 1, 0, 1, 0])
    default = trained(templates["opq"].folder(), samples)
    other = trained(templates["opq"].folder(), samples, **settings)
    assert not same_network(default, other)


def test_every_schedule_and_optimizer_of_the_sleep_loop_is_a_choice() -> None:
    fields = OfflineSettings.model_fields
    assert set(get_args(fields["schedule"].annotation)) == set(SCHEDULES)
    assert set(get_args(fields["optimizer"].annotation)) == set(OPTIMIZERS)


def test_training_on_nothing_and_divergence_are_errors(templates: dict[str, Template]) -> None:
    method = make(templates["opq"].folder(), lr=1e30)
    with pytest.raises(BadInput, match="no samples are stored"):
        method.sleep()
    method.learn_many(*templates["opq"].samples([0, 1, 0, 1, 0]))
    with pytest.raises(BadInput, match="diverged"):
        method.sleep()


def test_frozen_layers_are_not_trained(templates: dict[str, Template]) -> None:
    method = make(templates["opq"].folder(), frozen=2)
    initial = {f"top.{name}": tensor for name, tensor in method.workspace.pipeline.backbone.top.state_dict().items()}
    initial = {name: tensor.clone() for name, tensor in initial.items()}
    method.learn_many(*templates["opq"].samples([0, 1, 2]))
    method.sleep()
    top = top_of(method)
    changed = {name.split(".")[1] for name in initial if not torch.equal(initial[name], top[name])}
    assert not {"0", "1"} & changed and "2" in changed


def norm_statistics(method: Offline) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in top_of(method).items() if "running_" in name}


@pytest.mark.parametrize(("weights", "moves"), [("random", True), ("published", False)])
def test_a_network_trained_from_scratch_has_live_norms(tmp_path: Path, weights: str, moves: bool) -> None:
    folder = tmp_path / "x.siesta"
    with Siesta.create(folder, codec="raw", image_size=32, memory="1MB", weights=weights) as learner:
        initial = {f"top.{name}": tensor.clone() for name, tensor in learner.pipeline.backbone.top.state_dict().items()}
        codes, labels = learner.encode(list(images([0, 1, 2, 0, 1, 2, 0, 1]))), ["a", "b", "c"] * 2 + ["a", "b"]
    method = OfflineWhole(folder, OfflineSettings(epochs=2, batch_size=4), 0)
    method.learn_many(codes, labels)
    method.sleep()
    trained_norms = norm_statistics(method)
    assert trained_norms
    for name, tensor in trained_norms.items():
        assert torch.equal(tensor, initial[name]) != moves, name
    method.save()
    answers = method.predict_many(codes)
    method.close()
    reopened = OfflineWhole(folder, OfflineSettings(epochs=2, batch_size=4), 0)
    assert reopened.predict_many(codes) == answers
    assert all(torch.equal(tensor, trained_norms[name]) for name, tensor in norm_statistics(reopened).items())


@pytest.mark.parametrize("augment", ["mixup_cutmix", "crop_flip"])
def test_augmentation_changes_the_training_but_not_the_updates(
    templates: dict[str, Template], augment: Literal["mixup_cutmix", "crop_flip"]
) -> None:
    networks = []
    for choice in (None, augment):
        method = OfflineWhole(templates["raw"].folder(), OfflineSettings(epochs=2, batch_size=4, augment=choice), 0)
        method.learn_many(*templates["raw"].samples([0, 1, 2, 0, 1]))
        method.sleep()
        assert method.resources().updates == 2 * 5
        networks.append(method)
    assert not same_network(*networks)


@pytest.mark.parametrize(
    ("optimizer", "augment", "lr"),
    [("sgd", None, 0.01), ("adamw", "mixup_cutmix", 0.001), ("adamw", "crop_flip", 0.001)],
)
def test_a_killed_training_resumes_and_ends_the_same(
    templates: dict[str, Template], optimizer: str, augment: str | None, lr: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siesta.methods.offline.TrainingCheckpoint", partial(TrainingCheckpoint, every=0.0))
    samples = templates["opq"].samples([0, 1, 2, 0, 1, 2, 0, 1])
    settings: dict[str, Any] = {"optimizer": optimizer, "augment": augment, "lr": lr}
    uninterrupted = trained(templates["opq"].folder(), samples, **settings)

    last_folder = _killed(templates["opq"], samples, settings, at=0.25)
    last_folder = _killed(templates["opq"], samples, settings, at=0.75, previous=last_folder)
    folder = _reset(templates["opq"], last_folder)
    steps: list[int] = []
    monkeypatch.setattr("siesta.sleep.loop.train_step", _counted(steps))
    resumed = trained(folder, samples, **settings)
    assert len(steps) == 1  # of four
    assert same_network(uninterrupted, resumed)
    assert resumed.predict_many(samples[0]) == uninterrupted.predict_many(samples[0])
    assert resumed.resources().updates == uninterrupted.resources().updates
    resumed.save()
    assert not checkpoint_file(folder).exists()


def _killed(
    template: Template, samples: Samples, settings: dict[str, Any], at: float, previous: Path | None = None
) -> Path:
    """Train until a fraction of the budget, from the checkpoint of the previous folder; return the folder."""

    def kill(progress: Progress) -> None:
        if progress.fraction >= at:
            raise RuntimeError("killed")

    folder = template.folder() if previous is None else _reset(template, previous)
    method = make(folder, **settings)
    method.learn_many(*samples)
    with pytest.raises(RuntimeError, match="killed"):
        method.sleep(kill)
    assert checkpoint_file(folder).exists()
    return folder


def _reset(template: Template, previous: Path) -> Path:
    """Return a folder as the harness resets it: the last whole step, with the checkpoint beside it."""
    folder = template.folder()
    checkpoint_file(previous).rename(checkpoint_file(folder))
    return folder


def _counted(calls: list[int]) -> Callable[..., Any]:
    def step(*arguments: Any) -> Any:
        calls.append(1)
        return train_step(*arguments)

    return step


def test_a_checkpoint_of_other_samples_is_ignored(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siesta.methods.offline.TrainingCheckpoint", partial(TrainingCheckpoint, every=0.0))
    codes, labels = templates["opq"].samples([0, 1, 2, 0, 1, 2])
    method = make(templates["opq"].folder())
    fresh = make(templates["opq"].folder())
    method.learn_many(codes[:4], labels[:4])
    method.sleep()
    method.learn_many(codes[4:], labels[4:])
    method.sleep()
    for part in (slice(0, 4), slice(4, 6)):
        fresh.learn_many(codes[part], labels[part])
    fresh.sleep()
    assert same_network(fresh, method)


def test_a_discriminant_reads_out_the_trained_top(templates: dict[str, Template]) -> None:
    template = templates["opq"]
    codes, labels = template.samples([0, 1, 2, 3] * 6)
    cosine = trained(template.folder(), (codes, labels))
    folder = template.folder()
    method = trained(folder, (codes, labels), readout="discriminant")
    assert all(torch.equal(top_of(cosine)[name], tensor) for name, tensor in top_of(method).items())
    cosine.predict_many(codes[:1])  # loads the trained top
    features = np.concatenate([cosine.workspace.pipeline.features(codes[start : start + 1]) for start in range(24)])
    units = np.sign(features) * np.sqrt(np.abs(features)).astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    rows = np.arange(24) % 4
    means = np.stack([units[rows == row].mean(axis=0) for row in range(4)])
    covariance = (units - means[rows]).T @ (units - means[rows]) / (24 - 4)
    width = covariance.shape[0]
    shrunk = 0.2 * covariance + 0.8 * np.trace(covariance) / width * np.eye(width)
    weights = np.linalg.solve(shrunk, means.T)
    noise = np.trace(np.linalg.solve(shrunk, covariance)) / 6
    queries, _ = template.samples([3, 1, 0, 2, 2, 1], seed=5)
    found = method.predict_many(queries, 4)
    z = cosine.workspace.pipeline.features(queries)
    u = np.sign(z) * np.sqrt(np.abs(z))
    scores = u / np.linalg.norm(u, axis=1, keepdims=True) @ weights - 0.5 * ((means.T * weights).sum(axis=0) - noise)
    assert found == [[f"class {row}" for row in order] for order in np.argsort(-scores, axis=1).tolist()]
    assert method.resources().bytes["means"] > cosine.resources().bytes["means"]
    method.save()
    method.close()
    assert make(folder, readout="discriminant").predict_many(queries, 4) == found


def test_recorded_runs_keep_their_settings() -> None:
    assert "readout" not in OfflineSettings().model_dump(by_alias=True)
    assert OfflineSettings(readout="discriminant").model_dump()["readout"] == "discriminant"
