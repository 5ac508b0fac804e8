"""What can go wrong because of the world, not because of us: each error is one sentence that says what to do.

Everything else that escapes is a bug. `exit_code` is what the command line ends with.
"""


class SiestaError(Exception):
    """A failure that its reader can act on.

    Attributes:
        safe: How many samples of a `learn_many` were stored before it failed, and stay so; None elsewhere.
    """

    exit_code = 1
    safe: int | None = None


class BadInput(SiestaError):
    """A picture, label, folder, option or disk that cannot be used as it is."""

    exit_code = 3


class DiskRefused(BadInput):
    """A disk that is full, cannot be written to, or has lost the learner: what was right may be tried again."""

    exit_code = 7


class Damaged(SiestaError):
    """A learner whose files are broken, or written by a newer version."""

    exit_code = 4


class Busy(SiestaError):
    """Someone else is writing to this learner."""

    exit_code = 5
