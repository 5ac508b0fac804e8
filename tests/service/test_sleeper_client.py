"""Where a device finds the token for its sleeper; the requests are tested in `test_remote_sleep.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.service.sleeper_client import TOKEN_VARIABLE, sleeper_token


def test_a_token_is_in_a_file_or_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert sleeper_token(None) is None
    monkeypatch.setenv(TOKEN_VARIABLE, "siesta_b")
    (tmp_path / "token").write_text("siesta_a\n")
    assert (sleeper_token(None), sleeper_token(tmp_path / "token")) == ("siesta_b", "siesta_a")
    with pytest.raises(BadInput, match="does not exist"):
        sleeper_token(tmp_path / "nothing" / "token")
