"""Every method of the registry: resumption, chunks, seeds, wrong input, costs.

The variants of SIESTA are settings of one class and go through two checks only: resumption and seeds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from siesta.codecs import CODECS
from siesta.contracts import Method, Resources
from siesta.errors import BadInput, Damaged
from siesta.experiment.result_row import validate_resources
from siesta.methods import METHODS
from tests.methods.conftest import Template, small_settings, template_name

QUICK: dict[str, dict[str, Any]] = {
    "remind": {"lr": 0.01, "final_lr": 0.001, "step": 1, "decay_over": 4, "augment": True},
    "er": {"lr": 0.01, "augment": True},
    "finetune": {"lr": 0.01},
    "dytox": {"width": 16, "depth": 2, "heads": 4},
}
"""Settings besides `small_settings` with which all of a method is used."""

VARIANTS = [name for name in METHODS if name.startswith("siesta_")]
MAIN = [name for name in METHODS if name not in VARIANTS]
DETERMINISTIC = {"ncm", "slda", "siesta_awake"}
"""Methods without randomness: their seed makes no difference."""

FIRST = [0, 1, 0, 1, 0]
SECOND = [2, 0, 3, 2, 1]
QUERIES = [0, 1, 2, 3, 2, 1, 0]

every_method = pytest.mark.parametrize("name", METHODS)
main_methods = pytest.mark.parametrize("name", MAIN)


def make(name: str, folder: Path, seed: int = 3) -> Method:
    spec = METHODS[name]
    method = spec.make(folder, spec.settings({**small_settings(name), **QUICK.get(name, {})}), seed)
    assert isinstance(method, Method)
    return method


def template_of(templates: dict[str, Template], name: str) -> Template:
    return templates[template_name(name)]


def without_times(resources: Resources) -> tuple[Any, ...]:
    return resources.updates, resources.parameters, dict(resources.bytes), dict(resources.flops)


def saved_tensors(folder: Path) -> list[bytes]:
    """Return the data of all tensor files that a method saved, without their headers, which contain times."""
    files = [folder / "method.safetensors", *sorted((folder / "generations").rglob("*.safetensors"))]
    contents = [file.read_bytes() for file in files]
    return [data[8 + int.from_bytes(data[:8], "little") :] for data in contents]


def with_bases(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test with and without a base initialisation, variants with one only."""
    cases = [pytest.param(name, True, id=f"base-{name}") for name in METHODS]
    cases += [pytest.param(name, False, id=f"empty-{name}") for name in MAIN]
    marked: Callable[..., None] = pytest.mark.parametrize(("name", "base"), cases)(test)
    return marked


@with_bases
def test_resuming_from_a_saved_copy_changes_nothing(
    templates: dict[str, Template], name: str, base: bool, tmp_path: Path
) -> None:
    template = template_of(templates, name)
    queries, _ = template.samples(QUERIES, 9)
    folder = template.folder(template.samples([0, 4, 0, 4]) if base else None)
    straight = make(name, folder)
    straight.learn_many(*template.samples(FIRST))
    straight.sleep()
    straight.predict_many(queries)
    straight.save()
    shutil.copytree(folder, tmp_path / "copy")  # while it is open, as a checkpoint is made
    straight.learn_many(*template.samples(SECOND))
    resumed = make(name, tmp_path / "copy")
    resumed.learn_many(*template.samples(SECOND))
    answers = []
    for method in (straight, resumed):
        awake = method.predict_many(queries)
        method.sleep()
        answers.append((awake, method.predict_many(queries)))
        method.save()
    assert answers[0] == answers[1]
    assert without_times(straight.resources()) == without_times(resumed.resources())
    assert saved_tensors(folder) == saved_tensors(tmp_path / "copy")
    straight.close()
    resumed.close()


@every_method
def test_the_seed_decides(templates: dict[str, Template], name: str) -> None:
    template = template_of(templates, name)

    def learned(seed: int) -> list[bytes]:
        folder = template.folder()
        method = make(name, folder, seed)
        method.learn_many(*template.samples(FIRST + SECOND))
        method.sleep()
        method.save()
        method.close()
        return saved_tensors(folder)

    first = learned(3)
    assert learned(3) == first
    assert (learned(4) == first) == (name in DETERMINISTIC)


@main_methods
def test_chunks_are_learned_like_the_whole(templates: dict[str, Template], name: str) -> None:
    template = template_of(templates, name)
    codes, labels = template.samples(FIRST + SECOND)
    whole, parts = (make(name, template.folder()) for _ in range(2))
    whole.learn_many(codes, labels)
    for index in (slice(0, 1), slice(1, 1), slice(1, 7), slice(7, None)):
        parts.learn_many(codes[index], labels[index])
    whole.sleep()
    parts.sleep()
    queries, _ = template.samples(QUERIES, 9)
    assert whole.predict_many(queries, top=2) == parts.predict_many(queries, top=2)
    assert without_times(whole.resources()) == without_times(parts.resources())


@main_methods
def test_answers_are_all_known_classes_best_first(templates: dict[str, Template], name: str) -> None:
    template = template_of(templates, name)
    method = make(name, template.folder())
    method.learn_many(*template.samples(FIRST + SECOND))
    method.sleep()
    queries, _ = template.samples(list(range(8)) * 5, 9)  # more than one forward pass
    answers = method.predict_many(queries, top=9)
    assert len(answers) == 40
    assert all(sorted(answer) == [f"class {number}" for number in range(4)] for answer in answers)
    assert [answer[:2] for answer in answers] == method.predict_many(queries, top=2)
    assert method.predict_many(queries[:0]) == []


@main_methods
def test_base_classes_are_known_from_the_start(templates: dict[str, Template], name: str) -> None:
    template = template_of(templates, name)
    method = make(name, template.folder(template.samples([4, 0, 4, 0])))
    queries, labels = template.samples([0, 4], 9)
    assert [answer[0] for answer in method.predict_many(queries)] == labels
    method.learn_many(*template.samples([1, 4]))
    method.sleep()
    assert {label for answer in method.predict_many(queries) for label in answer} == {"class 0", "class 1", "class 4"}


@main_methods
def test_wrong_input_is_refused(templates: dict[str, Template], name: str) -> None:
    template = template_of(templates, name)
    method = make(name, template.folder())
    codes, labels = template.samples([0, 1])
    with pytest.raises(BadInput, match="not learned any class yet"):
        method.predict_many(codes)
    with pytest.raises(BadInput, match="2 samples came with 1 label"):
        method.learn_many(codes, labels[:1])
    wrong_codes: list[Any] = [codes[:, 1:], codes[0], codes.astype(np.int64)]
    for wrong in wrong_codes:
        with pytest.raises(BadInput, match="codes must be"):
            method.learn_many(wrong, ["class 0"] * len(wrong))
    with pytest.raises(BadInput, match="control character"):
        method.learn_many(codes, ["class 0", "a\nb"])
    method.learn_many(codes, labels)
    with pytest.raises(BadInput, match="codes must be"):
        method.predict_many(codes[:, 1:])
    with pytest.raises(BadInput, match="top must be at least 1, not 0"):
        method.predict_many(codes, top=0)


@main_methods
def test_refused_samples_leave_no_trace(templates: dict[str, Template], name: str) -> None:
    template = template_of(templates, name)
    method = make(name, template.folder())
    codes, labels = template.samples([0, 1])
    method.learn_many(codes, labels)
    before = without_times(method.resources())
    with pytest.raises(BadInput):
        method.learn_many(codes, ["class 5", ""])
    assert without_times(method.resources()) == before


@every_method
def test_settings_of_unknown_keys_and_wrong_types_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="unheard_of"):
        METHODS[name].settings({"unheard_of": 1})
    for key in METHODS[name].settings_class.model_fields:
        with pytest.raises(ValidationError, match=key):
            METHODS[name].settings({key: "many"})


@main_methods
def test_the_wrong_codec_is_refused(templates: dict[str, Template], name: str) -> None:
    required = METHODS[name].codec
    other = "raw" if required == "opq" else "opq"
    with pytest.raises(BadInput, match=f"method requires codec '{required}', but the learner uses '{other}'"):
        make(name, templates[other].folder())


@main_methods
def test_a_damaged_state_is_refused(templates: dict[str, Template], name: str) -> None:
    folder = template_of(templates, name).folder()
    (folder / "method.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(Damaged, match="resume from an older checkpoint"):
        make(name, folder)


@main_methods
def test_resources_have_all_their_parts(templates: dict[str, Template], name: str) -> None:
    template = template_of(templates, name)
    method = make(name, template.folder())
    method.learn_many(*template.samples(FIRST))
    method.sleep()
    method.predict_many(template.samples(QUERIES)[0])
    resources = validate_resources(name, method.resources())
    assert set(resources.bytes) == {"codes", "images", "network", "copies", "codebooks", "means"}
    assert set(resources.flops) == set(resources.seconds) == {"wake", "sleep", "inference"}
    assert resources.bytes["network"] == 4 * resources.parameters > 4e3
    assert (resources.bytes["codebooks"] > 0) == CODECS[METHODS[name].codec].needs_fit
    for phase in ("wake", "inference"):
        assert resources.seconds[phase] > 0
        assert (resources.flops[phase] > 0) == (phase == "inference" or not METHODS[name].collects)
    trains_asleep = METHODS[name].offline or METHODS[name].sleeps or METHODS[name].collects
    assert (resources.flops["sleep"] > 0) == (resources.seconds["sleep"] > 0) == trains_asleep
