"""Training state on disk: saved, loaded, refused and continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from siesta.errors import BadInput, Damaged
from siesta.sleep.resume import (
    TrainingCheckpoint,
    TrainingState,
    check_same_settings,
    load_run,
    read_run_state,
    save_run,
)

SETTINGS: dict[str, Any] = {"lr": 0.1, "pictures": "a hash"}


def network(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    return module, torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


def train(module: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = module(torch.ones(5, 3)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def test_a_loaded_run_continues_as_if_it_had_not_been_interrupted(tmp_path: Path) -> None:
    module, optimizer = network(0)
    train(module, optimizer, 3)
    save_run(tmp_path / "run", module, optimizer, {"settings": SETTINGS, "step": 3}, {"queue": torch.arange(4.0)})
    expected = train(module, optimizer, 3)
    other, other_optimizer = network(1)
    state, others = load_run(tmp_path / "run", other, other_optimizer, SETTINGS)
    assert state == {"settings": SETTINGS, "step": 3} and torch.equal(others["queue"], torch.arange(4.0))
    assert train(other, other_optimizer, 3) == expected, "weights and momentum are the same"


def test_a_run_with_other_settings_is_refused(tmp_path: Path) -> None:
    save_run(tmp_path / "run", *network(0), {"settings": SETTINGS})
    assert read_run_state(tmp_path / "run", SETTINGS) == {"settings": SETTINGS}
    with pytest.raises(BadInput, match=r"run was made with lr 0\.1, not 0\.2: give the same, remove it"):
        read_run_state(tmp_path / "run", {"lr": 0.2})
    with pytest.raises(BadInput, match="run was made with other images: give the same"):
        load_run(tmp_path / "run", *network(0), {"pictures": "another hash"})
    check_same_settings(tmp_path, {"lr": 0.1, "more": 1}, {"lr": 0.1})


@pytest.mark.parametrize("content", [b"", b"no tensors", None])
def test_an_unreadable_run_is_damaged(tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        save_run(tmp_path / "run", *network(0), {"settings": SETTINGS})
        content = (tmp_path / "run").read_bytes()[:-8]
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(Damaged, match="run cannot be read: remove it"):
        load_run(tmp_path / "run", *network(0), SETTINGS)


@pytest.mark.parametrize("place", ["tensors", "state"])
def test_a_changed_byte_is_found(tmp_path: Path, place: str) -> None:
    save_run(tmp_path / "run", *network(0), {"settings": SETTINGS, "step": 3})
    content = bytearray((tmp_path / "run").read_bytes())
    content[-1 if place == "tensors" else content.index(b"step") + 8] ^= 1
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(Damaged, match="run cannot be read: remove it"):
        load_run(tmp_path / "run", *network(0), SETTINGS)


def test_a_run_of_0_1_has_no_checksum(tmp_path: Path) -> None:
    module, optimizer = network(0)
    tensors = {f"module.{name}": tensor for name, tensor in module.state_dict().items()}
    save_file(tensors, tmp_path / "run", metadata={"state": json.dumps({"settings": SETTINGS})})
    assert load_run(tmp_path / "run", *network(1), SETTINGS) == ({"settings": SETTINGS}, {})
    save_file(
        {**tensors, "optimizer.9.momentum_buffer": torch.ones(1)}, tmp_path / "run", {"state": '{"settings": {}}'}
    )
    with pytest.raises(Damaged, match="run cannot be read"):
        load_run(tmp_path / "run", module, optimizer, {})


def training_state(seed: int) -> TrainingState:
    module, optimizer = network(seed)
    train(module, optimizer, 1)
    return TrainingState(module, optimizer, torch.full((2,), float(seed)), torch.Generator().manual_seed(seed))


def test_a_checkpoint_restores_everything_that_a_step_changes(tmp_path: Path) -> None:
    saved, loaded = training_state(1), training_state(2)
    TrainingCheckpoint(tmp_path / "c", SETTINGS, every=0.0).save_if_due(saved, [3.0, 2.0])
    checkpoint = TrainingCheckpoint(tmp_path / "c", SETTINGS)
    assert checkpoint.load(loaded) == [3.0, 2.0] and checkpoint.seconds > 0
    assert torch.equal(loaded.totals, saved.totals)
    assert torch.equal(torch.rand(3, generator=loaded.dropout_rng), torch.rand(3, generator=saved.dropout_rng))
    assert train(loaded.module, loaded.optimizer, 2) == train(saved.module, saved.optimizer, 2)


def test_a_checkpoint_is_written_only_when_it_is_due(tmp_path: Path) -> None:
    TrainingCheckpoint(tmp_path / "c", SETTINGS, every=1000.0).save_if_due(training_state(1), [1.0])
    assert not (tmp_path / "c").exists()
    assert TrainingCheckpoint(tmp_path / "c", SETTINGS).load(training_state(1)) == []


def test_settings_may_be_added_and_the_file_removed(tmp_path: Path) -> None:
    checkpoint = TrainingCheckpoint(tmp_path / "c", SETTINGS, every=0.0)
    checkpoint.identify({"memory": "a hash"})
    checkpoint.save_if_due(training_state(1), [1.0])
    for memory, losses in (("a hash", [1.0]), ("another", [])):
        same = TrainingCheckpoint(tmp_path / "c", SETTINGS)
        same.identify({"memory": memory})
        assert same.load(training_state(2)) == losses
    checkpoint.remove()
    checkpoint.remove()
    assert not (tmp_path / "c").exists()


def test_the_checkpoint_of_another_training_is_ignored(tmp_path: Path) -> None:
    TrainingCheckpoint(tmp_path / "c", SETTINGS, every=0.0).save_if_due(training_state(1), [1.0])
    state = training_state(2)
    assert TrainingCheckpoint(tmp_path / "c", {"lr": 0.5}).load(state) == []
    assert torch.equal(state.totals, training_state(2).totals)


def test_a_checkpoint_is_written_after_each_epoch_and_continues_counting(tmp_path: Path) -> None:
    path, state = tmp_path / "run", training_state(0)
    checkpoint = TrainingCheckpoint(path, {}, every=1000.0, epoch=3)
    assert checkpoint.load(state) == []
    written = []
    for step in range(1, 5):
        checkpoint.save_if_due(state, [0.5] * step)
        written.append(path.exists())
    assert written == [False, False, True, True]
    again = TrainingCheckpoint(path, {}, every=1000.0, epoch=3)
    assert again.load(state) == [0.5] * 3
    for step in range(4, 7):
        again.save_if_due(state, [0.5] * step)
    assert len(TrainingCheckpoint(path, {}).load(state)) == 6
