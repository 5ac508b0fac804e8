"""Refitting the codec to what a learner is taught now, and encoding every stored sample with the new one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from siesta.data import labelled_files, picture_files
from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.learner.fitting import base_inputs, fit_codec
from siesta.learner.folders import file_key

__all__ = ["RefitReport", "refit"]


@dataclass(frozen=True)
class RefitReport:
    """The result of a refit.

    Attributes:
        samples: The number of stored samples.
        from_pictures: The number of them that were encoded from their own images. The others were encoded from what
            the old codec kept of them, and lost precision a second time.
        error_before: Relative error of the old codec on the images that it was fitted on.
        error_after: The same of the new codec on the new images.
    """

    samples: int
    from_pictures: int
    error_before: float
    error_after: float


def refit(learner: Siesta, base: Path) -> RefitReport:
    """Fit the codec again on a folder of images, and encode all stored samples with it.

    Samples that were learned from FOLDER/<label>/* of that folder are encoded from their images.
    """
    settings = learner.settings
    codec = learner.pipeline.codec
    if not codec.needs_fit:
        raise BadInput(f"the codec {codec.name} is not fitted to images: this learner has no codec to fit")
    picture_files(base)  # raises `BadInput` if there are none
    error_before: float = settings["codec_error"]
    images = base_inputs(base, learner.pipeline.input, settings["seed"])
    fitted = fit_codec(learner.pipeline.engines, type(codec), images, settings["seed"], options=codec.options)
    from_images = learner.renew_codec(fitted.codec, fitted.error, _original_files(learner, base))
    return RefitReport(learner.info().samples.stored, from_images, error_before, fitted.error)


def _original_files(learner: Siesta, base: Path) -> dict[int, Path]:
    """Return the files that stored samples were learned from, by sample id."""
    try:
        files = labelled_files(base)
    except BadInput:
        return {}  # files without labels cannot have been learned
    originals: dict[int, Path] = {}
    for path, label in files:
        try:
            learner.read(path)
            sample_ids = learner.known_keys([file_key(path, label)]).values()
        except BadInput:
            continue
        originals |= dict.fromkeys(sample_ids, path)
    return originals
