"""Conformance: every method that trains asleep continues after kill -9; this cuts across methods and training loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from siesta import Siesta
from siesta.contracts import Method
from siesta.methods import METHODS, MethodSettings
from siesta.methods.workspace import checkpoint_file
from tests.kills import count_steps, killer_at, run_until_killed
from tests.methods.conftest import Samples, Template, small_settings, template_name
from tests.methods.tiny import register_tiny

STEPS = 4  # of our methods
MORE: dict[str, dict[str, Any]] = {
    "dytox": {"width": 16, "depth": 2, "heads": 4},
    "siesta": {"policy": "max_loss"},
    "offline": {"optimizer": "adamw", "lr": 0.001, "augment": "crop_flip"},
}
LATER_STEPS = {"simple_der": 2}
"""Steps of a second training in the same sleep."""
SLOW = {"siesta_aug", "siesta_uniform", "siesta_er", "offline_whole"}
SLOW |= {"end_to_end", "bic", "wa", "podnet", "der", "memo", "foster", "dytox"}


def settings_of(name: str) -> MethodSettings:
    return METHODS[name].settings({**small_settings(name, updates=16), **MORE.get(name, {})})


def trains_asleep(name: str) -> bool:
    spec = METHODS[name]
    return (spec.sleeps or spec.offline or spec.collects) and settings_of(name).planned_updates([1]) > 0


CASES = [
    pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in METHODS if trains_asleep(name)
]


def make(name: str, folder: Path) -> Method:
    return METHODS[name].make(folder, settings_of(name), 3)


def sleep_until_killed(name: str, folder: Path, samples: Samples, fraction: float) -> None:
    register_tiny()
    method = make(name, folder)
    method.learn_many(*samples)
    method.sleep(killer_at(fraction))


def reset(template: Template, previous: Path) -> Path:
    """Return a folder as the harness resets it: the last whole step, with the checkpoint beside it."""
    folder = template.folder()
    checkpoint_file(previous).rename(checkpoint_file(folder))
    return folder


def slept(name: str, folder: Path, samples: Samples) -> Method:
    method = make(name, folder)
    method.learn_many(*samples)
    method.sleep()
    return method


def tensors(folder: Path) -> dict[str, bytes]:
    """Return every file of tensors in a folder: all generations of weights, and what the method keeps beside them."""
    files = sorted(folder.rglob("*.safetensors"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if file.name != "method.safetensors"}


def state(folder: Path, method: Method) -> dict[str, Tensor]:
    method.save()
    return load_file(folder / "method.safetensors")


@pytest.mark.parametrize("name", CASES)
def test_a_killed_sleep_continues_and_ends_with_the_same_tensors(
    templates: dict[str, Template], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after one step of four, and after three, where steps are as long as in our methods."""
    template = templates[template_name(name)]
    samples = template.samples([0, 1, 2, 0, 1, 2, 0, 1])
    folder = template.folder()
    run_until_killed(sleep_until_killed, name, folder, samples, 0.25)
    folder = reset(template, folder)
    run_until_killed(sleep_until_killed, name, folder, samples, 0.75)
    folder = reset(template, folder)
    steps = count_steps(monkeypatch)
    resumed = slept(name, folder, samples)
    resumed_steps = len(steps)
    whole_folder = template.folder()
    whole = slept(name, whole_folder, samples)
    whole_steps = len(steps) - resumed_steps
    later_steps = LATER_STEPS.get(name, 0)
    assert 0 < resumed_steps <= (whole_steps - later_steps) / 4 + later_steps, "the others are those of the checkpoint"
    assert whole_steps == STEPS + later_steps or name not in METHODS.own
    assert tensors(folder) == tensors(whole_folder)
    one, other = state(folder, resumed), state(whole_folder, whole)
    assert one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)
    assert resumed.predict_many(samples[0]) == whole.predict_many(samples[0])
    assert resumed.resources().updates == whole.resources().updates
    assert resumed.resources().flops == whole.resources().flops
    assert not checkpoint_file(folder).exists(), "save removes it"
    for method in (resumed, whole):
        method.close()


def test_a_checkpoint_of_other_samples_is_not_used(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    template = templates["opq"]
    folder = template.folder()
    run_until_killed(sleep_until_killed, "siesta", folder, template.samples([0, 1, 2, 0, 1, 2]), 0.5)
    folder = reset(template, folder)
    others = template.samples([0, 1, 2, 0, 1, 2], seed=1)  # as many, of the same classes
    steps = count_steps(monkeypatch)
    slept("siesta", folder, others).close()
    assert len(steps) == STEPS


def test_a_second_sleep_does_not_use_the_checkpoint_of_the_first(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siesta.sleep.resume.CHECKPOINT_SECONDS", 0.0)
    template = templates["opq"]
    folder = template.folder()
    method = slept("siesta", folder, template.samples([0, 1, 2, 0, 1, 2]))
    assert checkpoint_file(folder).exists()
    steps = count_steps(monkeypatch)
    method.sleep()
    assert len(steps) == STEPS
    method.close()
    with Siesta.open(folder) as learner:
        assert np.isfinite(learner.head.weights()).all() and learner.active_generation() == 2
