"""`siesta pack`, `siesta sleep FILE` and `siesta take`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import assert_refused, result_of, run


def test_a_pack_sleeps_and_is_taken_once(taught_copy: Path, tmp_path: Path) -> None:
    file = tmp_path / "night"
    packed = result_of("pack", taught_copy, "--for-sleep", file)
    assert packed["bytes"] == file.stat().st_size
    assert_refused(3, "has not slept yet: run `siesta sleep", "take", taught_copy, file)
    slept = result_of("sleep", file, "--updates", "8", "--batch-size", "4")
    assert slept["generation"] == 1
    assert json.loads(run("sleep-status", file, "--json").stdout)["state"] == "done"
    assert_refused(3, "has slept already", "sleep", file, "--updates", "8")
    assert result_of("take", taught_copy, file) == {"generation": 1, "used": True}
    assert_refused(3, "was brought back to", "take", taught_copy, file)


def test_a_pack_waits_for_nobody(taught_copy: Path, tmp_path: Path) -> None:
    done = run("pack", taught_copy, "--for-sleep", tmp_path / "night", "--no-bottom")
    assert "Run siesta sleep" in done.stdout.replace("\n", " ")
    assert_refused(
        3,
        "sleeps here and once: leave --when, --daily and --sleeper out",
        "sleep",
        tmp_path / "night",
        "--when",
        "idle:1s",
    )
    (tmp_path / "night").write_bytes(b"SIESTApk")
    assert_refused(4, "is damaged or not complete", "take", taught_copy, tmp_path / "night")
