"""The learner: `Siesta`, and what creates, edits, checks and repairs one."""

from siesta.learner.info import LearnerInfo
from siesta.learner.learn import SAMPLES_PER_TRANSACTION
from siesta.learner.learner import IN_MEMORY, Siesta

__all__ = ["IN_MEMORY", "SAMPLES_PER_TRANSACTION", "LearnerInfo", "Siesta"]
