"""Refitting the codec to what a learner is taught now, and encoding every stored sample with the new one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.learner.fitting import base_inputs, fit_codec
from siesta.learner.vector_files import labelled_sources, vectors_for
from siesta.pipeline import InputLike

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
    """Fit the codec again on a folder of images or a file of vectors, and encode all stored samples with it.

    Samples that were learned from FOLDER/<label>/* of that folder, or from that file, are encoded from their originals.
    """
    settings = learner.settings
    codec = learner.pipeline.codec
    if not codec.needs_fit:
        raise BadInput(f"the codec {codec.name} is not fitted to anything: this learner has no codec to fit")
    given = base if settings.get("features") is None else vectors_for(learner, base)
    inputs = base_inputs(given, learner.pipeline.input, settings["seed"])
    error_before: float = settings["codec_error"]
    fitted = fit_codec(learner.pipeline.engines, type(codec), inputs, settings["seed"], options=codec.options)
    from_images = learner.renew_codec(fitted.codec, fitted.error, _originals(learner, base))
    return RefitReport(learner.info().samples.stored, from_images, error_before, fitted.error)


def _originals(learner: Siesta, base: Path) -> dict[int, InputLike]:
    """Return the files, or vectors, that stored samples were learned from, by sample id."""
    try:
        sources = labelled_sources(learner, base, None)
    except BadInput:
        return {}  # what has no labels cannot have been learned
    originals: dict[int, InputLike] = {}
    for source in sources:
        try:
            learner.read(source.given)
            sample_ids = learner.known_keys([source.key()]).values()
        except BadInput:
            continue
        originals |= dict.fromkeys(sample_ids, source.given)
    return originals
