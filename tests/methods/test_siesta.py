"""SIESTA as a method equals the learner; its settings are those of its sleeps."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from siesta import Siesta
from siesta.methods.siesta import SiestaMethod, SiestaSettings
from siesta.selections import SELECTIONS, herding
from siesta.sleep.options import SleepOptions
from tests.methods.conftest import Template
from tests.small import create_small


def test_awake_it_answers_and_stores_like_the_learner(templates: dict[str, Template]) -> None:
    codes, labels = templates["opq"].samples([0, 1, 2, 1])
    method = SiestaMethod(templates["opq"].folder(), SiestaSettings(updates=0), 0)
    method.learn_many(codes, labels)
    method.sleep()  # without updates there is no sleep
    assert method.resources().updates == 0 and method.resources().flops["sleep"] == 0
    with Siesta.open(templates["opq"].folder()) as learner:
        learner.learn_encoded(codes, labels)
        expected = [[label for label, _ in prediction.top] for prediction in learner.predict_encoded(codes, 3)]
    assert method.predict_many(codes, 3) == expected
    assert len(method.workspace.store) == 4


def test_settings_reach_the_sleep(templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[SleepOptions] = []
    sleep = Siesta.sleep

    def recorded(learner: Siesta, options: SleepOptions, **rest: Any) -> Any:
        calls.append(options)
        return sleep(learner, options, **rest)

    monkeypatch.setattr(Siesta, "sleep", recorded)
    settings = SiestaSettings(
        updates=6, policy="uniform", augment="mixup", batch_size=3, lr=0.01, layer_decay=0.5, mean_share=0.25
    )
    method = SiestaMethod(templates["opq"].folder(), settings, 0)
    method.learn_many(*templates["opq"].samples([0, 1, 2, 1]))
    method.sleep()
    method.sleep()
    assert method.resources().updates == 12
    assert len(calls) == 2
    for name, value in settings.model_dump(exclude={"head"}).items():
        assert getattr(calls[0], name) == value


def test_an_interrupted_sleep_is_not_counted(templates: dict[str, Template]) -> None:
    method = SiestaMethod(templates["opq"].folder(), SiestaSettings(updates=8, batch_size=2), 0)
    method.learn_many(*templates["opq"].samples([0, 1]))
    with pytest.raises(KeyboardInterrupt):
        method.sleep(lambda _progress: True)
    assert method.resources().updates == 0


def test_a_sleep_changes_the_top_of_the_learner_in_the_folder(templates: dict[str, Template]) -> None:
    folder = templates["opq"].folder()
    method = SiestaMethod(folder, SiestaSettings(updates=8, batch_size=4), 0)
    top = method.workspace.pipeline.backbone.top
    before = [parameter.detach().clone() for parameter in top.parameters()]
    method.learn_many(*templates["opq"].samples([0, 1, 2, 1]))
    method.sleep()
    after = list(method.workspace.pipeline.backbone.top.parameters())
    assert any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
    method.close()
    with Siesta.open(folder) as learner:
        assert [generation.number for generation in learner.generations()] == [0, 1]


@pytest.mark.parametrize(("key", "name"), [("policy", "best"), ("augment", "blur"), ("selection", "oldest")])
def test_unknown_names_are_refused_with_the_choices(key: str, name: str) -> None:
    with pytest.raises(ValidationError, match=f"'{name}'"):
        SiestaSettings.model_validate({key: name})


def small_learner(folder: Path) -> Path:
    """Return the folder of a learner whose memory holds 12 samples."""
    with create_small(folder, memory="12 samples", hold_out=False):
        return folder


def test_with_herding_a_full_memory_evicts_the_last_in_the_order_of_the_new_top(
    templates: dict[str, Template], tmp_path: Path
) -> None:
    method = SiestaMethod(
        small_learner(tmp_path / "a"), SiestaSettings(updates=8, batch_size=4, selection="herding"), 0
    )
    method.learn_many(*templates["opq"].samples([0, 1] * 6))
    method.sleep()
    samples = method.workspace.store.samples
    kept = []
    for class_id in (1, 2):
        ids = np.arange(class_id, 13, 2)  # of alternating classes
        features = method.workspace.pipeline.features(samples.get(ids)[1])
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        kept += ids[herding(features, 6, np.random.default_rng(0))][:4].tolist()
    assert method.resources().flops["sleep"] > 0
    method.learn_many(*templates["opq"].samples([2] * 4, 1))  # three classes of four: each older one gives up two
    assert samples.ids().tolist() == sorted([*kept, 13, 14, 15, 16])
    method.close()


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("updates", [0, 8])
def test_ranked_memories_resume_bit_for_bit(
    templates: dict[str, Template], tmp_path: Path, selection: str, updates: int
) -> None:
    settings = SiestaSettings(updates=updates, batch_size=4, selection=selection)
    straight = SiestaMethod(small_learner(tmp_path / "a"), settings, 0)
    straight.learn_many(*templates["opq"].samples([0, 1] * 6))
    straight.sleep()
    straight.save()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    resumed = SiestaMethod(tmp_path / "b", settings, 0)
    for method in (straight, resumed):
        for seed in (1, 2):
            method.learn_many(*templates["opq"].samples([2, 3, 0, 2], seed))
            method.sleep()
    stored = [method.workspace.store.samples for method in (straight, resumed)]
    assert np.array_equal(stored[0].ids(), stored[1].ids())
    assert np.array_equal(stored[0].get(stored[0].ids())[1], stored[1].get(stored[1].ids())[1])
    assert straight.resources().flops == resumed.resources().flops
    straight.close()
    resumed.close()


def test_an_unused_selection_is_no_part_of_the_recorded_settings() -> None:
    assert "selection" not in SiestaSettings().model_dump(mode="json", by_alias=True)
    assert SiestaSettings(selection="random").model_dump(by_alias=True)["selection"] == "random"


def test_planned_updates_are_those_of_a_sleep_for_each_step() -> None:
    assert SiestaSettings(updates=10).planned_updates([500, 300]) == 20


def test_the_head_of_the_learner_predicts_and_its_statistics_are_counted(tmp_path: Path) -> None:
    images = np.stack([np.full((32, 32, 3), 40 * number, np.uint8) for number in range(6)])
    bytes_of_means = []
    heads: tuple[Literal["cosine", "discriminant"], ...] = ("cosine", "discriminant")
    for head in heads:
        folder = tmp_path / head
        with Siesta.create(folder, image_size=32, memory="20 samples", hold_out=False, head=head) as learner:
            codes = learner.encode(list(images))
        method = SiestaMethod(folder, SiestaSettings(updates=8, batch_size=4, head=head), 0)
        method.learn_many(codes, ["dark", "dark", "grey", "grey", "bright", "bright"])
        method.sleep()
        assert [labels[0] for labels in method.predict_many(codes, 1)][::2] == ["dark", "grey", "bright"]
        bytes_of_means.append(method.resources().bytes["means"])
        method.close()
    matrix, sums = 1280 * 1281 // 2 * 8, 3 * 1280 * 8
    assert bytes_of_means[1] - bytes_of_means[0] == matrix + sums


def test_settings_of_version_0_1_are_written_as_then() -> None:
    assert "head" not in SiestaSettings(head="cosine").model_dump(by_alias=True)
    assert SiestaSettings().model_dump(by_alias=True)["head"] == "discriminant"
