"""Tests of `siesta.vectors`."""
