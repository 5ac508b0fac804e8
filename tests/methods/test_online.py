"""Online methods: their steps, learning rates and stored samples, with a batch made for the test."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest
import torch

from siesta.contracts import Codes
from siesta.methods.online import OnlineMethod
from siesta.methods.settings import OnlineSettings
from siesta.sleep.batch import Batch
from tests.methods.conftest import Template
from tests.methods.steps import record_steps


class NewAndOneStored(OnlineMethod[OnlineSettings]):
    """Rehearses one stored sample, at a learning rate that falls with every sample of a class."""

    codec: ClassVar[str] = "opq"
    Settings = OnlineSettings

    def lr_of(self, class_count: int) -> float:
        return self.settings.lr / (1 + class_count)

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        codes, rows = self.draw_stored(1, rng)
        all_rows = torch.from_numpy(np.append(row, rows))
        return Batch(self.decode(np.concatenate([code, codes])), all_rows, all_rows)


class Unbuffered(NewAndOneStored):
    """The same without a buffer."""

    buffered: ClassVar[bool] = False


def test_each_sample_is_a_step_and_then_stored(templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch) -> None:
    steps = record_steps(monkeypatch)
    method = NewAndOneStored(templates["opq"].folder(), OnlineSettings(lr=0.01), 0)
    method.learn_many(*templates["opq"].samples([0, 1, 0, 0]))
    assert [step.rows[0] for step in steps] == [0, 1, 0, 0]
    assert [len(step.rows) for step in steps] == [1, 2, 2, 2]
    assert [step.rates[0] for step in steps] == pytest.approx([0.01, 0.01, 0.005, 0.01 / 3])
    assert method.stored == 4 and method.resources().updates == 7


def test_without_a_buffer_nothing_is_stored(templates: dict[str, Template]) -> None:
    method = Unbuffered(templates["opq"].folder(), OnlineSettings(lr=0.01), 0)
    method.learn_many(*templates["opq"].samples([0, 1]))
    assert method.stored == 0 and method.resources().updates == 2
    assert method.resources().bytes["codes"] == 0


def test_predictions_use_the_weights_of_the_last_step(templates: dict[str, Template]) -> None:
    method = NewAndOneStored(templates["opq"].folder(), OnlineSettings(lr=0.01), 0)
    codes, labels = templates["opq"].samples([0, 1])
    method.learn_many(codes[:1], labels[:1])
    method.predict_many(codes)
    method.learn_many(codes[1:], labels[1:])
    method.predict_many(codes)
    state = method.state()
    engine = method.workspace.pipeline.backbone.top.state_dict()
    assert all(torch.equal(engine[name], state[f"top.{name}"]) for name in engine)


class Listing(NewAndOneStored):
    """Lists the classes of the store at every step, as methods did before they counted them."""

    def draw_stored(self, count: int, rng: np.random.Generator) -> tuple[Codes, npt.NDArray[np.int64]]:
        store = self.workspace.store
        records = store.classes.all()
        ends = np.cumsum([record.stored for record in records])
        total = int(ends[-1]) if len(records) else 0
        places = rng.choice(total, min(count, total), replace=False) if total else np.zeros(0, dtype=np.int64)
        owners = np.searchsorted(ends, places, side="right")
        slots = [
            int(place - (ends[owner] - records[owner].stored)) for place, owner in zip(places, owners, strict=True)
        ]
        ids = [
            store.session.connection.execute(
                "SELECT id FROM samples WHERE class_id = ? AND slot = ?", (records[owner].id, slot)
            ).fetchone()[0]
            for owner, slot in zip(owners, slots, strict=True)
        ]
        return store.samples.get(np.array(ids, dtype=np.int64))[1], owners


def test_steps_are_bit_equal_to_those_that_list_the_classes(templates: dict[str, Template]) -> None:
    template, folder = templates["opq"], templates["opq"].folder()
    codes, labels = template.samples(np.random.default_rng(0).integers(0, 5, 340).tolist())
    listing = Listing(template.folder(), OnlineSettings(lr=0.01), 0)
    listing.learn_many(codes, labels)
    assert listing.stored < 340  # the memory was full, and samples were evicted
    counting = NewAndOneStored(folder, OnlineSettings(lr=0.01), 0)
    counting.learn_many(codes[:170], labels[:170])
    counting.save()
    counting.close()
    resumed = NewAndOneStored(folder, OnlineSettings(lr=0.01), 0)
    resumed.learn_many(codes[170:], labels[170:])
    assert all(torch.equal(resumed.state()[name], tensor) for name, tensor in listing.state().items())


def test_no_step_lists_the_classes_of_the_store(templates: dict[str, Template]) -> None:
    template = templates["opq"]
    codes, labels = template.samples([0, 1, 0, 2, 1])
    for method_class, lists in ((NewAndOneStored, False), (Listing, True)):
        method = method_class(template.folder(template.samples([0, 3])), OnlineSettings(lr=0.01), 0)
        statements: list[str] = []
        method.workspace.store.session.connection.set_trace_callback(statements.append)
        method.learn_many(codes, labels)
        assert any("FROM classes ORDER BY id" in statement for statement in statements) == lists


def test_sleep_changes_nothing(templates: dict[str, Template]) -> None:
    method = NewAndOneStored(templates["opq"].folder(), OnlineSettings(lr=0.01), 0)
    method.learn_many(*templates["opq"].samples([0, 1]))
    before = {name: tensor.clone() for name, tensor in method.state().items()}
    method.sleep()
    assert all(torch.equal(before[name], tensor) for name, tensor in method.state().items())
