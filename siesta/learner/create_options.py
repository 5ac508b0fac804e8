"""What can be chosen for a new learner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from siesta.backbones import (
    BACKBONES,
    DEFAULT_BACKBONE,
    DEFAULT_SPACE,
    MAX_IMAGE_SIZE,
    MIN_IMAGE_SIZE,
    PUBLISHED,
    BackboneSpec,
    vector_network,
)
from siesta.codecs import CODECS, DEFAULT_CODEC, VECTOR_CODEC
from siesta.contracts import Codec
from siesta.errors import BadInput
from siesta.head.kinds import DEFAULT_HEAD, check_head
from siesta.learner.codec_options import check_codec_options
from siesta.pipeline import InputLike
from siesta.sleep.settings import check_seed

__all__ = ["CreateFields", "CreateOptions", "NetworkFields"]


class NetworkFields(TypedDict, total=False):
    """The fields of `CreateOptions` that base initialisation takes, as keyword arguments."""

    memory: str | int
    backbone: str | BackboneSpec
    cut: int | None
    codec: str | type[Codec] | None
    codec_options: Mapping[str, Any] | None
    weights: str | Path
    image_size: int | None
    space: str
    head: str


class CreateFields(NetworkFields, total=False):
    """All fields of `CreateOptions` as keyword arguments."""

    features: int | None
    top_layers: int | None
    base: str | Path | Iterable[InputLike] | None
    hold_out: bool
    seed: int


@dataclass(frozen=True)
class CreateOptions:
    """What can be chosen for a new learner.

    Attributes:
        memory: The budget for stored samples: a number of bytes, or text such as "64MB" or "500 samples".
        backbone: A key of `BACKBONES`, or a spec of your own with a name.
        cut: The number of layers below the cut; the backbone's default when None.
        features: Length of the vectors that the learner takes in place of images, such as 768.
        top_layers: The number of trainable layers over vectors, 1 to 3; None takes the default.
        codec: How samples are stored: "opq" (images by default), "float16" (vectors by default), "raw" for images,
            with no layer below the cut, or a class of your own.
        codec_options: Options of the codec, such as `{"codebooks": 32}` for opq.
        weights: A file of weights, "random", or "published" for the ones that come with the backbone.
        image_size: Pixels on each side that images are resized and cropped to; the backbone's own when None.
        base: Images to fit the codec on: a folder, with or without labels, of which at most 1,000 are read, or an
            iterable of images or vectors, of which all are. None takes the codec that comes with the package.
        space: The feature space of the class means: "centred" (features minus their mean over base images),
            "plain" (the paper's variant), or "linear_centred" and "linear", the same before the last activation.
        hold_out: Whether up to five samples of each class with 20 or more are never rehearsed, to evaluate sleeps.
        head: The head that predicts: "discriminant", on statistics of stored samples, or "cosine", as in the paper.
        seed: Seed of all random streams of this learner.

    Example:
        >>> options = CreateOptions(features=768)
        >>> options.network, options.codec_name
        ('vectors_2', 'float16')
    """

    memory: str | int = "64MB"
    backbone: str | BackboneSpec = DEFAULT_BACKBONE
    cut: int | None = None
    features: int | None = None
    top_layers: int | None = None
    codec: str | type[Codec] | None = None
    codec_options: Mapping[str, Any] | None = None
    weights: str | Path = PUBLISHED
    image_size: int | None = None
    base: str | Path | Iterable[InputLike] | None = None
    space: str = DEFAULT_SPACE
    hold_out: bool = True
    head: str = DEFAULT_HEAD
    seed: int = 0

    def validate(self) -> None:
        """Raise `BadInput` for values that cannot be used."""
        if self.features is None:
            self._check_images()
        else:
            self._check_vectors()
        check_seed(self.seed)
        check_head(self.head)
        check_codec_options(self.codec_name, self.given_codec_options)
        codec_cut = CODECS[self.codec_name].cut
        if codec_cut is not None and self.cut not in (None, codec_cut):
            raise BadInput(f"the codec {self.codec_name} only works with cut {codec_cut}: remove cut={self.cut}")

    def _check_images(self) -> None:
        if self.top_layers is not None:
            raise BadInput("top_layers is for a learner of vectors: give features, the length of your vectors, too")
        if not MIN_IMAGE_SIZE <= self.input_size <= MAX_IMAGE_SIZE:
            raise BadInput(f"image_size is {self.input_size}: give {MIN_IMAGE_SIZE} to {MAX_IMAGE_SIZE} pixels")

    def _check_vectors(self) -> None:
        if self.backbone != DEFAULT_BACKBONE or self.image_size is not None:
            raise BadInput("a learner of vectors has no backbone and no image size: give features only")
        if self.cut or self.weights != PUBLISHED:
            raise BadInput("a learner of vectors has no cut and no file of weights: give features only")
        if isinstance(self.base, str | Path):
            raise BadInput(f"base is {self.base}, and this learner takes vectors: give an array of them")

    @property
    def network(self) -> str:
        """The name of the network."""
        if self.features is None:
            return BACKBONES.name_of(self.backbone)
        return vector_network(self.features, self.top_layers)

    @property
    def input_size(self) -> int:
        """Side in pixels of square images, or length of the vectors."""
        if self.features is not None:
            return self.features
        return BACKBONES[self.network].image_size if self.image_size is None else self.image_size

    @property
    def codec_name(self) -> str:
        """The name of the codec."""
        if self.codec is None:
            return DEFAULT_CODEC if self.features is None else VECTOR_CODEC
        return CODECS.name_of(self.codec)

    @property
    def given_codec_options(self) -> Mapping[str, Any]:
        """The options of the codec."""
        return self.codec_options or {}

    @property
    def has_base_statistics(self) -> bool:
        """Whether base images are given, or statistics of base images come with the weights."""
        return self.base is not None or self.weights == PUBLISHED
