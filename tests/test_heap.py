"""Freed memory is kept inside the block and given back after it."""

from __future__ import annotations

import ctypes
import resource
import sys

import pytest
import torch

from siesta.heap import freed_memory_kept

SIZES = (40, 50, 60, 45)  # megabytes; glibc never keeps a piece as large by itself
glibc = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="there is no glibc here"
)


def pages_fetched() -> int:
    """Pages that the kernel has to give for a few large tensors at once."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.ones(size * 2**18) for size in SIZES]
    del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@glibc
@pytest.mark.slow  # it hangs on how the kernel gives pages, which is not ours
def test_large_pieces_are_fetched_once_inside_and_each_time_outside() -> None:
    outside = pages_fetched()
    with freed_memory_kept():
        pages_fetched()
        inside = pages_fetched()
    assert inside < outside / 2
    assert pages_fetched() > outside / 2, "given back"


@glibc
def test_an_exception_ends_it_too() -> None:
    with pytest.raises(KeyboardInterrupt), freed_memory_kept():
        pages_fetched()
        raise KeyboardInterrupt
    assert pages_fetched() > 10


def test_without_glibc_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    with freed_memory_kept():
        assert torch.ones(3).sum() == 3
