"""Some steps of every method: python -m tests.pretrain.together DATA OUT, alone or several under torchrun."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from siesta.pretrain import PRETRAINERS, ranks
from siesta.pretrain.contract import Views
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import Settings
from tests.pretrain.toys import QUICK, TINY, know_tiny, make, views_for

STEPS = 4


def learned(name: str) -> dict[str, Tensor]:
    """What a method is after some steps in double precision, on this rank's pieces of the batches."""
    method = make(name)
    ranks.with_shared_norms(method)
    method.double().train()
    model = ranks.together(method)
    optimizer = make_optimizer(method.parts(), method.recipe)
    for step in range(STEPS):
        whole, fraction = views_for(name, batch=24, seed=step), step / STEPS
        piece = Views([ranks.own(crop).double() for crop in whole.crops], ranks.own(whole.labels))
        optimizer.zero_grad(set_to_none=True)
        model(piece, fraction).loss.backward()
        optimizer.prepare(0.1, fraction)
        optimizer.step()
    return {label: tensor.contiguous() for label, tensor in method.state_dict().items()}


def train_all(data: Path, out: Path) -> None:
    """Every method's state in a file, and a whole run."""
    with ranks.joined():
        out.mkdir(exist_ok=True)
        for name in PRETRAINERS:
            state = learned(name)
            if ranks.rank() == 0:
                save_file(state, out / f"{name}.safetensors")
        settings = Settings("swav", TINY, image_size=32, epochs=2, batch_size=24, rate=0.1, options=QUICK["swav"])
        pretrain(settings, data, out / "run.safetensors", labelled=data, cache=out / "cache")


if __name__ == "__main__":
    know_tiny()
    torch.set_num_threads(1)
    train_all(Path(sys.argv[1]), Path(sys.argv[2]))
