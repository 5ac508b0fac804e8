"""Two processes on half batches are one on the whole."""

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
from siesta.pretrain import PRETRAINERS, ranks
from tests.pretrain.together import train_all
from tests.pretrain.toys import RECIPE, TINY, draw_textures

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same steps, by one and by two."""
    folder = tmp_path_factory.mktemp("ranks")
    data, alone, together = draw_textures(folder / "data"), folder / "alone", folder / "together"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKBONES, TINY, RECIPE)
        train_all(data, alone)
    command = [*TORCHRUN, "-m", "tests.pretrain.together", str(data), str(together)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return alone, together


@pytest.mark.parametrize("name", list(PRETRAINERS))
def test_two_are_one(runs: tuple[Path, Path], name: str) -> None:
    ours, theirs = (load_file(folder / f"{name}.safetensors") for folder in runs)
    for tensor, value in ours.items():
        if not tensor.endswith("num_batches_tracked"):
            torch.testing.assert_close(theirs[tensor], value, rtol=1e-8, atol=1e-8)


def test_a_whole_run_of_two(runs: tuple[Path, Path]) -> None:
    ours, theirs = (json.loads((folder / "run.safetensors.json").read_text("utf-8")) for folder in runs)
    assert theirs["pictures"] == ours["pictures"] == 96 and theirs["status"] == "trained"
    for own, their in zip(ours["history"], theirs["history"], strict=True):
        assert their["loss"] == (None if own["loss"] is None else pytest.approx(own["loss"], rel=1e-3))
        assert their["knn"] == pytest.approx(own["knn"], abs=5)


def test_one_that_fails_alone_says_why_and_the_others_that_it_did(tmp_path: Path, textures: Path) -> None:
    out = ["--out", str(tmp_path / "missing" / "swav.safetensors")]
    small = ["--image-size", "32", "--batch-size", "16", "--epochs", "1"]
    command = [*TORCHRUN, "-m", "siesta", "pretrain", "swav", "--data", str(textures), *small, *out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "does not exist: make it first" in done.stderr
    assert "siesta/pretrain/" not in done.stderr  # torchrun has a traceback of its own, we have none


def test_alone_nothing_is_shared() -> None:
    rows = torch.rand(4, 2, requires_grad=True)
    assert ranks.count() == 1 and ranks.rank() == 0 and ranks.mean(2.5) == 2.5
    assert ranks.summed(rows) is rows and torch.equal(ranks.own(rows), rows)
    assert not ranks.gathered(rows).requires_grad
    norms = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    ranks.with_shared_norms(norms)
    assert isinstance(norms[1], nn.BatchNorm1d)


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 4, 5)])
def test_a_shared_norm_alone_is_batch_norm(shape: tuple[int, ...]) -> None:
    rows = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    plain: nn.Module = nn.BatchNorm1d(3, momentum=0.3) if len(shape) == 2 else nn.BatchNorm2d(3, momentum=0.3)
    with torch.no_grad():
        plain.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))  # type: ignore[operator]
    shared = ranks._shared(plain)  # type: ignore[arg-type]
    for _ in range(2):
        torch.testing.assert_close(shared(rows), plain(rows))
    for name, tensor in plain.state_dict().items():
        if name != "num_batches_tracked":
            torch.testing.assert_close(shared.state_dict()[name], tensor)
    torch.testing.assert_close(shared.eval()(rows), plain.eval()(rows))
