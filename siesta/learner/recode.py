"""Storing all samples of a learner with another codec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codec, Codes, Ids
from siesta.head import Head
from siesta.head.kinds import DISCRIMINANT, head_of
from siesta.learner.rejections import stacked_codes
from siesta.learner.state import BATCH_SIZE, LearnerState
from siesta.pipeline import InputLike, Pipeline
from siesta.sleep.counted_statistics import CountedStatistics, samples_to_count
from siesta.sleep.delta_sums import DeltaSums

__all__ = ["replace_codec"]


def replace_codec(state: LearnerState, codec: Codec, error: float, originals: Mapping[int, InputLike]) -> int:
    """Encode all stored samples with another codec and use it from now on; see `Siesta.renew_codec`."""
    store = state.store
    ids = store.samples.ids()
    from_images = sum(sample_id in originals for sample_id in ids.tolist())
    with state.changing():
        entry = {"what": "refit", "samples": len(ids), "from_pictures": from_images}
        head = Head.from_state(store.snapshot().weights["head"])  # as of the last sleep
        pipeline = state.pipeline.with_codec(codec)
        since = store.generations.get(store.generations.active()).since
        recoded = _recoded(state, ids, codec, originals)
        statistics = None
        if head_of(store.settings) == DISCRIMINANT:
            statistics = CountedStatistics(pipeline.spec.features)
            recoded = _counted(recoded, statistics, pipeline, samples_to_count(store, since))
        sums = DeltaSums(pipeline.features, head, statistics)
        rejected = store.rejections.get(store.rejections.classes())
        if rejected:
            latents = state.pipeline.codec.decode(stacked_codes(rejected), state.pipeline.latent_shape)
            rejected = dict(zip(rejected, map(bytes, codec.encode(latents)), strict=True))
        store.edits.replace_codec(codec.state(), error, recoded, sums, entry, rejected)
    return from_images


def _counted(
    recoded: Iterator[tuple[Ids, Codes]],
    statistics: CountedStatistics,
    pipeline: Pipeline,
    to_count: tuple[Ids, npt.NDArray[np.int32]],
) -> Iterator[tuple[Ids, Codes]]:
    """Yield the same, and count the samples with the ids and class ids `to_count` in new statistics."""
    class_of = dict(zip(*(part.tolist() for part in to_count), strict=True))
    for ids, codes in recoded:
        rows = [row for row, sample_id in enumerate(ids.tolist()) if sample_id in class_of]
        if rows:
            classes = np.array([class_of[sample_id] for sample_id in ids[rows].tolist()])
            statistics.add(ids[rows], classes, pipeline.features(codes[rows]))
        yield ids, codes


def _recoded(
    state: LearnerState, ids: Ids, codec: Codec, originals: Mapping[int, InputLike]
) -> Iterator[tuple[Ids, Codes]]:
    """Yield ids and new codes in batches, from a sample's own image or vector where it is given."""
    for start in range(0, len(ids), BATCH_SIZE):
        batch = ids[start : start + BATCH_SIZE]
        latents = state.pipeline.codec.decode(state.store.samples.get(batch)[1], state.pipeline.latent_shape)
        for row, sample_id in enumerate(batch.tolist()):
            if sample_id in originals:
                latents[row] = state.pipeline.latents([state.read(originals[sample_id])])[0]
        yield batch, codec.encode(latents)
