"""The service of a sleeper: how it starts."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from siesta import Siesta
from siesta.errors import BadInput
from siesta.service.options import ServiceOptions
from siesta.service.sleeper import serve_sleeper
from siesta.service.sleeper_client import SleeperClient
from siesta.service.tokens import TokenStore
from tests.cli.running import assert_refused, result_of
from tests.service.server_process import SleeperProcess


def test_it_shows_a_token_once_that_its_endpoints_need(tmp_path: Path) -> None:
    sleeper = SleeperProcess(tmp_path / "packs", "--host", "0.0.0.0")
    try:
        found = re.search(r"A token to send packs with, shown this once: (\S+)", sleeper.output())
        assert found is not None
        assert TokenStore(sleeper.path).scopes(found[1]) == {"sleep"}
        with SleeperClient(sleeper.url, found[1]) as client:
            assert not client.has_bottom("0" * 64)
        assert "unencrypted" in sleeper.output()
        assert (sleeper.path / "tokens.json").stat().st_mode & 0o777 == 0o600
    finally:
        assert sleeper.stop(signal.SIGINT) == 0
    assert result_of("token", "new", sleeper.path, "--scope", "sleep")["scope"] == "sleep"


def test_a_learner_is_no_folder_for_packs(tmp_path: Path) -> None:
    Siesta.create(tmp_path / "a.siesta", image_size=32).close()
    with pytest.raises(BadInput, match="is a learner: give another folder"):
        serve_sleeper(tmp_path / "a.siesta", ServiceOptions(), 1, 1, 0, lambda _: None)
    assert_refused(3, "there is no learner", "token", "new", tmp_path / "nothing", "--scope", "sleep")
