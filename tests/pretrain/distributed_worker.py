"""Train every method for some steps: `python -m tests.pretrain.distributed_worker DATA OUT`, alone or by torchrun."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from siesta.pretrain import PRETRAINERS, distributed
from siesta.pretrain.contract import Views
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.run import pretrain
from tests.pretrain.toys import make, quick_settings, register_tiny, views_for

STEPS = 4


def trained_state(name: str) -> dict[str, Tensor]:
    """Return the state of a method after some steps in double precision on this rank's parts of the batches."""
    method = make(name)
    distributed.convert_batch_norms(method)
    method.double().train()
    model = distributed.wrap_ddp(method)
    optimizer = make_optimizer(method.param_groups(), method.recipe)
    for step in range(STEPS):
        whole, fraction = views_for(name, batch=24, seed=step), step / STEPS
        piece = Views(
            [distributed.local_chunk(crop).double() for crop in whole.crops], distributed.local_chunk(whole.labels)
        )
        optimizer.zero_grad(set_to_none=True)
        model(piece, fraction).loss.backward()
        optimizer.prepare(0.1, fraction)
        optimizer.step()
    return {label: tensor.contiguous() for label, tensor in method.state_dict().items()}


def train_all(data: Path, out: Path) -> None:
    """Write the state of every method to a file, and do a whole run."""
    with distributed.process_group():
        out.mkdir(exist_ok=True)
        for name in PRETRAINERS.own:
            state = trained_state(name)
            if distributed.rank() == 0:
                save_file(state, out / f"{name}.safetensors")
        settings = quick_settings("swav", epochs=2, batch_size=24, lr=0.1)
        pretrain(settings, data, out / "run.safetensors", labelled=data, cache=out / "cache")


if __name__ == "__main__":
    register_tiny()
    torch.set_num_threads(1)
    train_all(Path(sys.argv[1]), Path(sys.argv[2]))
