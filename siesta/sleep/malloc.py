"""malloc settings that keep freed memory in the process during training.

A training step frees hundreds of megabytes and allocates them again in the next step. By default glibc returns large
blocks to the kernel and gets them back page by page, each page zeroed. On networks with wide feature maps that takes
a fifth of a step.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator

__all__ = ["keep_freed_memory"]

# Parameters of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_MMAP_MAX = -4

_DEFAULT_MMAP_MAX = 65_536
_LARGE = 32 * 2**20  # what glibc's dynamic thresholds become in a process that has freed large blocks


@contextlib.contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Keep freed memory inside the block, and return it to the kernel afterwards; do nothing without glibc."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        yield
        return
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        library.mallopt(_MMAP_MAX, _DEFAULT_MMAP_MAX)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, 2 * _LARGE)
        library.malloc_trim(0)
