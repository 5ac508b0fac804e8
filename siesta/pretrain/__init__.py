"""Self-supervised (or supervised) training of a whole network, the first step of the paper's base initialisation.

Each method has a file of its own with its loss as a pure function and the module that computes it. Crops, optimiser,
training loop and checkpoints are shared.
"""

from __future__ import annotations

from siesta.pretrain.barlow_twins import BarlowTwins
from siesta.pretrain.contract import Pretrainer
from siesta.pretrain.mira import MIRA
from siesta.pretrain.mira_barlow_twins import MIRABarlowTwins
from siesta.pretrain.random_top import random_top
from siesta.pretrain.seed import SEED
from siesta.pretrain.supervised import Supervised
from siesta.pretrain.swav import SwAV
from siesta.pretrain.swav_essl import SwAVESSL
from siesta.pretrain.swav_seal import SwAVSEAL
from siesta.registry import Registry, class_of

__all__ = ["PRETRAINERS", "random_top"]

PRETRAINERS: Registry[type[Pretrainer]] = Registry(
    "method",
    {
        "swav": SwAV,
        "barlow_twins": BarlowTwins,
        "mira": MIRA,
        "seed": SEED,
        "mira+barlow_twins": MIRABarlowTwins,
        "swav+essl": SwAVESSL,
        "swav+seal": SwAVSEAL,
        "supervised": Supervised,
    },
    group="siesta.pretrainers",
    requirement=class_of(Pretrainer, arguments=1),
)
"""Pre-training methods by name; each is constructed as `Method(encoder, *, options)`, see `contract.Pretrainer`."""
