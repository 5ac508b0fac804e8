"""A learner as a classifier of scikit-learn, over vectors or pictures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from siesta.learner import Siesta
from siesta.store import clean_label
from siesta.wrappers.pickling import restored, saved
from siesta.wrappers.random_features import RandomFeatures

__all__ = ["SiestaClassifier"]

_PICTURE_DIMENSIONS = 4  # (N, H, W, 3)


class SiestaClassifier(ClassifierMixin, BaseEstimator):
    """Classifier that learns online, in batches of any size, under a byte budget.

    X are vectors (N, F), or pictures (N, H, W, 3) of bytes. `fit` begins with an empty learner, `partial_fit` goes on.
    Labels are kept as text, so `str` of two labels must differ.

    Attributes:
        classes_: The labels.
        learner_: The `Siesta`, which can sleep, forget, reject and so on.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> X, y = load_iris(return_X_y=True)
        >>> model = make_pipeline(StandardScaler(), SiestaClassifier()).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        memory: str = "64MB",
        random_features: int = 256,
        gamma: float | None = None,
        image_size: int = 224,
        head: str = "discriminant",
        updates: int = 0,
        seed: int = 0,
    ) -> None:
        """Keep the options; the learner is made by `fit`.

        Args:
            path: A folder for the learner, which `fit` creates and `partial_fit` also opens; in memory when None.
            memory: The budget for stored samples, such as "64MB" or "500 samples".
            random_features: Random Fourier features that vectors are turned into; 0 takes vectors as they are, which
                suits embeddings.
            gamma: Width of their kernel, exp(-gamma |x - y|^2); one divided by the length of the vectors when None.
            image_size: Pixels on each side that pictures are resized and cropped to.
            head: The head that predicts, "discriminant" or "cosine".
            updates: Updates of a sleep at the end of `fit`, which needs torch; 0 for none.
            seed: Seed of all random streams.
        """
        self.path = path
        self.memory = memory
        self.random_features = random_features
        self.gamma = gamma
        self.image_size = image_size
        self.head = head
        self.updates = updates
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Learn X and y with a new learner; a folder at `path` must not exist."""
        if hasattr(self, "learner_"):
            self.learner_.close()
            del self.learner_
        rows, labels = self._checked(X, y, first=True)
        self._begin(rows, unique_labels(labels), must_be_new=True)
        self.learner_.learn_many(self._inputs(rows), map(_text, labels))
        if self.updates:
            self.learner_.sleep(updates=self.updates)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:  # noqa: N803
        """Learn X and y on top of what is known; new classes may come at any time.

        Args:
            X: Vectors or pictures.
            y: Their labels.
            classes: Labels that get a column of `predict_proba` already.
        """
        first = not hasattr(self, "learner_")
        rows, labels = self._checked(X, y, first)
        if first:
            self._begin(rows, unique_labels(labels), must_be_new=False)
        named = [self.classes_, labels] if classes is None else [self.classes_, labels, np.asarray(classes)]
        self._name_classes(np.unique(np.concatenate(named)))
        self.learner_.learn_many(self._inputs(rows), map(_text, labels))
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the label of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:  # noqa: N803
        """Return the probability of each class of `classes_`, (N, K)."""
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        columns = {_text(label): column for column, label in enumerate(self.classes_.tolist())}
        scores = np.zeros((len(rows), len(columns)), np.float32)
        for row, answer in enumerate(self.learner_.predict_many(self._inputs(rows), top=len(columns))):
            for label, score in answer.top:
                scores[row, columns[label]] = score
        totals = scores.sum(axis=1, keepdims=True)  # below one where a label was rejected
        return np.asarray(scores / np.where(totals > 0, totals, 1))

    # -- parts ----------------------------------------------------------------------------------------------------

    def _checked(self, X: Any, y: Any, first: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:  # noqa: N803
        """Return rows and labels that can be learned."""
        if getattr(X, "ndim", 0) == _PICTURE_DIMENSIONS and y is not None:
            rows, labels = self._validated(X, reset=first), np.asarray(y)
            if len(rows) != len(labels):
                raise ValueError(f"{len(rows)} pictures have {len(labels)} labels: give one for each")
        else:
            rows, labels = validate_data(self, X, y, reset=first)
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        return rows, labels

    def _validated(self, X: Any, reset: bool) -> npt.NDArray[Any]:  # noqa: N803
        """Return vectors (N, F) or pictures (N, H, W, 3)."""
        if getattr(X, "ndim", 0) != _PICTURE_DIMENSIONS:
            return np.asarray(validate_data(self, X, reset=reset))
        pictures = np.asarray(X)
        if pictures.shape[3] != 3 or pictures.dtype != np.uint8:
            raise ValueError(f"pictures are (N, H, W, 3) of uint8, not {pictures.shape} of {pictures.dtype}")
        return pictures

    def _begin(self, rows: npt.NDArray[Any], classes: npt.NDArray[Any], must_be_new: bool) -> None:
        """Make or open the learner."""
        self._embedding: RandomFeatures | None = None
        options: dict[str, Any] = {"memory": self.memory, "head": self.head, "seed": self.seed}
        if rows.ndim == _PICTURE_DIMENSIONS:
            options["image_size"] = self.image_size
        else:
            width = rows.shape[1]
            if self.random_features:
                gamma = 1 / width if self.gamma is None else self.gamma
                self._embedding = RandomFeatures(self.random_features, gamma, self.seed)
            options["features"] = self.random_features or width
        self._name_classes(classes)
        if self.path is not None and not must_be_new and Path(self.path).exists():
            self.learner_ = Siesta.open(self.path)
            known = np.array([record.label for record in self.learner_.classes()])
            self._name_classes(np.unique(np.concatenate([classes, known])))
        else:
            self.learner_ = Siesta.create(":memory:" if self.path is None else self.path, **options)

    def _name_classes(self, classes: npt.NDArray[Any]) -> None:
        if len({_text(label) for label in classes.tolist()}) < len(classes):
            raise ValueError("two labels are the same text: give labels that differ as text")
        self.classes_ = classes

    def _inputs(self, rows: npt.NDArray[Any]) -> Iterable[npt.NDArray[Any]]:
        return rows if self._embedding is None else self._embedding.of_array(rows)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return saved(state, "learner_")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(restored(state, "learner_"))


def _text(label: Any) -> str:
    return clean_label(str(label))
