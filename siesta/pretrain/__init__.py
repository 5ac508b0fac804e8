"""Pre-training of a whole network on anyone's pictures, the first step of the paper's base initialisation.

One method a file: its loss as a pure function, then the small module that feeds it. Crops, optimiser, loop and
checkpoints are shared.
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

__all__ = ["PRETRAINERS", "random_top"]

PRETRAINERS: dict[str, type[Pretrainer]] = {
    "swav": SwAV,
    "barlow_twins": BarlowTwins,
    "mira": MIRA,
    "seed": SEED,
    "mira+barlow_twins": MIRABarlowTwins,
    "swav+essl": SwAVESSL,
    "swav+seal": SwAVSEAL,
    "supervised": Supervised,
}
"""Each is made as `Method(encoder, *, options)`, see `contract.Pretrainer`."""
