"""The errors that a user can act on; any other exception that escapes is a bug.

Each message is one sentence that says what is wrong and what to do.
"""

__all__ = ["Applied", "BadInput", "Busy", "Damaged", "DiskRefused", "SiestaError"]


class SiestaError(Exception):
    """Base class of all errors that siesta raises on purpose.

    Attributes:
        exit_code: The exit code of the command line for this error.
        safe: The number of samples that `learn_many` had stored, and keeps, when it failed; None for other calls.
    """

    exit_code = 1
    safe: int | None = None


class BadInput(SiestaError):
    """An image, label, directory or option that cannot be used."""

    exit_code = 3


class DiskRefused(BadInput):
    """A disk that is full or not writable, or that the learner was removed from; a retry may succeed."""

    exit_code = 7


class Applied(DiskRefused):
    """A change that was applied, although the disk refused what follows it, such as clearing the old bytes.

    Attributes:
        sample: Id of the sample that the change has made, if it made one.
    """

    def __init__(self, message: str, sample: int | None = None) -> None:
        super().__init__(message)
        self.sample = sample


class Damaged(SiestaError):
    """A learner with broken files, or with a format newer than this version of siesta."""

    exit_code = 4


class Busy(SiestaError):
    """A learner that another process is writing to."""

    exit_code = 5
