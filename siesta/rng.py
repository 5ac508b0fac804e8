"""Random streams: one for each purpose, made from a seed.

Two streams of one seed must differ, or their numbers are correlated. So every stream has a `Purpose`, and its key is
(seed, number of the purpose, indices). The number is the last two digits of the enum's value, and the hundreds are the
component; the number 0 is left out of the key, and so are zeros at its end. Numbers are frozen, so that recorded runs
can be repeated.

Numbers are unique within a component only, as they were in version 0.1. Where a run gives two components one seed,
these streams of theirs are equal: `CODEC_FILES` and `CODEC_VECTORS`, `METHOD_ROW` and `CLASS_SAMPLES`, `METHOD_STEP`
and `STEP_SAMPLES`. Each pair draws different things (an order, a vector), which are never compared. A new purpose takes
a number that no component has.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

__all__ = ["Purpose", "derived_seed", "generator", "seed_sequence"]


class Purpose(IntEnum):
    """What a random stream is for; hundreds are the component, the rest is the number in the key."""

    EVICTION = 101
    """Which sample of the largest class leaves the store. Index: id of the newest sample."""

    REHEARSAL = 202
    """Which samples a policy chooses."""
    AUGMENTATION = 203
    """How pairs of samples are mixed."""
    HELD_OUT_SAMPLES = 204
    """Which held-out samples measure a sleep. It was 3 in version 0.1, which `AUGMENTATION` had too."""
    SLEEP_ROUND = 205
    """The seed of a round of a sleep without a budget. Index: rounds before it."""

    CROPS = 207
    """Which part of each rehearsed sample is cropped."""
    STATISTICS = 206
    """Which stored samples the statistics of the head count. Index: id of the newest sample."""

    CODEC_VECTORS = 300
    """Which latent vectors a codec is fitted on."""
    CODEC_FILES = 400
    """Which images of a folder a codec is fitted on."""
    CODEC_ERROR = 501
    """Which samples a fitted codec's error is measured on."""
    CHECK = 550
    """Which class sums are computed again; the seed is the id of the newest sample."""
    SLEEP = 600
    """The seed of a sleep that is given none. Index: number of the newest generation."""

    METHOD_ROW = 711
    """The first direction of a new class's vector. Index: row."""
    METHOD_STEP = 712
    """What one online step draws. Index: samples seen."""
    METHOD_TRAINING = 713
    """What an offline training draws. Index: samples seen."""
    METHOD_SLEEP = 715
    """The seed of a sleep of SIESTA as a method. Index: samples seen."""

    METHOD_SELECTION = 716
    """In which order a method keeps the samples of a class. Index: samples seen."""

    METHOD_GROWTH = 717
    """The first weights of what a batch learner's network grows by. Index: classes before."""
    METHOD_STAGE = 718
    """What a stage of a batch learner's training draws. Indices: samples seen, stage."""
    METHOD_EXEMPLARS = 719
    """Which images of a class a batch learner keeps. Indices: samples seen, row of the class."""

    VALIDATION_SPLIT = 801
    """Which training images are held out for a search. Index: label."""
    CLASS_ORDER = 810
    """Class-incremental: the order of classes."""
    CLASS_SAMPLES = 811
    """Class-incremental: the order of a class's samples. Index: label."""
    STEP_SAMPLES = 812
    """Class-incremental: the order of a step's samples. Index: step."""
    IID_SAMPLES = 820
    """IID: the order of samples."""
    IID_BASE = 821
    """IID: the order of the base step."""
    BLURRY_CLASSES = 830
    """Blurry: which classes of a step are blurred. Index: step."""
    BLURRY_LEAVERS = 831
    """Blurry: which samples leave their step. Index: label."""
    BLURRY_PLACES = 832
    """Blurry: which steps they go to. Index: label."""
    BLURRY_STEP = 833
    """Blurry: the order of a step's samples. Index: step."""
    TAIL_RANKS = 840
    """Long-tailed: which classes are large."""
    TAIL_SAMPLES = 841
    """Long-tailed: which samples of a class are kept. Index: label."""

    PRETRAIN_ORDER = 901
    """The order of images. Index: epoch."""
    PRETRAIN_CROPS = 902
    """The crops of an image. Indices: epoch, image."""

    INITIAL_WEIGHTS = 1108
    """The first weights of a top over vectors; the seed is the number of the block."""

    RANDOM_FEATURES = 1260
    """Phases and projections of random Fourier features. Index: 0, or one plus the checksum of a column's name."""

    TOUR_SPLIT = 1000
    """The demo's classes and training digits."""
    TOUR_STEP = 1100
    """The demo's order of digits. Index: step."""

    @property
    def number(self) -> int:
        """The number that goes into the key; 0 for none."""
        return self.value % 100


def seed_sequence(seed: int, purpose: Purpose, *indices: int) -> np.random.SeedSequence:
    """Return the seed sequence of a stream.

    Args:
        seed: Of the experiment, learner or sleep; 0 or more.
        purpose: What the stream is for.
        indices: Which of several streams of this purpose; each 0 or more.
    """
    number = (purpose.number,) if purpose.number else ()
    return np.random.SeedSequence((seed, *number, *indices))


def generator(seed: int, purpose: Purpose, *indices: int) -> np.random.Generator:
    """Return the generator of a stream, see `seed_sequence`.

    Example:
        >>> first = generator(7, Purpose.AUGMENTATION).random()
        >>> first == generator(7, Purpose.AUGMENTATION).random(), first == generator(7, Purpose.REHEARSAL).random()
        (True, False)
    """
    return np.random.default_rng(seed_sequence(seed, purpose, *indices))


def derived_seed(seed: int, purpose: Purpose, *indices: int) -> int:
    """Return a seed in 0..2^63 - 1 for a part that makes streams of its own."""
    state = seed_sequence(seed, purpose, *indices).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))
