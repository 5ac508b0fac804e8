"""The sleep of a packed learner, brought back."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from siesta import Siesta
from siesta.errors import BadInput, Busy, Damaged, DiskRefused, SiestaError
from siesta.learner import take
from siesta.learner.integrity import check
from siesta.learner.pack import pack_learner
from siesta.learner.packed_sleep import sleep_on_pack
from siesta.learner.take import take_sleep
from siesta.sleep.options import SleepOptions
from siesta.store.pack_file import PackFile, write_pack_file
from siesta.store.tensor_files import decoded, encoded
from tests.learner.colours import picture
from tests.learner.kill_points import copies_between_writes
from tests.learner.meanwhile import (
    OPTIONS,
    Step,
    apply_step,
    assert_close,
    copy_of,
    outcome,
    packed_and_slept,
    rows,
    seen,
)
from tests.small import create_small
from tests.stores import store_of

STEPS = (
    st.tuples(st.just("learn"), st.integers(0, 3), st.integers(0, 9))
    | st.tuples(st.just("forget sample"), st.integers(0, 80))
    | st.tuples(st.just("correct"), st.integers(0, 80), st.integers(0, 3))
    | st.tuples(st.just("merge"), st.integers(0, 3), st.integers(0, 3))
    | st.tuples(st.just("rename"), st.integers(0, 3), st.sampled_from(["teal", "pink", "red"]))
    | st.tuples(st.just("reject"), st.integers(0, 3), st.integers(0, 9))
    | st.tuples(st.just("forget"), st.integers(0, 3))
)
EVERY_KIND: list[Step] = [
    ("learn", 3, 1),
    ("correct", 70, 3),  # the newest of those that were packed, or later
    ("correct", 1, 3),
    ("forget sample", 5),
    ("reject", 1, 0),
    ("rename", 0, "teal"),
    ("learn", 0, 2),  # a new class of the old name
    ("merge", 3, 0),  # a class that the sleep does not know, into one that it knows
    ("merge", 1, 3),  # and the other way round
    ("learn", 1, 3),
    ("forget", 1),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A learner, its pack, and the pack after its sleep."""
    folder = tmp_path_factory.mktemp("prepared")
    packed_and_slept(folder)
    return folder


@pytest.fixture
def device(prepared: Path, tmp_path: Path) -> Path:
    return copy_of(prepared / "device.siesta", tmp_path / "device.siesta")


def edited(path: Path, steps: list[Step]) -> None:
    with Siesta.open(path) as learner:
        for step in steps:
            apply_step(learner, step)


def assert_commutes(prepared: Path, folder: Path, steps: list[Step], slept: str = "slept") -> None:
    """Fail unless edits before a sleep is taken give what they give after it."""
    before, after = (copy_of(prepared / "device.siesta", folder / name) for name in ("before", "after"))
    edited(before, steps)
    for path in (before, after):
        take_sleep(path, prepared / slept)
    edited(after, steps)
    assert rows(before) == rows(after)
    assert_close(seen(before), seen(after))
    for path in (before, after):
        assert check(path, full=True) == []


def test_the_sleep_of_a_pack_equals_a_sleep_of_the_learner(prepared: Path, device: Path, tmp_path: Path) -> None:
    local = copy_of(device, tmp_path / "local.siesta")
    with Siesta.open(local) as learner:
        learner.sleep(OPTIONS)
    assert outcome(take_sleep(device, prepared / "slept")) == (1, True)
    assert rows(device) == rows(local)
    assert seen(device) == seen(local)
    tops = [(path / "generations" / "000001" / "top.safetensors").read_bytes() for path in (device, local)]
    assert tops[0] == tops[1]
    assert check(device, full=True) == []


def test_edits_of_every_kind_before_the_take_give_what_they_give_after_it(prepared: Path, tmp_path: Path) -> None:
    assert_commutes(prepared, tmp_path, EVERY_KIND)


def test_what_is_only_learned_and_merged_needs_no_new_statistics(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(take, "counted_anew", None)
    assert_commutes(prepared, tmp_path, [("learn", 3, 1), ("merge", 0, 3), ("learn", 1, 1), ("rename", 0, "teal")])


@pytest.mark.slow
def test_edits_commute_with_the_take_for_a_cosine_head(tmp_path: Path) -> None:
    packed_and_slept(tmp_path, head="cosine")
    assert_commutes(tmp_path, tmp_path, EVERY_KIND)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=1, max_size=12))
def test_any_edits_commute_with_the_take(prepared: Path, tmp_path: Path, steps: list[Step]) -> None:
    folder = tmp_path / "example"
    folder.mkdir()
    try:
        assert_commutes(prepared, folder, steps)
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
def test_samples_that_are_evicted_meanwhile_stay_counted(tmp_path: Path) -> None:
    packed_and_slept(tmp_path, memory="66 samples")
    path = tmp_path / "device.siesta"
    edited(path, [("learn", number % 4, number) for number in range(30)] + [("forget sample", 3)])
    before = rows(path)
    take_sleep(path, tmp_path / "slept")
    after = rows(path)
    assert [row[:2] for row in after["samples"]] == [row[:2] for row in before["samples"]]
    assert after["classes"] == before["classes"]
    assert check(path, full=True) == []


def test_a_forgotten_sample_is_not_in_the_new_statistics(prepared: Path, device: Path) -> None:
    edited(device, [("forget sample", 0), ("correct", 30, 0)])
    take_sleep(device, prepared / "slept")
    with Siesta.open(device) as learner:
        store = store_of(learner)
        ids = store.samples.counted()
        features = learner.pipeline.features(store.samples.get(ids)[1])
        discriminant = learner._state.discriminant
        assert discriminant is not None
        found = discriminant.folded().base
        expected = type(found).empty(len(found.gram))
        expected.add(store.samples.classes_of(ids), features)
        assert np.allclose(found.gram, expected.gram, rtol=1e-5, atol=1e-7)
        assert found.counts.tolist() == expected.counts.tolist()


@pytest.mark.slow
def test_a_running_learner_uses_the_new_weights_at_once(prepared: Path, device: Path) -> None:
    with Siesta.open(device) as learner:
        take_sleep(device, prepared / "slept")
        learner.learn_one(picture("grey", 1), "grey")
        assert learner.generation == 1
    assert check(device, full=True) == []


def refusal(path: Path, file: Path) -> SiestaError:
    """Return the error of a take that must change nothing."""
    before = rows(path)
    with pytest.raises(SiestaError) as caught:
        take_sleep(path, file)
    assert rows(path) == before
    assert check(path) == []
    return caught.value


def test_a_sleep_is_taken_once(prepared: Path, device: Path) -> None:
    take_sleep(device, prepared / "slept")
    error = refusal(device, prepared / "slept")
    assert isinstance(error, BadInput)
    assert "was brought back to" in str(error)


def test_a_pack_that_has_not_slept_is_refused(prepared: Path, device: Path) -> None:
    error = refusal(device, prepared / "packed")
    assert isinstance(error, BadInput)
    assert "has not slept yet: run `siesta sleep" in str(error)


def test_a_pack_of_another_learner_is_refused(prepared: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.siesta"
    create_small(other).close()
    error = refusal(other, prepared / "slept")
    assert isinstance(error, BadInput)
    assert "it is not a pack of" in str(error)


def test_a_pack_of_a_learner_that_has_slept_since_is_refused(prepared: Path, device: Path) -> None:
    with Siesta.open(device) as learner:
        learner.sleep(OPTIONS)
    assert "has slept or was rolled back since" in str(refusal(device, prepared / "slept"))


def test_a_pack_of_an_older_codec_is_refused(prepared: Path, device: Path) -> None:
    with Siesta.open(device) as learner:
        learner.renew_codec(learner.pipeline.codec, 0.1, {})
        store = store_of(learner)
        store.constants.codec_hash = lambda: "another"  # type: ignore[method-assign]
        pack_id = PackFile.open(prepared / "slept").facts["id"]
        with pytest.raises(BadInput, match="was fitted again since"):
            store.packs.find(pack_id)


def test_an_edit_whose_record_is_lost_makes_a_pack_stale(prepared: Path, device: Path) -> None:
    edited(device, [("forget sample", 1), ("forget sample", 2)])
    with Siesta.open(device) as learner:
        store_of(learner).session.connection.execute("DELETE FROM audit WHERE id = 2")
    assert "has lost the record of an edit" in str(refusal(device, prepared / "slept"))


def test_a_damaged_or_truncated_file_is_refused(prepared: Path, device: Path, tmp_path: Path) -> None:
    whole = (prepared / "slept").read_bytes()
    file = tmp_path / "damaged"
    for data in (
        whole[:-1],
        whole[:30],
        whole[: len(whole) // 2],
        whole + b"x",
        flipped(whole, 60),
        flipped(whole, -9),
    ):
        file.write_bytes(data)
        error = refusal(device, file)
        assert isinstance(error, Damaged)
        assert "is damaged or not complete" in str(error)
    file.write_bytes(b"something else")
    assert "is not a pack" in str(refusal(device, file))
    assert "there is no pack at" in str(refusal(device, tmp_path / "nothing"))


def flipped(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    ("part", "name"),
    [("top", "more"), ("head", "counts"), ("head", "scale"), ("sums", "times"), ("sums", "statistics.sums")],
)
def test_tensors_that_do_not_fit_are_refused(
    part: str, name: str, prepared: Path, device: Path, tmp_path: Path
) -> None:
    found = PackFile.open(prepared / "slept")
    parts = {name: found.read(name) for name in found.parts}
    tensors = decoded(parts[part], "")
    tensors[name] = np.full((2, 3), np.nan, np.float32)
    write_pack_file(tmp_path / "wrong", "slept", found.facts, {**parts, part: encoded(tensors)})
    error = refusal(device, tmp_path / "wrong")
    assert isinstance(error, Damaged)
    assert "do not fit this learner" in str(error)


def test_a_sleep_that_made_it_worse_is_kept_but_not_used(prepared: Path, device: Path, tmp_path: Path) -> None:
    shutil.copy(prepared / "packed", tmp_path / "worse")
    sleep_on_pack(tmp_path / "worse", SleepOptions(updates=16, batch_size=8, lr=30.0, tolerance=-1.0))
    assert outcome(take_sleep(device, tmp_path / "worse")) == (1, False)
    with Siesta.open(device) as learner:
        assert learner.active_generation() == 0
        assert [kept.number for kept in learner.generations()] == [0, 1]


def test_a_take_waits_for_no_sleep(prepared: Path, device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take, "LOCK_PATIENCE", 0.0)
    with Siesta.open(device) as learner, store_of(learner).sleeping(), pytest.raises(Busy, match="asleep, or being"):
        take_sleep(device, prepared / "slept")


def test_a_disk_that_refuses_changes_nothing(prepared: Path, device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("siesta.store.tensor_files.write_file", refuse)
    assert isinstance(refusal(device, prepared / "slept"), DiskRefused)
    monkeypatch.undo()
    assert outcome(take_sleep(device, prepared / "slept")) == (1, True)


@pytest.mark.slow
def test_whatever_a_kill_leaves_of_a_take_is_whole_and_can_be_taken(
    prepared: Path, device: Path, tmp_path: Path
) -> None:
    """A copy at any moment is as before or as after, and the same file still finishes it."""
    edited(device, [("learn", 3, 1), ("forget sample", 1)])
    copies = tmp_path / "copies"
    with Siesta.open(device, to_sleep=True) as learner, pytest.MonkeyPatch.context() as patch:
        patch.setattr("siesta.learner.take.Store.open", lambda *_: store_of(learner))
        patch.setattr(store_of(learner), "close", lambda: None)
        with copies_between_writes(learner, device, copies) as made:
            take_sleep(device, prepared / "slept")
    expected = rows(device)
    assert len(made) > 4
    for copy in made:
        assert [found for found in check(copy) if found.kind != "cache"] == [], copy.name
        if rows(copy)["generation"] == 0:
            take_sleep(copy, prepared / "slept")
        assert rows(copy) == expected, copy.name


@pytest.mark.slow
def test_two_packs_of_a_learner_are_told_apart(prepared: Path, device: Path, tmp_path: Path) -> None:
    edited(device, [("learn", 3, 1), ("forget", 0)])
    pack_learner(device, tmp_path / "second")
    sleep_on_pack(tmp_path / "second", OPTIONS)
    assert outcome(take_sleep(device, tmp_path / "second")) == (1, True)
    assert check(device, full=True) == []
    assert "has slept or was rolled back since" in str(refusal(device, prepared / "slept"))
