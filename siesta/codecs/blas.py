"""One thread for NumPy's matrix products.

NumPy's threads wait actively for the next product. They would take the processor from the threads of the inference
engine, which runs right before and after a codec; and the matrices of a codec are small, so more threads gain nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


class _Users:
    """The blocks that are running, in any thread; the limit is for the whole process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.limiter: Any = None


_USERS = _Users()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit NumPy's BLAS to one thread until the last of concurrent blocks has ended."""
    with _USERS.lock:
        if not _USERS.count:
            _USERS.limiter = _blas().limit(limits=1)
        _USERS.count += 1
    try:
        yield
    finally:
        with _USERS.lock:
            _USERS.count -= 1
            if not _USERS.count:
                _USERS.limiter.restore_original_limits()


@cache
def _blas() -> ThreadpoolController:
    """Return the loaded BLAS libraries; looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")
