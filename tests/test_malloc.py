"""Freed memory is kept inside the block and returned to the kernel after it."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

import pytest
import torch

from siesta.malloc import keep_freed_memory, return_freed_memory

SIZES = (40, 50, 60, 45)  # megabytes; glibc never keeps blocks of this size by itself
glibc = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="there is no glibc here"
)


def page_faults() -> int:
    """Return the number of page faults that a few large tensors cause."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.ones(size * 2**18) for size in SIZES]
    del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident_bytes() -> int:
    """Return the bytes of memory that this process occupies."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@glibc
@pytest.mark.slow  # depends on how the kernel hands out pages
def test_large_blocks_cause_page_faults_once_inside_and_every_time_outside() -> None:
    outside = page_faults()
    with keep_freed_memory():
        page_faults()
        inside = page_faults()
    assert inside < outside / 2
    assert page_faults() > outside / 2, "returned to the kernel"


@glibc
def test_an_exception_ends_the_block_too() -> None:
    with pytest.raises(KeyboardInterrupt), keep_freed_memory():
        page_faults()
        raise KeyboardInterrupt
    assert page_faults() > 10


def test_without_glibc_the_block_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    with keep_freed_memory():
        assert torch.ones(3).sum() == 3


@glibc
@pytest.mark.slow  # depends on how the kernel hands out pages
def test_blocks_that_are_freed_inside_are_returned() -> None:
    with return_freed_memory():
        blocks = [bytearray(range(256)) * 4096 for _ in range(64)]
        last = blocks.pop()  # keeps the end of the heap in use
        taken = resident_bytes()
        blocks.clear()
    assert taken - resident_bytes() > 50 * 2**20
    assert len(last) == 2**20
