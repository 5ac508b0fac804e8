"""k-NN accuracy: what a network's features are worth without any training (Wu et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.errors import BadInput
from siesta.images import Pixels, read_image
from siesta.pretrain.encoder import Encoder

__all__ = ["Questions", "knn_accuracy", "neighbours_vote"]

_NEIGHBOURS = 20
_TEMPERATURE = 0.07
_CHUNK = 64


def neighbours_vote(features: Tensor, labels: Tensor, neighbours: int = _NEIGHBOURS) -> float:
    """Share of rows, in per cent, that their nearest neighbours name rightly, each left out of its own vote.

    Cosines are measured from the mean of all rows, as a learner measures them.

    Args:
        features: (N, D).
        labels: Index of each one's class, (N,).
        neighbours: How many vote, the nearer the more by exp(cosine / 0.07).
    """
    rows = F.normalize(features - features.mean(dim=0))
    right = 0
    for start in range(0, len(rows), _CHUNK):
        some = torch.arange(start, min(start + _CHUNK, len(rows)))
        cosines = rows[some] @ rows.T
        cosines[torch.arange(len(some)), some] = -torch.inf
        near, who = cosines.topk(min(neighbours, len(rows) - 1), dim=1)
        votes = near.new_zeros(len(some), int(labels.max()) + 1)
        votes.scatter_add_(1, labels[who], ((near - 1) / _TEMPERATURE).exp())
        right += int((votes.argmax(dim=1) == labels[some]).sum())
    return 100 * right / len(rows)


class Questions:
    """Labelled pictures that a network is asked about, read once.

    Args:
        files: Each picture with its label; what cannot be read is left out.
        image_size: Side of the centre crop.

    Attributes:
        labels: Index of each one's class, (N,).
        skipped: Why some could not be read.
    """

    def __init__(self, files: Sequence[tuple[Path, str]], image_size: int) -> None:
        self._pixels: list[Pixels] = []
        names, skipped = list[str](), list[str]()
        for file, label in files:
            try:
                self._pixels.append(read_image(file, image_size))
            except BadInput as error:
                skipped.append(str(error))
                continue
            names.append(label)
        self.skipped = tuple(skipped)
        classes = {name: index for index, name in enumerate(sorted(set(names)))}
        self.labels = torch.tensor([classes[name] for name in names])
        if len(classes) < 2:
            unread = f" ({len(skipped):,} could not be read)" if skipped else ""
            words = f"k-NN needs pictures of at least two classes, as FOLDER/<label>/*{unread}: choose another folder"
            raise BadInput(words)

    def chunks(self) -> Iterator[Tensor]:
        """Pixels (B, 3, S, S), some pictures at a time."""
        for start in range(0, len(self._pixels), _CHUNK):
            yield torch.from_numpy(np.stack(self._pixels[start : start + _CHUNK])).permute(0, 3, 1, 2).float()


@torch.no_grad()
def knn_accuracy(encoder: Encoder, questions: Questions) -> float:
    """Per cent of pictures whose neighbours among the others name them rightly; the encoder is left in its mode."""
    training = encoder.training
    encoder.eval()
    device = encoder.mean.device
    features = torch.cat([encoder(chunk.to(device)).cpu() for chunk in questions.chunks()])
    encoder.train(training)
    return neighbours_vote(features, questions.labels)
