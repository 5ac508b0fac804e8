"""Every error has the exit code that the documentation promises."""

from __future__ import annotations

import pytest

from siesta import errors


@pytest.mark.parametrize(
    ("name", "exit_code"), [("SiestaError", 1), ("BadInput", 3), ("Damaged", 4), ("Busy", 5), ("DiskRefused", 7)]
)
def test_exit_codes(name: str, exit_code: int) -> None:
    error = getattr(errors, name)("message")
    assert isinstance(error, errors.SiestaError)
    assert (error.exit_code, error.safe, str(error)) == (exit_code, None, "message")


def test_every_error_is_listed() -> None:
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert classes == set(errors.__all__)
