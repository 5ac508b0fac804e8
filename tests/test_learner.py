"""The learner as its users meet it: real weights, small pictures, a real store."""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from siesta import Siesta
from siesta.augment import AUGMENTATIONS
from siesta.backbones import RANDOM, SPACES, make_backbone, save_checkpoint
from siesta.contracts import Embedded, Ids, Memory, Progress
from siesta.engines import ENGINES, OnnxEngine
from siesta.errors import BadInput
from siesta.head import Head
from siesta.policies import POLICIES, Uniform
from siesta.store import Store
from siesta.store.files import Lock

Pixels = npt.NDArray[np.uint8]
COLOURS = {"red": (220, 40, 40), "green": (40, 220, 40), "blue": (40, 40, 220), "grey": (128, 128, 128)}


def picture(label: str, seed: int = 0) -> Pixels:
    noise = np.random.default_rng((seed, list(COLOURS).index(label))).normal(0, 30, (32, 32, 3))
    return (np.array(COLOURS[label]) + noise).clip(0, 255).astype(np.uint8)


def lesson(count: int, labels: tuple[str, ...] = ("red", "green", "blue")) -> tuple[list[Pixels], list[str]]:
    pairs = [(picture(label, seed), label) for seed in range(count) for label in labels]
    return [pixels for pixels, _ in pairs], [label for _, label in pairs]


@pytest.fixture
def learner(tmp_path: Path) -> Siesta:
    return Siesta.create(tmp_path / "colours.siesta", memory="100KB", image_size=32)


def means(learner: Siesta) -> torch.Tensor:
    return learner._head.weights()


def test_it_learns_at_once_and_answers_at_any_time(learner: Siesta) -> None:
    with pytest.raises(BadInput, match="was not taught anything yet"):
        learner.predict_one(picture("red"))
    assert learner.learn_one(picture("red"), "red") == 1
    assert learner.predict_one(picture("red", 1)).label == "red"
    learner.learn_one(picture("blue"), "blue")
    answer = learner.predict_one(picture("blue", 1))
    assert answer.label == "blue" and answer.top[0] == ("blue", answer.score) and len(answer.top) == 2
    assert sum(score for _, score in answer.top) == pytest.approx(1.0)


def test_pictures_may_be_paths_pil_images_or_arrays(learner: Siesta, tmp_path: Path) -> None:
    pixels = picture("red")
    Image.fromarray(pixels).resize((64, 64)).save(tmp_path / "red.png")
    learner.learn_many([str(tmp_path / "red.png"), tmp_path / "red.png", Image.fromarray(pixels), pixels], ["red"] * 4)
    assert learner.info()["classes"] == [{"label": "red", "taught": 4, "stored": 4}]


def test_learn_many_says_how_many_are_safe(learner: Siesta) -> None:
    images, labels = lesson(14)
    with pytest.raises(BadInput, match="no picture") as caught:
        learner.learn_many([*images[:40], "gone.png", *images[40:]], [*labels, "red"])
    assert caught.value.safe == len(learner._store) == 32
    with pytest.raises(BadInput, match="gone") as caught:
        learner.learn_one("gone.png", "red")
    assert caught.value.safe == 0
    for keys in (None, range(3)):
        with pytest.raises(BadInput, match="each picture has one label"):
            learner.learn_many(images[:2], labels[: 1 if keys is None else 2], keys)
    for threshold in (float("nan"), -0.1, 1.1):
        with pytest.raises(BadInput, match="a threshold lies from 0 to 1"):
            learner.predict_one(images[0], threshold=threshold)


def test_learn_many_equals_a_sequence_of_learn_one() -> None:
    images, labels = lesson(20)
    many, one = (Siesta.create(":memory:", memory="2KB", image_size=32) for _ in range(2))
    many_ids = many.learn_many(images, labels)
    one_ids = [one.learn_one(image, label) for image, label in zip(images, labels, strict=True)]
    assert many_ids == one_ids and many.info()["classes"] == one.info()["classes"]
    # a batch may round differently from a single picture, so latents are equal only nearly
    assert torch.allclose(means(many), means(one), atol=1e-3)
    assert many.info()["samples"]["stored"] == many.info()["samples"]["capacity"] < 60


def test_what_was_encoded_before_is_learned_and_answered_as_pictures_are() -> None:
    images, labels = lesson(15)
    straight, detour = (Siesta.create(":memory:", memory="5KB", image_size=32) for _ in range(2))
    codes = detour.encode(iter(images))
    assert codes.shape == (45, 32) and codes.dtype == np.uint8
    assert straight.learn_many(images, labels, range(45)) == detour.learn_encoded(codes, labels, range(45))
    assert torch.equal(means(straight), means(detour)) and detour.known_keys([44, 45]) == {44: 45}
    assert straight.info()["classes"] == detour.info()["classes"]
    assert straight.predict_many(images, top=2) == detour.predict_encoded(codes, top=2)
    nothing = detour.encode([])
    assert detour.predict_encoded(nothing) == [] and detour.learn_encoded(nothing, []) == []


@pytest.mark.parametrize(
    "codes",
    [
        np.zeros((2, 31), np.uint8),
        np.zeros((2, 32), np.int64),
        np.zeros(32, np.uint8),
        np.uint8(3),
        np.array(3, np.uint8),
        [[0] * 32],
    ],
)
def test_codes_that_are_none_of_its_own_are_refused(learner: Siesta, codes: Any) -> None:
    learner.learn_one(picture("red"), "red")
    for use in (lambda: learner.learn_encoded(codes, ["red"]), lambda: learner.predict_encoded(codes)):
        with pytest.raises(BadInput, match=r"codes of this learner are \(samples, 32\) of uint8, not "):
            use()
    assert len(learner._store) == 1


def test_as_many_labels_as_codes(learner: Siesta) -> None:
    codes = learner.encode([picture("red")])
    for labels, keys in ((["red", "red"], None), (["red"], []), ([], None)):
        with pytest.raises(BadInput, match="each sample has one label and one key"):
            learner.learn_encoded(codes, labels, keys)
    assert len(learner._store) == 0


def test_running_means_equal_the_mean_of_all_features_taught(learner: Siesta) -> None:
    images, labels = lesson(10)
    learner.learn_many(images, labels)
    for row, label in enumerate(("red", "green", "blue")):
        codes = learner.encode(image for image, name in zip(images, labels, strict=True) if name == label)
        expected = torch.from_numpy(learner.pipeline.features(codes)).double().mean(dim=0)
        assert torch.allclose(means(learner)[row].double(), expected, rtol=1e-4, atol=1e-4)


def test_sleep_spends_its_budget_and_a_revisited_class_continues_its_count(learner: Siesta) -> None:
    learner.learn_many(*lesson(10))
    report = learner.sleep(updates=50, batch_size=16)
    assert report.updates == 50 and report.generation == 1 and report.new_classes == 3 and not report.interrupted
    assert report.top_change > 0 and report.samples == 30
    vector = means(learner)[0].clone()
    learner.learn_one(picture("red", 99), "red")
    feature = torch.from_numpy(learner.pipeline.features(learner.encode([picture("red", 99)])))[0]
    assert torch.allclose(means(learner)[0], (10 * vector + feature) / 11, atol=1e-5)
    assert learner._head.count(1) == 11
    learner.learn_one(picture("grey"), "grey")
    assert learner.sleep(updates=8, batch_size=8).new_classes == 1


def test_the_same_seed_gives_the_same_weights() -> None:
    weights = []
    for seed in (3, 3, 4):
        learner = Siesta.create(":memory:", memory="100KB", image_size=32)
        learner.learn_many(*lesson(5))
        learner.sleep(updates=32, batch_size=8, seed=seed)
        weights.append(next(learner.pipeline.backbone.top.parameters()).detach().clone())
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_it_is_the_same_after_closing_and_opening(learner: Siesta, tmp_path: Path) -> None:
    learner.learn_many(*lesson(5))
    learner.sleep(updates=16, batch_size=8)
    learner.learn_many(*lesson(2, ("grey",)))
    asked = [picture(label, 50) for label in COLOURS]
    answers, facts, vectors = learner.predict_many(asked), learner.info(), means(learner).clone()
    learner.close()
    for read_only in (False, True):
        with Siesta.open(tmp_path / "colours.siesta", read_only=read_only) as again:
            assert again.predict_many(asked) == answers and torch.equal(means(again), vectors)
            assert again.info() | {"bytes": 0} == facts | {"bytes": 0}


def test_in_memory_equals_on_disk(learner: Siesta) -> None:
    twin = Siesta.create(":memory:", memory="100KB", image_size=32)
    for some in (learner, twin):
        some.learn_many(*lesson(4))
        some.sleep(updates=16, batch_size=8)
        some.learn_many(*lesson(1, ("grey",)))
    assert torch.equal(means(learner), means(twin))
    assert learner.predict_one(picture("grey")) == twin.predict_one(picture("grey"))


def test_a_sleep_that_is_woken_leaves_a_usable_learner(learner: Siesta) -> None:
    learner.learn_many(*lesson(5))
    report = learner.sleep(updates=1000, batch_size=8, on_progress=lambda progress: progress.updates >= 16)
    assert report.interrupted and report.updates == 16 and learner.predict_one(picture("red")).label in COLOURS
    assert learner.info()["sleeps"][0]["interrupted"]


def test_a_sleep_that_fails_changes_nothing(learner: Siesta) -> None:
    learner.learn_many(*lesson(5))
    before = learner.predict_one(picture("red")), learner.info()
    with pytest.raises(BadInput, match="lower learning rate"):
        learner.sleep(updates=400, batch_size=4, rate=1e20)
    with pytest.raises(BadInput, match="lower learning rate"):
        learner.sleep(updates=4, batch_size=4, rate=1e38)  # a single step, so its own loss is still fine
    after = learner.predict_one(picture("red")), learner.info()
    assert before[0] == after[0] and before[1]["sleeps"] == after[1]["sleeps"] == []


def test_an_own_policy_object_is_taken(learner: Siesta) -> None:
    learner.learn_many(*lesson(3))
    assert learner.sleep(updates=8, batch_size=4, policy=Uniform()).settings["policy"] == "Uniform"


@pytest.mark.parametrize("policy", POLICIES)
def test_it_sleeps_by_every_policy_and_says_what_planning_cost(learner: Siesta, policy: str) -> None:
    learner.learn_many(*lesson(3))
    report = learner.sleep(updates=9, batch_size=4, policy=policy)
    assert report.updates == 9 and report.settings["policy"] == policy
    assert learner.info()["sleeps"][0]["embedded"] == report.embedded
    assert report.embedded == (0 if policy in ("balanced_uniform", "uniform", "min_rehearsal") else 9)
    assert learner.predict_one(picture("red")).label == "red"


@pytest.mark.parametrize("augment", AUGMENTATIONS)
def test_it_sleeps_with_every_augmentation(learner: Siesta, augment: str) -> None:
    learner.learn_many(*lesson(3))
    report = learner.sleep(updates=10, batch_size=4, augment=augment)
    assert report.updates == 10 and report.settings["augment"] == augment
    assert learner._store.memory().rehearsed.sum() == 20, "both of a pair were rehearsed"
    assert learner.predict_one(picture("red")).label == "red"


def test_it_sleeps_by_another_schedule_and_optimizer(learner: Siesta) -> None:
    learner.learn_many(*lesson(3))
    rates: list[float] = []
    report = learner.sleep(
        updates=20,
        batch_size=2,
        rate=0.001,
        schedule="steps",
        optimizer="adamw",
        on_progress=lambda progress: rates.append(progress.rate),
    )
    assert report.settings["schedule"] == "steps" and report.settings["optimizer"] == "adamw"
    assert rates == pytest.approx([1e-3] * 3 + [1e-4] * 3 + [1e-5] * 3 + [1e-6])
    for wrong in ({"schedule": "stairs"}, {"optimizer": "lion"}):
        with pytest.raises(BadInput, match="choose one of"):
            learner.sleep(updates=2, **wrong)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_weights_by_any_policy_with_augmentation() -> None:
    weights = []
    for _ in range(2):
        some = Siesta.create(":memory:", memory="100KB", image_size=32)
        some.learn_many(*lesson(2))
        some.sleep(updates=16, batch_size=4, policy="grasp", augment="mixup_cutmix", seed=3)
        weights.append(means(some))
    assert torch.equal(*weights)


def test_a_policy_sees_the_embeddings_that_answers_are_made_of(learner: Siesta) -> None:
    learner.learn_many(*lesson(2))
    seen: list[Embedded] = []

    class Looking(Uniform):
        def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
            seen.extend(memory.embed(memory.ids[::-1]))
            return super().picks(memory, rng)

    expected = learner.predict_one(picture("red"))
    assert learner.sleep(updates=2, batch_size=2, policy=Looking()).embedded == 6
    (chunk,) = seen
    assert chunk.ids.tolist() == [6, 5, 4, 3, 2, 1] and chunk.rows.tolist() == [2, 1, 0, 2, 1, 0]
    assert chunk.features.shape[0] == 6 and chunk.logits.shape == (6, 3)
    odds = np.exp(chunk.logits[-1] - chunk.logits[-1].max())
    assert (odds / odds.sum()).max() == pytest.approx(expected.score, rel=1e-5)


def test_readers_see_a_writer_does_not_hinder_them_and_a_second_writer_is_refused(
    learner: Siesta, tmp_path: Path
) -> None:
    learner.learn_many(*lesson(2))
    path = tmp_path / "colours.siesta"
    with Siesta.open(path, read_only=True) as reader:
        assert reader.predict_one(picture("red")) == learner.predict_one(picture("red"))
        with pytest.raises(BadInput, match="cannot be written"):
            reader.learn_one(picture("red"), "red")
    with subprocess.Popen(
        [sys.executable, "-c", f"from siesta import Siesta; Siesta.open({str(path)!r})"],
        stderr=subprocess.PIPE,
        text=True,
    ) as other:
        assert f"being taught by process {os.getpid()}" in other.communicate()[1]


def test_in_one_process_the_newer_writer_takes_over(learner: Siesta, tmp_path: Path) -> None:
    """So that the example of the README runs: create, teach, open again."""
    learner.learn_many(*lesson(2))
    newer = Siesta.open(tmp_path / "colours.siesta")
    assert newer.learn_one(picture("red"), "red") == 7
    with pytest.raises(BadInput, match="opened anew in this process"):
        learner.learn_one(picture("red"), "red")


def test_a_forgotten_learner_frees_its_lock(tmp_path: Path) -> None:
    learner = Siesta.create(tmp_path / "x.siesta", image_size=32)
    del learner
    gc.collect()
    Lock(tmp_path / "x.siesta" / "lock", str).release()


def test_graphs_that_are_gone_or_damaged_are_made_again(learner: Siesta, tmp_path: Path) -> None:
    learner.learn_many(*lesson(2))
    answer = learner.predict_one(picture("red"))
    file = tmp_path / "colours.siesta" / "graphs.safetensors"
    for spoil in (lambda: file.write_bytes(b"spoilt"), file.unlink):
        spoil()
        with Siesta.open(tmp_path / "colours.siesta", read_only=True) as reader:
            assert reader.predict_one(picture("red")) == answer


def test_an_opening_that_fails_leaves_the_open_writer_alone(learner: Siesta, tmp_path: Path) -> None:
    for wrong in ({"engine": "tpu"}, {"device": "abacus"}):
        with pytest.raises(BadInput):
            Siesta.open(tmp_path / "colours.siesta", **wrong)  # type: ignore[arg-type]
    assert learner.learn_one(picture("red"), "red") == 1


@pytest.mark.parametrize("share", [1.5, -3.0, float("nan")])
def test_an_augmentation_that_makes_no_sense_is_refused(learner: Siesta, share: float) -> None:
    learner.learn_many(*lesson(2))
    with pytest.raises(BadInput, match=r"a share in 0\.\.1"):
        learner.sleep(updates=8, batch_size=4, augment=lambda first, _second, _rng: (first, share))
    assert learner.info()["sleeps"] == []


def test_teaching_while_it_sleeps_is_refused(learner: Siesta) -> None:
    learner.learn_many(*lesson(2))

    def teach(_progress: Progress) -> None:
        learner.learn_one(picture("grey"), "grey")

    with pytest.raises(BadInput, match="it is asleep"):
        learner.sleep(updates=8, batch_size=4, on_progress=teach)
    learner.learn_one(picture("grey"), "grey")
    assert learner.predict_one(picture("grey")).label in COLOURS


def test_another_working_directory_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    learner = Siesta.create("here.siesta", image_size=32)
    learner.learn_many(*lesson(2))
    monkeypatch.chdir("/")
    assert learner.sleep(updates=8, batch_size=4).generation == 1


def test_an_interrupt_around_a_commit_leaves_budget_and_means_right(
    learner: Siesta, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Store._add

    def interrupted(self: Store, *arguments: object) -> None:
        real(self, *arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "_add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.learn_one(picture("red"), "red")
    monkeypatch.undo()
    assert len(learner._store) == 1 and learner.predict_one(picture("red")).label == "red"


def centre_of(learner: Siesta) -> torch.Tensor:
    centre: torch.Tensor = learner.pipeline.backbone.top[-1].state_dict()["centre"]
    return centre


@pytest.mark.parametrize("space", SPACES)
def test_every_space_is_one_argument_away_and_kept(space: str, tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "x.siesta", image_size=32, space=space) as made:
        made.learn_many(*lesson(3))
        made.sleep(updates=8, batch_size=4)
        answer, codes = made.predict_one(picture("red", 9)), made.encode([picture("red", 9)])
        assert made.info()["backbone"]["space"] == space
    with Siesta.open(tmp_path / "x.siesta", engine="torch") as opened:
        assert opened.info()["backbone"]["space"] == space
        assert bool(centre_of(opened).any()) == SPACES[space].centred
        features = torch.from_numpy(opened.pipeline.features(codes)) + centre_of(opened)
        assert bool((features < 0).any()) == SPACES[space].linear, "a ReLU6 is the last activation"
        again = opened.predict_one(picture("red", 9))
        assert again.label == answer.label == "red" and again.score == pytest.approx(answer.score, abs=1e-3)


def test_the_centre_is_that_of_its_space(base: Path) -> None:
    """Each is the mean of what the network gives for base pictures, in that space."""
    shipped = [centre_of(Siesta.create(":memory:", image_size=32, space=s)) for s in ("centred", "linear_centred")]
    assert (shipped[0] >= 0).all() and (shipped[1] < 0).any()
    for space in ("centred", "linear_centred"):
        learner = Siesta.create(":memory:", image_size=96, space=space, base=base)
        features = learner.pipeline.features(learner.encode(sorted(base.iterdir())))
        assert np.abs(features.mean(axis=0)).max() < 1e-3 < np.abs(features).max()


def test_a_learner_made_before_there_was_a_choice_opens_as_it_was(tmp_path: Path) -> None:
    for name in ("centred", "plain"):
        path = tmp_path / name
        with Siesta.create(path, image_size=32, space=name) as made:
            made.learn_many(*lesson(2))
            answer = made.predict_one(picture("red", 9))
        with contextlib.closing(sqlite3.connect(path / "store.sqlite", isolation_level=None)) as connection:
            assert connection.execute("DELETE FROM settings WHERE name IN ('space', 'checksum')").rowcount == 2
        with Siesta.open(path) as opened:
            assert opened.predict_one(picture("red", 9)) == answer
            assert opened.info()["backbone"]["space"] == name


def test_raw_pictures_and_weights_of_ones_own_have_no_centre_until_base_pictures_give_one(base: Path) -> None:
    options: dict[str, Any] = {"image_size": 32, "codec": "raw", "weights": RANDOM}
    made = Siesta.create(":memory:", **options)
    assert made.info()["backbone"]["space"] == "plain" and not centre_of(made).any()
    with pytest.raises(BadInput, match=r"a linear_centred space needs .* \(base=\.\.\., --base FOLDER\)$"):
        Siesta.create(":memory:", **options, space="linear_centred")
    assert centre_of(Siesta.create(":memory:", **options, space="linear_centred", base=base)).any()


def test_many_new_classes_cost_the_same_each() -> None:
    head = Head.empty(features=8, scale=1.0)
    for class_id in range(1, 300):
        head.set_recent(class_id, torch.full((8,), float(class_id)), 1)
    assert head.class_ids.tolist() == list(range(1, 300))
    assert head.weights()[:, 0].tolist() == [float(class_id) for class_id in range(1, 300)]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    folder.mkdir()
    for seed in range(24):
        Image.fromarray(np.random.default_rng(seed).integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(
            folder / f"{seed}.png"
        )
    return folder


def test_a_codec_is_fitted_on_a_folder_for_any_cut(base: Path) -> None:
    with pytest.raises(BadInput, match="no fitted codec comes with"):
        Siesta.create(":memory:", cut=5, image_size=32)
    learner = Siesta.create(":memory:", cut=5, image_size=32, base=base)
    learner.learn_many(*lesson(3))
    assert 0 < learner.info()["codec"]["relative_error"] < 1
    assert learner.predict_one(picture("red")).label in COLOURS


def test_a_codec_is_fitted_on_all_pictures_given(base: Path) -> None:
    files = sorted(base.iterdir())
    by_file, by_array = (
        Siesta.create(":memory:", image_size=96, base=(change(file) for file in [*files, Path("nowhere.png")][:count]))
        for change, count in ((Path, 25), (lambda file: np.asarray(Image.open(file)), 24))
    )
    assert by_file.info() == by_array.info()
    assert torch.equal(centre_of(by_file), centre_of(by_array))
    with pytest.raises(BadInput, match="none of the pictures to fit on can be read"):
        Siesta.create(":memory:", image_size=32, base=["nowhere.png"])


@pytest.mark.parametrize("name", ["mobilenet_v3_large", "mobilenet_v2"])
def test_another_backbone_learns_and_sleeps_with_weights_from_a_file(name: str, base: Path, tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    network = make_backbone(name, weights=RANDOM)
    save_checkpoint(network, file)
    with pytest.raises(BadInput, match="a codec has to be fitted to these weights"):
        Siesta.create(":memory:", backbone=name, weights=file, image_size=96)
    learner = Siesta.create(tmp_path / "x.siesta", backbone=name, weights=file, image_size=96, base=base)
    assert learner.info()["backbone"]["weights"] == {"from": "weights.safetensors", "ignored": []}
    bottom = learner.pipeline.backbone.bottom.state_dict()
    assert all(torch.equal(bottom[tensor], value) for tensor, value in network.bottom.state_dict().items())
    learner.learn_many(*lesson(3))
    assert learner.sleep(updates=8, batch_size=4, rate=0.001).top_change > 0
    answer = learner.predict_one(picture("red"))
    learner.close()
    with Siesta.open(tmp_path / "x.siesta") as again:
        assert again.predict_one(picture("red")) == answer


def test_raw_pictures_are_stored_whole_and_all_of_the_network_learns() -> None:
    learner = Siesta.create(":memory:", memory="1MB", image_size=32, codec="raw")
    images, labels = lesson(4)
    learner.learn_many(images, labels)
    facts = learner.info()
    assert facts["bytes"]["a_sample"] == 32 * 32 * 3 + 32
    assert facts["codec"] == {"name": "raw", "relative_error": 0.0, "error_lately": 0.0, "drifted": False}
    _, codes = learner._store.get(np.array([1]))
    assert np.array_equal(codes.reshape(3, 32, 32).transpose(1, 2, 0), images[0])
    report = learner.sleep(updates=16, batch_size=8)
    assert report.updates == 16 and learner.predict_one(images[0]).label in COLOURS
    assert sum(p.numel() for p in learner.pipeline.backbone.top.parameters()) > 3_300_000


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_answers(learner: Siesta, tmp_path: Path, engine: str) -> None:
    learner.learn_many(*lesson(4))
    learner.sleep(updates=16, batch_size=8)
    asked = [picture(label, 50) for label in COLOURS]
    expected = learner.predict_many(asked)
    with Siesta.open(tmp_path / "colours.siesta", read_only=True, engine=engine) as other:
        for mine, theirs in zip(expected, other.predict_many(asked), strict=True):
            assert mine.label == theirs.label and mine.score == pytest.approx(theirs.score, abs=1e-3)


def test_a_learner_made_for_torch_can_be_opened_for_onnx(tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "x.siesta", image_size=32, engine="torch") as made:
        made.learn_one(picture("red"), "red")
    with Siesta.open(tmp_path / "x.siesta") as opened:
        assert opened.predict_one(picture("red")).label == "red" and isinstance(opened.pipeline._top, OnnxEngine)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"codec": "zip"}, "there is no codec 'zip'"),
        ({"space": "outer"}, "there is no space 'outer': choose one of centred, plain, linear, linear_centred"),
        ({"codec": "raw", "cut": 7}, "leave the cut out"),
        ({"device": "abacus"}, "torch cannot compute on 'abacus'"),
        ({"device": "cuda"}, "torch cannot compute on 'cuda'"),
        ({"engine": "tpu"}, "there is no engine 'tpu'"),
        ({"image_size": 31}, "image size lies in 32"),
        ({"image_size": 5000}, "image size lies in"),
        ({"memory": "10"}, "holds no sample"),
        ({"memory": "lots"}, "not a size"),
        ({"backbone": "vgg"}, "no backbone 'vgg'"),
        ({"backbone": "resnet18"}, "no weights come with resnet18"),
        ({"weights": "/nowhere"}, "no file of weights at /nowhere"),
        ({"base": "/nowhere"}, "not a folder"),
    ],
)
def test_impossible_learners_are_refused_and_leave_nothing(
    tmp_path: Path, options: dict[str, object], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        Siesta.create(tmp_path / "x.siesta", **{"image_size": 32, **options})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_wrong_lessons_are_refused_and_leave_nothing(learner: Siesta) -> None:
    for image, label, words in (
        (picture("red"), "", "1 to 200 characters"),
        (picture("red"), "a\nb", "control characters"),
        (np.zeros((3, 32, 32), np.uint8), "red", "this one is"),
        ("nowhere.jpg", "red", "no picture at nowhere.jpg"),
    ):
        with pytest.raises(BadInput, match=words):
            learner.learn_one(image, label)
    with pytest.raises(BadInput, match="each picture has one label"):
        learner.learn_many([picture("red")], [])
    assert learner.info()["classes"] == [] and len(learner._head) == 0


def test_the_head_is_exported_state_only() -> None:
    """The generation's head plus the store's sums is all there is."""
    learner = Siesta.create(":memory:", memory="100KB", image_size=32)
    learner.learn_many(*lesson(3))
    assert len(Head.from_state(learner._store.snapshot().weights["head"])) == 0
    learner.sleep(updates=8, batch_size=8)
    assert len(Head.from_state(learner._store.snapshot().weights["head"])) == 3
