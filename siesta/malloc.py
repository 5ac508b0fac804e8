"""malloc settings: freed memory is kept in the process, or returned to the kernel at once.

A training step frees hundreds of megabytes and allocates them again in the next step. By default glibc returns large
blocks to the kernel and gets them back page by page, each page zeroed. On networks with wide feature maps that takes
a fifth of a step. An inference engine that is loaded frees several copies of the weights that it never needs again,
and by default most of that stays in the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator, Mapping

__all__ = ["keep_freed_memory", "return_freed_memory"]

# Parameters of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_MMAP_MAX = -4

_DEFAULT_MMAP_MAX = 65_536
_SMALL = 64 * 2**10
_LARGE = 32 * 2**20  # what glibc's dynamic thresholds become in a process that has freed large blocks


@contextlib.contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Keep freed memory inside the block, and return it to the kernel afterwards; do nothing without glibc."""
    with _settings({_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}):
        yield


@contextlib.contextmanager
def return_freed_memory() -> Iterator[None]:
    """Return freed blocks to the kernel inside the block and after it; do nothing without glibc."""
    with _settings({_MMAP_THRESHOLD: _SMALL}):
        yield


@contextlib.contextmanager
def _settings(parameters: Mapping[int, int]) -> Iterator[None]:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        yield
        return
    for parameter, value in parameters.items():
        library.mallopt(parameter, value)
    try:
        yield
    finally:
        library.mallopt(_MMAP_MAX, _DEFAULT_MMAP_MAX)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, 2 * _LARGE)
        library.malloc_trim(0)
