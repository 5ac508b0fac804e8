"""A learner as a classifier of River, over dicts of features or pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from river import base

from siesta.learner import Siesta
from siesta.store import clean_label
from siesta.wrappers.pickling import restored, saved
from siesta.wrappers.random_features import RandomFeatures

__all__ = ["SiestaClassifier"]


class SiestaClassifier(base.Classifier):
    """Classifier that learns one sample at a time, under a byte budget; new classes may come at any time.

    A sample is a dict of numbers and texts, in which features may come and go, or a picture: an array (H, W, 3) of
    bytes, or a dict with one. Labels are kept as text, so `str` of two labels must differ.

    Attributes:
        learner: The `Siesta`, which can sleep, forget, reject and so on; None before the first sample.

    Example:
        >>> from river import datasets, evaluate, metrics, preprocessing
        >>> model = preprocessing.StandardScaler() | SiestaClassifier()
        >>> evaluate.progressive_val_score(datasets.Phishing().take(300), model, metrics.Accuracy()).get() > 0.75
        True
    """

    def __init__(
        self,
        memory: str = "64MB",
        random_features: int = 256,
        gamma: float = 0.1,
        image_size: int = 224,
        head: str = "discriminant",
        seed: int = 0,
    ) -> None:
        """Keep the options; the learner is made with the first sample.

        Args:
            memory: The budget for stored samples, such as "64MB" or "500 samples".
            random_features: Random Fourier features that a dict is turned into.
            gamma: Width of their kernel, exp(-gamma |x - y|^2), for features that are scaled.
            image_size: Pixels on each side that pictures are resized and cropped to.
            head: The head that predicts, "discriminant" or "cosine".
            seed: Seed of all random streams.
        """
        self.memory = memory
        self.random_features = random_features
        self.gamma = gamma
        self.image_size = image_size
        self.head = head
        self.seed = seed
        self.learner: Siesta | None = None
        self._embedding = RandomFeatures(random_features, gamma, seed)
        self._labels: dict[str, base.typing.ClfTarget] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Any, y: base.typing.ClfTarget) -> None:
        """Learn one sample."""
        picture = _picture(x)
        if self.learner is None:
            size = {"features": self.random_features} if picture is None else {"image_size": self.image_size}
            options: dict[str, Any] = {"memory": self.memory, "head": self.head, "seed": self.seed, **size}
            self.learner = Siesta.create(":memory:", **options)
        label = clean_label(str(y))
        self.learner.learn_one(self._embedding.of_dict(x) if picture is None else picture, label)
        self._labels.setdefault(label, y)

    def predict_proba_one(self, x: Any, **_options: Any) -> dict[base.typing.ClfTarget, float]:
        """Return the probability of each class that was learned."""
        if self.learner is None:
            return {}
        picture = _picture(x)
        answer = self.learner.predict_one(self._embedding.of_dict(x) if picture is None else picture, top=10**9)
        total = sum(score for _, score in answer.top) or 1.0  # rounding errors, and rejections, take from it
        return {self._labels[label]: score / total for label, score in answer.top}

    def __getstate__(self) -> dict[str, Any]:
        return saved(self.__dict__, "learner")

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(restored(state, "learner"))


def _picture(x: Any) -> npt.NDArray[Any] | None:
    """Return the picture that a sample is, or that it has; None for a dict of features."""
    for value in (x, *(x.values() if isinstance(x, Mapping) else ())):
        if isinstance(value, np.ndarray) and value.ndim == 3:
            return value
    return None
