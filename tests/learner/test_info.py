"""The facts about a learner, and their JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from siesta import Siesta
from siesta.learner.info import ClassInfo, CodecInfo, SampleInfo, WeightsInfo, space_of
from siesta.store import OVERHEAD_BYTES
from tests.learner.colours import labelled_pictures, picture
from tests.small import create_small
from tests.stores import store_of


def test_an_empty_learner_has_its_settings_and_nothing_else() -> None:
    with Siesta.create(":memory:", memory="10 samples", image_size=32, space="plain") as learner:
        info = learner.info()
    assert info.classes == ()
    assert info.sleeps == info.changes == ()
    assert info.samples == SampleInfo(stored=0, capacity=10)
    assert info.bytes.a_sample == 32 + OVERHEAD_BYTES
    assert info.bytes.allowed == 10 * info.bytes.a_sample
    assert (info.bytes.used, info.bytes.thumbnails, info.bytes.on_disk) == (0, 0, 0)
    assert (info.backbone.name, info.backbone.image_size, info.backbone.space) == ("efficientnet_lite0", 32, "plain")
    assert info.backbone.weights == WeightsInfo("published", ignored=())
    with pytest.raises(FrozenInstanceError):
        info.samples.stored = 1  # type: ignore[misc]


def test_samples_sleeps_and_changes_are_counted(learner: Siesta, tmp_path: Path) -> None:
    learner.learn_many(*labelled_pictures(4))
    learner.sleep(updates=8, batch_size=4)
    learner.rename("red", "crimson")
    info = learner.info()
    assert info.classes == (ClassInfo("crimson", 4, 4), ClassInfo("green", 4, 4), ClassInfo("blue", 4, 4))
    assert info.samples.stored == 12
    assert info.bytes.used == 12 * info.bytes.a_sample
    tensors = sum(file.stat().st_size for file in tmp_path.rglob("*.safetensors"))
    assert info.bytes.on_disk > tensors + info.bytes.statistics
    assert [sleep["updates"] for sleep in info.sleeps] == [8]
    assert [change["what"] for change in info.changes] == ["rename"]


def test_a_sleep_is_due_with_a_new_class_and_not_after_it(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(4))
    need = learner.info().sleep_need
    assert (need.due, need.new_classes, need.new_samples, need.updates_per_second) == (True, 3, 12, None)
    learner.sleep(updates=8, batch_size=4)
    need = learner.info().sleep_need
    assert (need.due, need.new_classes, need.new_samples) == (False, 0, 0) and need.seconds is not None
    learner.learn_one(picture("red", 7), "red")
    assert (learner.info().sleep_need.due, learner.info().sleep_need.new_samples) == (False, 1)
    learner.learn_one(picture("grey", 7), "grey")
    assert (learner.info().sleep_need.due, learner.info().sleep_need.new_classes) == (True, 1)


def test_as_dict_has_the_published_keys(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(1))
    values = learner.info().as_dict()
    assert json.loads(json.dumps(values)) == values
    assert list(values) == [
        "classes",
        "samples",
        "bytes",
        "backbone",
        "codec",
        "head",
        "sleep_need",
        "sleeps",
        "changes",
        "rejections",
    ]
    assert values["classes"][0] == {"label": "red", "taught": 1, "stored": 1}
    assert list(values["samples"]) == ["stored", "capacity"]
    assert list(values["bytes"]) == ["used", "allowed", "a_sample", "thumbnails", "statistics", "on_disk"]
    assert list(values["backbone"]) == ["name", "cut", "weights", "image_size", "space", "features"]
    assert values["backbone"]["weights"] == {"from": "published", "ignored": []}
    assert list(values["codec"]) == ["name", "relative_error", "error_lately", "drifted"]


@pytest.mark.parametrize(
    ("count", "ratio", "drifted"), [(19, 2.0, False), (20, 2.0, True), (20, 1.24, False), (200, 1.26, True)]
)
def test_the_codec_has_drifted_after_enough_large_errors(count: int, ratio: float, drifted: bool) -> None:
    with create_small() as learner:
        learner.learn_many(*labelled_pictures(3))
        assert not learner.info().codec.drifted
        fitted_error = learner.info().codec.relative_error
        store_of(learner).session.connection.execute(
            "UPDATE drift SET count = ?, error = ?", (count, ratio * fitted_error)
        )
        assert learner.info().codec == CodecInfo("opq", fitted_error, ratio * fitted_error, drifted)


def test_the_space_of_an_old_learner_is_read_from_its_centre(tmp_path: Path) -> None:
    for space in ("centred", "plain"):
        with create_small(space=space) as learner:
            assert space_of({}, learner.pipeline.network) == space
