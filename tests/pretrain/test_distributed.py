"""Two processes on halves of the batches compute what one computes on whole batches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from siesta.backbones import BACKBONES
from siesta.errors import BadInput
from siesta.pretrain import PRETRAINERS, distributed
from tests.pretrain.distributed_worker import train_all
from tests.pretrain.toys import TINY, TINY_SPEC, draw_textures

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The results of the same steps by one process and by two."""
    folder = tmp_path_factory.mktemp("ranks")
    data = draw_textures(folder / "data")
    alone, together = folder / "alone", folder / "together"
    command = [*TORCHRUN, "-m", "tests.pretrain.distributed_worker", str(data), str(together)]
    workers = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with workers, pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKBONES, TINY, TINY_SPEC)
        train_all(data, alone)  # while the two start
        _, errors = workers.communicate()
    assert workers.returncode == 0, errors
    return alone, together


@pytest.mark.parametrize("name", PRETRAINERS.own)
def test_two_processes_train_the_weights_of_one(runs: tuple[Path, Path], name: str) -> None:
    single, double = (load_file(folder / f"{name}.safetensors") for folder in runs)
    for tensor, value in single.items():
        if not tensor.endswith("num_batches_tracked"):
            torch.testing.assert_close(double[tensor], value, rtol=1e-8, atol=1e-8)


def test_two_processes_report_the_history_of_one(runs: tuple[Path, Path]) -> None:
    single, double = (json.loads((folder / "run.safetensors.json").read_text("utf-8")) for folder in runs)
    assert double["pictures"] == single["pictures"] == 96 and double["status"] == "trained"
    for one, two in zip(single["history"], double["history"], strict=True):
        assert two["loss"] == (None if one["loss"] is None else pytest.approx(one["loss"], rel=1e-3))
        assert two["knn"] == pytest.approx(one["knn"], abs=5)


def test_the_process_that_fails_reports_its_error_without_a_traceback_of_ours(tmp_path: Path, textures: Path) -> None:
    out = ["--out", str(tmp_path / "missing" / "swav.safetensors")]
    small = ["--image-size", "32", "--batch-size", "16", "--epochs", "1"]
    command = [*TORCHRUN, "-m", "siesta", "pretrain", "swav", "--data", str(textures), *small, *out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "does not exist: create it first" in done.stderr
    assert "siesta/pretrain/" not in done.stderr  # torchrun has a traceback of its own, we have none


def test_one_process_alone_shares_nothing() -> None:
    rows = torch.rand(4, 2, requires_grad=True)
    assert distributed.world_size() == 1 and distributed.rank() == 0 and distributed.all_reduce_mean(2.5) == 2.5
    assert distributed.all_reduce_sum(rows) is rows and torch.equal(distributed.local_chunk(rows), rows)
    assert not distributed.all_gather(rows).requires_grad
    norms = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    distributed.convert_batch_norms(norms)
    assert isinstance(norms[1], nn.BatchNorm1d)


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 4, 5)])
def test_a_distributed_norm_of_one_process_is_batch_norm(shape: tuple[int, ...]) -> None:
    rows = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    plain = nn.BatchNorm1d(3, momentum=0.3) if len(shape) == 2 else nn.BatchNorm2d(3, momentum=0.3)
    with torch.no_grad():
        plain.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
    shared = distributed.DistributedBatchNorm.from_batch_norm(plain)
    for _ in range(2):
        torch.testing.assert_close(shared(rows), plain(rows))
    for name, tensor in plain.state_dict().items():
        if name != "num_batches_tracked":
            torch.testing.assert_close(shared.state_dict()[name], tensor)
    torch.testing.assert_close(shared.eval()(rows), plain.eval()(rows))


def test_a_process_that_stops_while_the_others_join_is_reported_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object, **__: object) -> None:
        raise torch.distributed.DistNetworkError("Connection reset by peer")

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.distributed, "init_process_group", lost)
    with pytest.raises(BadInput, match="another process of this run has stopped"), distributed.process_group():
        pass
