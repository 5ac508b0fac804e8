"""Memory that stays with the process while it is needed again and again.

A training step frees hundreds of megabytes and asks for them anew in the next. glibc gives large pieces back to the
kernel each time and gets them back a page at a time, every page zeroed: a fifth of a step, on networks with wide maps.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator

__all__ = ["freed_memory_kept"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # from glibc's malloc.h
_LARGE = 32 * 2**20  # where glibc's own thresholds end up in a process that has freed large pieces


@contextlib.contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keeps what is freed inside the block, and gives it back after it; does nothing where there is no glibc."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        yield
        return
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        library.mallopt(_MMAP_MAX, 65_536)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, 2 * _LARGE)
        library.malloc_trim(0)
