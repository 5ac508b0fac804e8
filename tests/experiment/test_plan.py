"""Planned runs: their order, streams, identities, refusals and estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta.errors import BadInput
from siesta.experiment import PlannedRun, Stopwatch, estimate_cost, load_config, planned_runs, read_dataset
from tests.experiment.conftest import WriteConfig
from tests.experiment.running import rows_of


def plan(path: Path, *changes: str, **chosen: Any) -> list[PlannedRun]:
    config = load_config(path, changes, **chosen)
    return planned_runs(config, read_dataset(config))


def test_every_combination_of_order_seed_and_method_is_a_run(write_config: WriteConfig) -> None:
    runs = plan(write_config(), methods=["siesta", "ncm"], seeds=[0, 1])
    assert [run.name for run in runs] == [
        f"{method}-{order}-{seed}"
        for order in ("class_incremental", "iid")
        for seed in (0, 1)
        for method in ("siesta", "ncm")
    ]
    assert runs[1].command == "siesta run toy.toml --methods ncm --orders class_incremental --seeds 0"
    assert len({run.identity for run in runs}) == len(runs)


def test_an_offline_learner_gets_the_same_samples_in_one_step(write_config: WriteConfig) -> None:
    path = write_config("[methods.ncm]", "[methods.offline]")
    siesta, _, offline = plan(path, orders=["class_incremental"])
    assert [len(step) for step in siesta.stream.steps()] == [10, 10]
    (only,) = offline.stream.steps()
    assert np.array_equal(np.sort(only), np.sort(np.concatenate(list(siesta.stream.steps()))))


def test_initial_states_are_shared_if_all_that_they_depend_on_is_equal(write_config: WriteConfig) -> None:
    path = write_config()
    cosine = "methods.siesta.head=cosine"
    siesta, remind, _ = (run.initial_state_name for run in plan(path, cosine, orders=["iid"]))
    assert siesta == remind
    for change in ("data.image_size=64", "network.space=plain", "samples=7", "seeds=[1]"):
        assert plan(path, cosine, change, orders=["iid"])[0].initial_state_name != siesta, change
    assert plan(path, "methods.siesta.head=discriminant", orders=["iid"])[0].initial_state_name != siesta


def test_options_of_a_codec_change_what_a_run_is_and_none_do_not(write_config: WriteConfig) -> None:
    path = write_config()
    plain, same, other = (
        plan(path, *change, orders=["iid"], methods=["siesta"])[0]
        for change in ((), ("network.codec_options={}",), ("network.codec_options={codebooks=16}",))
    )
    assert (plain.identity, plain.initial_state_name) == (same.identity, same.initial_state_name)
    assert plain.identity != other.identity and plain.initial_state_name != other.initial_state_name
    assert other.method.network.codec_options == {"codebooks": 16}


def test_a_run_that_could_not_finish_is_refused(write_config: WriteConfig) -> None:
    path = write_config("[methods.ncm]", "[methods.offline]")
    for change, message in (
        ("samples=3", "methods.offline needs all 20 samples but may store only 3"),
        ("network.space=curved", r"methods\.siesta\.network: there is no space 'curved'"),
        ("network.weights=/nowhere", "no file of weights at /nowhere"),
        ("network.codec_pictures=/nowhere", "no folder of images at /nowhere"),
        ("network.backbone=vgg", "no backbone 'vgg'"),
        ("network.codec_options={books=3}", r"methods\.siesta\.network: codec opq has no option 'books'"),
        (
            "network.backbone=vit_tiny_16 network.space=linear",
            r"methods\.siesta\.network: vit_tiny_16 has no activation",
        ),
    ):
        with pytest.raises(BadInput, match=message):
            plan(path, *change.split())
    for picture in Path(load_config(path).data.path, "test", "colour 0").iterdir():
        picture.unlink()
    with pytest.raises(BadInput, match="no test images of the classes of its first step"):
        plan(path, "orders.class_incremental.classes_per_step=1")


def test_a_changed_test_set_changes_the_identity(write_config: WriteConfig, tmp_path: Path, colours: Path) -> None:
    chosen: dict[str, Any] = {"methods": ["ncm"], "orders": ["iid"]}
    (before,) = plan(write_config(), **chosen)
    rows_of(write_config(), tmp_path / "out", **chosen)
    (colours / "test" / "colour 1" / "1.png").rename(colours / "test" / "colour 2" / "9.png")
    (after,) = plan(write_config(), **chosen)
    assert before.identity != after.identity
    with pytest.raises(BadInput, match="with another config"):
        rows_of(write_config(), tmp_path / "out", **chosen)


def test_a_part_of_the_training_set_can_be_held_out_as_test_set(write_config: WriteConfig) -> None:
    (whole,) = plan(write_config(), methods=["ncm"], orders=["iid"])
    (part,) = plan(write_config(), "data.held_out=0.4", methods=["ncm"], orders=["iid"])
    assert len(part.stream.dataset.test) == 8  # 2 of the 5 training images of each class
    assert len(part.stream) == 12
    assert part.stream.hash != whole.stream.hash


class FixedStopwatch(Stopwatch):
    """Every sample of a training step takes 3 s, of a forward pass 1 s."""

    def forward_pass(self, network: object, whole: bool, batch: int) -> float:
        del network, whole
        return float(batch)


def test_an_estimate_by_hand(write_config: WriteConfig) -> None:
    """Two sleeps of 16 updates; 20 samples are learned, and 6 + 12 test samples evaluated before and after sleep."""
    config = load_config(write_config(), methods=["siesta"], orders=["class_incremental"])
    dataset = read_dataset(config)
    (run,) = planned_runs(config, dataset)
    found = estimate_cost(run, dataset, FixedStopwatch(32))
    assert found.updates == 2 * 16
    assert found.seconds == pytest.approx(3 * 2 * 16 + 20 + 2 * (6 + 12))
