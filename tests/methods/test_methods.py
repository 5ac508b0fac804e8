"""What every method promises, whichever it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from siesta.contracts import Method, Resources
from siesta.errors import BadInput, Damaged
from siesta.methods import METHODS
from tests.methods.conftest import Start

QUICK: dict[str, dict[str, Any]] = {
    "siesta": {"updates": 8, "batch_size": 4},
    "siesta_aug": {"updates": 8, "batch_size": 4},
    "siesta_uniform": {"updates": 8, "batch_size": 4},
    "siesta_er": {"updates": 8, "batch_size": 4},
    "remind": {"rehearsals": 3, "rate": 0.01, "final_rate": 0.001, "step": 1, "decay_over": 4, "augment": True},
    "er": {"rehearsals": 3, "rate": 0.01, "augment": True},
    "finetune": {"rate": 0.01},
    "offline": {"epochs": 2, "batch_size": 4},
    "offline_whole": {"epochs": 2, "batch_size": 4},
}
"""Settings with which a method is quick and all of it is used."""

FIRST, SECOND, ASKED = [0, 1, 0, 1, 0], [2, 0, 3, 2, 1], [0, 1, 2, 3, 2, 1, 0]

pytestmark = pytest.mark.parametrize("name", METHODS)


def make(name: str, folder: Path, seed: int = 3) -> Method:
    kind = METHODS[name]
    method = kind.make(folder, kind.settings(QUICK.get(name, {})), seed)
    assert isinstance(method, Method)
    return method


def start(starts: dict[str, Start], name: str) -> Start:
    return starts[METHODS[name].codec]


def without_times(resources: Resources) -> tuple[Any, ...]:
    return resources.updates, resources.parameters, dict(resources.bytes), dict(resources.flops)


def weights(folder: Path) -> bytes:
    """The method's own tensors as they lie in its folder, without the header, which has times in it."""
    data = (folder / "method.safetensors").read_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


@pytest.mark.parametrize("base", [False, True], ids=["empty", "base"])
def test_going_on_from_a_saved_copy_changes_nothing(
    starts: dict[str, Start], name: str, base: bool, tmp_path: Path
) -> None:
    some = start(starts, name)
    folder = some.folder(some.lesson([0, 4, 0, 4]) if base else None)
    straight = make(name, folder)
    straight.learn_many(*some.lesson(FIRST))
    straight.sleep()
    straight.predict_many(some.lesson(ASKED, 9)[0])
    straight.save()
    shutil.copytree(folder, tmp_path / "copy")  # while it is open, as a checkpoint is made
    straight.learn_many(*some.lesson(SECOND))
    resumed = make(name, tmp_path / "copy")
    resumed.learn_many(*some.lesson(SECOND))
    answers = []
    for method in (straight, resumed):
        answers.append([method.predict_many(some.lesson(ASKED, 9)[0])])
        method.sleep()
        answers[-1].append(method.predict_many(some.lesson(ASKED, 9)[0]))
        method.save()
    assert answers[0] == answers[1]
    assert without_times(straight.resources()) == without_times(resumed.resources())
    assert weights(folder) == weights(tmp_path / "copy")
    straight.close()
    resumed.close()


def test_chunks_are_learned_like_the_whole(starts: dict[str, Start], name: str) -> None:
    some = start(starts, name)
    codes, labels = some.lesson(FIRST + SECOND)
    whole, parts = (make(name, some.folder()) for _ in range(2))
    whole.learn_many(codes, labels)
    for index in (slice(0, 1), slice(1, 1), slice(1, 7), slice(7, None)):
        parts.learn_many(codes[index], labels[index])
    whole.sleep()
    parts.sleep()
    asked, _ = some.lesson(ASKED, 9)
    assert whole.predict_many(asked, top=2) == parts.predict_many(asked, top=2)
    assert without_times(whole.resources()) == without_times(parts.resources())


def test_the_seed_alone_decides(starts: dict[str, Start], name: str) -> None:
    some, results = start(starts, name), []
    for seed in (3, 3):
        folder = some.folder()
        method = make(name, folder, seed)
        method.learn_many(*some.lesson(FIRST + SECOND))
        method.sleep()
        method.save()
        results.append(weights(folder))
    assert results[0] == results[1]


def test_answers_are_all_known_classes_best_first(starts: dict[str, Start], name: str) -> None:
    some = start(starts, name)
    method = make(name, some.folder())
    method.learn_many(*some.lesson(FIRST + SECOND))
    method.sleep()
    asked, _ = some.lesson(list(range(8)) * 5, 9)  # more than go through the network at once
    answers = method.predict_many(asked, top=9)
    assert len(answers) == 40
    assert all(sorted(answer) == [f"class {number}" for number in range(4)] for answer in answers)
    assert [answer[:2] for answer in answers] == method.predict_many(asked, top=2)
    assert method.predict_many(asked[:0]) == []


def test_base_classes_are_known_from_the_start(starts: dict[str, Start], name: str) -> None:
    some = start(starts, name)
    method = make(name, some.folder(some.lesson([4, 0, 4, 0])))
    asked, labels = some.lesson([0, 4], 9)
    assert [answer[0] for answer in method.predict_many(asked)] == labels
    method.learn_many(*some.lesson([1, 4]))
    method.sleep()
    assert {label for answer in method.predict_many(asked) for label in answer} == {"class 0", "class 1", "class 4"}


def test_wrong_input_is_named(starts: dict[str, Start], name: str) -> None:
    some = start(starts, name)
    method = make(name, some.folder())
    codes, labels = some.lesson([0, 1])
    with pytest.raises(BadInput, match="not taught anything yet"):
        method.predict_many(codes)
    with pytest.raises(BadInput, match="2 samples came with 1 label"):
        method.learn_many(codes, labels[:1])
    wrongs: list[Any] = [codes[:, 1:], codes[0], codes.astype(np.int64)]
    for wrong in wrongs:
        with pytest.raises(BadInput, match="codes are"):
            method.learn_many(wrong, ["class 0"] * len(wrong))
    with pytest.raises(BadInput, match="control character"):
        method.learn_many(codes, ["class 0", "a\nb"])
    method.learn_many(codes, labels)
    with pytest.raises(BadInput, match="codes are"):
        method.predict_many(codes[:, 1:])
    with pytest.raises(BadInput, match="at least one answer"):
        method.predict_many(codes, top=0)


def test_a_refused_lesson_leaves_no_trace(starts: dict[str, Start], name: str) -> None:
    some = start(starts, name)
    method = make(name, some.folder())
    codes, labels = some.lesson([0, 1])
    method.learn_many(codes, labels)
    before = without_times(method.resources())
    with pytest.raises(BadInput):
        method.learn_many(codes, ["class 5", ""])
    assert without_times(method.resources()) == before


def test_settings_know_their_keys(starts: dict[str, Start], name: str) -> None:
    with pytest.raises(ValidationError, match="unheard_of"):
        METHODS[name].settings({"unheard_of": 1})
    for key in METHODS[name].model.model_fields:
        with pytest.raises(ValidationError, match=key):
            METHODS[name].settings({key: "many"})


def test_the_wrong_codec_is_refused(starts: dict[str, Start], name: str) -> None:
    other = starts["raw" if METHODS[name].codec == "opq" else "opq"]
    with pytest.raises(BadInput, match="start it from a learner with that codec"):
        make(name, other.folder())


def test_damage_is_named(starts: dict[str, Start], name: str) -> None:
    folder = start(starts, name).folder()
    (folder / "method.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(Damaged, match="go on from an older copy"):
        make(name, folder)


def test_resources_have_all_their_parts(starts: dict[str, Start], name: str) -> None:
    some = start(starts, name)
    method = make(name, some.folder())
    method.learn_many(*some.lesson(FIRST))
    method.sleep()
    method.predict_many(some.lesson(ASKED)[0])
    resources = method.resources()
    assert set(resources.bytes) == {"codes", "images", "network", "copies", "codebooks", "means"}
    assert set(resources.flops) == set(resources.seconds) == {"wake", "sleep", "inference"}
    assert resources.bytes["network"] == 4 * resources.parameters > 4 * 2e6
    assert (resources.bytes["codebooks"] > 0) == (METHODS[name].codec == "opq")
    for phase in ("wake", "inference"):
        assert resources.flops[phase] > 0 and resources.seconds[phase] > 0
    assert (
        (resources.flops["sleep"] > 0)
        == (resources.seconds["sleep"] > 0)
        == (name.startswith("offline") or METHODS[name].sleeps)
    )
