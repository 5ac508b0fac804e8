"""What all batch learners share: steps, exemplars, stages that continue, costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from siesta.backbones import DEFAULT_BACKBONE
from siesta.contracts import Progress
from siesta.errors import BadInput
from siesta.methods import METHODS
from siesta.methods.batch.network import parameter_bytes
from siesta.methods.workspace import checkpoint_file
from tests.kills import count_steps
from tests.methods.batch.steps import FIRST, SECOND, after_two_steps, make, step
from tests.methods.conftest import Template, small_settings
from tests.methods.tiny import TINY

COLLECTING = [name for name, spec in METHODS.own.items() if spec.collects]
SMALL_TRANSFORMER = {"width": 16, "depth": 2, "heads": 4}


def options(name: str) -> dict[str, Any]:
    return SMALL_TRANSFORMER if name == "dytox" else {}


@pytest.fixture(scope="module")
def default_template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("default"), "raw", codec="raw", memory="1MB", backbone=DEFAULT_BACKBONE)


@pytest.mark.parametrize("name", [name for name in COLLECTING if name != "dytox"])
def test_every_method_learns_steps_on_the_default_network(default_template: Template, name: str) -> None:
    template, spec = default_template, METHODS[name]
    method = spec.make(template.folder(), spec.settings({**small_settings(name), "norms": "frozen"}), 3)
    for classes in ([0, 1, 0, 1], [2, 2, 0]):
        method.learn_many(*template.samples(classes))
        method.sleep()
    answers = method.predict_many(template.samples([0, 1, 2], 9)[0])
    assert all(sorted(answer) == ["class 0", "class 1", "class 2"] for answer in answers)
    method.close()


def test_classes_of_different_colours_are_told_apart(templates: dict[str, Template]) -> None:
    method = make(templates, "wa", epochs=12, first_epochs=12, lr=0.05, exemplars=8, augment="none")
    step(templates, method, FIRST)
    step(templates, method, SECOND)
    queries, labels = templates[TINY].samples([0, 1, 2, 3] * 3, 9)
    correct = [answer[0] == label for answer, label in zip(method.predict_many(queries), labels, strict=True)]
    assert np.mean(correct) >= 0.75


def test_exemplars_share_the_memory_and_all_else_is_discarded(templates: dict[str, Template]) -> None:
    method = make(templates, "icarl", exemplars=6)
    step(templates, method, FIRST)
    assert [len(method.exemplars.of(row)) for row in range(2)] == [3, 3]
    first = method.exemplars.of(0).tolist()
    step(templates, method, SECOND)
    assert [len(method.exemplars.of(row)) for row in range(4)] == [1, 1, 1, 1]
    assert method.exemplars.of(0).tolist() == first[:1], "the most important one stays"
    store = method.workspace.store
    assert sorted(store.samples.ids().tolist()) == sorted(method.exemplars.ids().tolist()) and len(store) == 4
    assert method.resources().bytes["images"] == 4 * 3 * 32 * 32


def test_a_class_seen_again_is_selected_anew(templates: dict[str, Template]) -> None:
    method = make(templates, "icarl", exemplars=4, selection="random")
    step(templates, method, FIRST)
    step(templates, method, [0] * 20, seed=1)
    assert len(method.exemplars.of(0)) == len(method.exemplars.of(1)) == 2
    assert set(method.exemplars.of(0).tolist()) & set(range(9, 30)), "among old and new ones"
    assert method.step_sizes == [2], "a step without new classes"


def test_a_fixed_number_of_each_class_can_be_kept(templates: dict[str, Template]) -> None:
    method = make(templates, "wa", exemplars=100, exemplars_per_class=3)
    step(templates, method, FIRST)
    step(templates, method, SECOND)
    assert [len(method.exemplars.of(row)) for row in range(4)] == [3, 3, 3, 3]


def test_the_memory_must_hold_a_step(templates: dict[str, Template]) -> None:
    method = make(templates, "wa")
    codes, labels = templates[TINY].samples([0] * 8)
    with pytest.raises(BadInput, match=r"the memory holds .* images, too few for the exemplars and a step's images"):
        method.learn_many(np.repeat(codes, 50, axis=0), labels * 50)
    assert len(method.workspace.store) == 0


def test_a_sleep_needs_images_and_one_without_new_ones_does_nothing(templates: dict[str, Template]) -> None:
    method = make(templates, "wa")
    with pytest.raises(BadInput, match="no samples are stored: learn some first"):
        method.sleep()
    method.learn_many(*templates[TINY].samples([0, 1]))
    with pytest.raises(BadInput, match="has not been trained on its classes yet: let it sleep first"):
        method.predict_many(templates[TINY].samples([0])[0])
    method.sleep()
    before = method.resources()
    method.sleep()
    assert method.resources().updates == before.updates


def test_classes_of_a_later_sleep_are_not_predicted_before_it(templates: dict[str, Template]) -> None:
    method = make(templates, "der")
    step(templates, method, FIRST)
    method.learn_many(*templates[TINY].samples(SECOND))
    queries = templates[TINY].samples([0, 2])[0]
    assert all(sorted(answer) == ["class 0", "class 1"] for answer in method.predict_many(queries))


@pytest.mark.parametrize("name", COLLECTING)
def test_updates_are_those_that_were_planned(templates: dict[str, Template], name: str) -> None:
    method = after_two_steps(templates, name, **options(name), batch_size=8, exemplars=8)
    planned = method.settings.planned_updates([len(FIRST), len(SECOND)])
    assert 0.8 * planned <= method.resources().updates <= planned


@pytest.mark.parametrize("name", COLLECTING)
def test_a_stream_without_new_classes_is_learned(templates: dict[str, Template], name: str) -> None:
    method = make(templates, name, **options(name))
    step(templates, method, FIRST)
    parameters = method.resources().parameters
    step(templates, method, FIRST, seed=1)
    assert method.resources().parameters == parameters, "nothing grows"
    assert len(method.predict_many(templates[TINY].samples([0])[0])[0]) == 2


@pytest.mark.parametrize("name", ["end_to_end", "foster"])
def test_an_interrupted_second_stage_continues(templates: dict[str, Template], name: str) -> None:
    """The first stage is gone through without learning; both end with the same tensors."""
    whole = after_two_steps(templates, name)
    other = make(templates, name)
    step(templates, other, FIRST)
    other.save()
    other.learn_many(*templates[TINY].samples(SECOND))
    stages = iter([False, True])
    fractions: list[float] = []

    def interrupt(progress: Progress) -> bool:
        starts = not fractions or progress.fraction < fractions[-1]
        fractions.append(progress.fraction)
        return next(stages) if starts else False

    with pytest.raises(KeyboardInterrupt):
        other.sleep(interrupt)
    with pytest.MonkeyPatch.context() as patch:
        steps = count_steps(patch)
        other.sleep()
    assert len(steps) < len(fractions) + 5
    states = [method.state() for method in (whole, other)]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0] if key.startswith("network."))
    folder = Path(str(other.workspace.store.path))
    other.save()
    assert not checkpoint_file(folder).exists() and not Path(f"{checkpoint_file(folder)}-1").exists()


def test_costs_are_those_of_the_network_as_it_grows(templates: dict[str, Template]) -> None:
    method = make(templates, "der")
    step(templates, method, FIRST)
    queries = templates[TINY].samples([0])[0]

    def inference() -> float:
        before = method.resources().flops["inference"]
        method.predict_many(queries)
        return float(method.resources().flops["inference"] - before)

    small, parameters = inference(), method.resources().parameters
    step(templates, method, SECOND)
    assert inference() == pytest.approx(2 * small, rel=0.02)
    assert method.resources().parameters > 1.9 * parameters
    assert method.resources().bytes["network"] == parameter_bytes(method.network)
    assert method.resources().bytes["copies"] == 0
    assert after_two_steps(templates, "wa").resources().bytes["copies"] > 0, "the previous network"
