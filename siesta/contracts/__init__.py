"""The interfaces and data types that the parts of siesta share. Read this package first.

A learner computes `head(top(codec.decode(codec.encode(bottom(image)))))`. In the paper's letters this is F(G(H(x)))
with an optimised product quantiser between H and G::

    wake     image -> bottom (H) -> codec.encode -> store
                                        +-> codec.decode -> top (G) -> running mean of the class in the head (F)
    sleep    policy chooses sample ids -> codec.decode -> augmentation -> one training step of top and head -> ...
    predict  image -> bottom -> encode -> decode -> top -> head -> labels with probabilities

The bottom never learns. While awake, only the head changes. During sleep, top and head are trained on stored codes.

Other packages can add backbones, codecs, engines, policies, augmentations, selections, methods, data sets, orders and
pre-training methods. Each is chosen by name from the `Registry` of its package: `BACKBONES`, `CODECS`, `POLICIES` and
so on.

Shapes: B samples in a batch, N stored samples, K classes, S pixels a side, latents Z of (d, r, s), or (N, d) where
the network computes N tokens, features z of (D,).
"""

from siesta.contracts.arrays import Codes, Ids, Latents, LatentShape
from siesta.contracts.augmentation import Augmentation
from siesta.contracts.backbone import Backbone, Normalization, SleepDefaults
from siesta.contracts.codec import Codec
from siesta.contracts.engine import Engine, NetworkPart
from siesta.contracts.graph import Attribute, Operation
from siesta.contracts.inputs import Input
from siesta.contracts.method import Method, Resources
from siesta.contracts.policy import Embed, Embedded, Memory, Policy
from siesta.contracts.prediction import Prediction
from siesta.contracts.progress import OnProgress, Progress
from siesta.contracts.selection import Selection

__all__ = [
    "Attribute",
    "Augmentation",
    "Backbone",
    "Codec",
    "Codes",
    "Embed",
    "Embedded",
    "Engine",
    "Ids",
    "Input",
    "LatentShape",
    "Latents",
    "Memory",
    "Method",
    "NetworkPart",
    "Normalization",
    "OnProgress",
    "Operation",
    "Policy",
    "Prediction",
    "Progress",
    "Resources",
    "Selection",
    "SleepDefaults",
]
