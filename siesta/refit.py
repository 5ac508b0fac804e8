"""A codec that suits what is taught now: fitted anew, and every stored sample brought to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from siesta.codecs import OPQ
from siesta.data import labelled_files, picture_files
from siesta.errors import BadInput
from siesta.fitting import base_pictures, fit
from siesta.folders import key_of
from siesta.learner import Siesta

__all__ = ["Refitted", "refit"]


@dataclass(frozen=True)
class Refitted:
    """What became of it.

    Attributes:
        samples: That are stored.
        from_pictures: Those of them whose codes were made of their own pictures again; the others' were made of what
            the old codec had kept of them, and have lost a second time.
        error_before: Relative error of the old codec on the pictures that it was fitted on.
        error_after: That of the new one.
    """

    samples: int
    from_pictures: int
    error_before: float
    error_after: float


def refit(learner: Siesta, base: Path) -> Refitted:
    """Fits the codec anew on a folder of pictures.

    Pictures of it that were taught from FOLDER/<label>/* are known again, and their samples made of them.
    """
    if not isinstance(learner.pipeline.codec, OPQ):
        raise BadInput("this learner stores pictures as they are: it has no codec to fit")
    settings = learner.settings
    picture_files(base)  # says it if there are none
    before: float = settings["codec_error"]
    pictures = base_pictures(base, settings["image_size"], settings["seed"])
    found = fit(learner.pipeline.backbone, pictures, settings["seed"])
    assert isinstance(found.codec, OPQ)
    made = learner.renew_codec(found.codec, found.error, _originals(learner, base))
    return Refitted(len(learner.store), made, before, found.error)


def _originals(learner: Siesta, base: Path) -> dict[int, Path]:
    """Files that stored samples were taught from, by the sample's id."""
    try:
        files = labelled_files(base)
    except BadInput:
        return {}  # pictures without labels were never taught so
    originals: dict[int, Path] = {}
    for path, label in files:
        try:
            learner.read(path)
            originals |= dict.fromkeys(learner.store.samples.known_keys([key_of(path, label)]).values(), path)
        except BadInput:
            continue
    return originals
