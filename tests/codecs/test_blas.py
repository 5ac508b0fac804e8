"""BLAS has one thread while any block runs, in whichever order concurrent blocks end."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

from siesta.codecs.blas import one_blas_thread


def threads() -> set[int]:
    assert np.ones(1) @ np.ones(1) == 1  # BLAS is loaded
    return {library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()}


def test_the_limit_ends_with_the_last_of_overlapping_blocks() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = ExitStack(), ExitStack()
        first.enter_context(one_blas_thread())
        second.enter_context(one_blas_thread())
        first.close()
        assert threads() == {1}
        second.close()
        assert threads() == before == {2}
