"""k-NN accuracy: the quality of features, measured without training a classifier (Wu et al. 2018)."""

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

__all__ = ["KnnPictures", "knn_accuracy", "leave_one_out_accuracy"]

_NEIGHBOURS = 20
_TEMPERATURE = 0.07
_BATCH_SIZE = 64


def leave_one_out_accuracy(features: Tensor, labels: Tensor, neighbours: int = _NEIGHBOURS) -> float:
    """Return the k-NN accuracy in per cent, each row classified by the nearest of the other rows.

    Cosines are measured from the mean of all rows, as a learner measures them.

    Args:
        features: Features, (N, D).
        labels: Class index of each row, (N,).
        neighbours: How many rows vote, each with the weight exp(cosine / 0.07).
    """
    rows = F.normalize(features - features.mean(dim=0))
    correct = 0
    for start in range(0, len(rows), _BATCH_SIZE):
        batch = torch.arange(start, min(start + _BATCH_SIZE, len(rows)))
        cosines = rows[batch] @ rows.T
        cosines[torch.arange(len(batch)), batch] = -torch.inf
        nearest, indices = cosines.topk(min(neighbours, len(rows) - 1), dim=1)
        votes = nearest.new_zeros(len(batch), int(labels.max()) + 1)
        votes.scatter_add_(1, labels[indices], ((nearest - 1) / _TEMPERATURE).exp())
        correct += int((votes.argmax(dim=1) == labels[batch]).sum())
    return 100 * correct / len(rows)


class KnnPictures:
    """Labelled images for k-NN accuracy, decoded once and kept in memory.

    Args:
        files: Each image with its label; unreadable ones are skipped.
        image_size: Side of the centre crop.

    Attributes:
        labels: Class index of each image, (N,).
        skipped: Error messages of the images that could not be read.
    """

    def __init__(self, files: Sequence[tuple[Path, str]], image_size: int) -> None:
        self._pixels: list[Pixels] = []
        names = list[str]()
        skipped = list[str]()
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
            raise BadInput(
                f"k-NN needs images of at least two classes, as FOLDER/<label>/*{unread}: choose another folder"
            )

    def batches(self) -> Iterator[Tensor]:
        """Yield pixels (B, 3, S, S)."""
        for start in range(0, len(self._pixels), _BATCH_SIZE):
            yield torch.from_numpy(np.stack(self._pixels[start : start + _BATCH_SIZE])).permute(0, 3, 1, 2).float()


@torch.no_grad()
def knn_accuracy(encoder: Encoder, pictures: KnnPictures) -> float:
    """Return the leave-one-out k-NN accuracy of an encoder in per cent; its mode is restored."""
    training = encoder.training
    encoder.eval()
    device = encoder.mean.device
    features = torch.cat([encoder(batch.to(device)).cpu() for batch in pictures.batches()])
    encoder.train(training)
    return leave_one_out_accuracy(features, pictures.labels)
