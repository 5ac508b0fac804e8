"""Tools that show what a crash, a disk that fails or damage does to a learner; `python -m tests.faults` runs them."""
