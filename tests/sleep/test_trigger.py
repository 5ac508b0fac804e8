"""Triggers: an idle time, and a daily window."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.errors import BadInput
from siesta.sleep.trigger import Idle, Window

TIMES = st.integers(0, 24 * 60 - 1).map(lambda minutes: f"{minutes // 60:02}:{minutes % 60:02}")


@pytest.mark.parametrize(("text", "seconds"), [("idle:90s", 90), ("idle:10m", 600), ("idle:2h", 7200)])
def test_an_idle_time_has_a_unit(text: str, seconds: int) -> None:
    assert Idle.parse(text) == Idle(seconds)
    assert Idle.parse(text).message == f"waiting until nothing has changed for {seconds} s"


@pytest.mark.parametrize("text", ["10m", "idle:", "idle:10", "idle:-1m", "idle:1d", "idle:1m "])
def test_other_idle_times_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is not an idle trigger: write it like idle:10m"):
        Idle.parse(text)


def test_the_idle_time_counts_from_the_last_change_of_the_database(tmp_path: Path) -> None:
    now = time.time()
    for name, age in (("store.sqlite", 500.0), ("store.sqlite-wal", 100.0), ("other", 1.0)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (now - age, now - age))
    assert Idle(600).left(tmp_path) == pytest.approx(500, abs=5)
    assert Idle(60).left(tmp_path) < 0


@given(TIMES, TIMES, st.datetimes(datetime(2026, 1, 2), datetime(2026, 12, 30)))
def test_a_window_is_open_from_its_begin_to_its_end_every_day(first: str, last: str, now: datetime) -> None:
    if first == last:
        return
    window = Window.parse(f"{first}-{last}")
    left, end = window.left_at(now), window.end(now)
    begin = now + timedelta(seconds=left)
    assert now < end <= now + timedelta(days=1) and f"{end:%H:%M}" == last
    clock = f"{now:%H:%M}"
    inside = first <= clock < last if first < last else clock >= first or clock < last
    assert (left == 0) == inside
    assert inside or (f"{begin:%H:%M}" == first and left < 24 * 3600)


def test_a_window_waits_for_its_begin() -> None:
    now = datetime.now()
    later = now + timedelta(hours=2)
    window = Window.parse(f"{later:%H:%M}-{later + timedelta(hours=1):%H:%M}")
    assert window.left(Path()) == pytest.approx(2 * 3600, abs=90)
    assert window.message == f"waiting for {later:%H:%M}"


@pytest.mark.parametrize("text", ["02:00", "02:00-25:00", "02:00-03:00-04:00", "2-3", "02:00-02:00"])
def test_other_windows_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is not a daily window"):
        Window.parse(text)
