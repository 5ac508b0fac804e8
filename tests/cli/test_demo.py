"""`siesta demo`, with the tour replaced by two ready steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from siesta.cli import tour
from siesta.cli.tour import TourStep
from tests.cli.running import assert_refused, interrupt, result_of, run

STEPS = [
    TourStep(("3", "7"), taught=100, stored_bytes=12_345, awake_only=90.0, before_sleep=90.0, after_sleep=95.5),
    TourStep(("3", "7", "1", "0"), taught=200, stored_bytes=24_690, awake_only=70.0, before_sleep=80.0, after_sleep=91),
]


@pytest.fixture(autouse=True)
def short_tour(monkeypatch: pytest.MonkeyPatch) -> None:
    def ready_steps(seed: int, notify: Callable[[str, float], None]) -> Iterator[TourStep]:
        notify(f"awake, seed {seed}", 0.5)
        yield from STEPS

    monkeypatch.setattr(tour, "tour", ready_steps)


def test_it_prints_a_table_and_draws_the_curve(tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path / "curve.png")
    assert done.returncode == 0
    assert "25 KB" in done.stdout and "+5.5" in done.stdout and "+11.0" in done.stdout
    assert "4 digits known: 80.0 % awake -> 91.0 % after sleep (never sleeping: 70.0 %)" in done.stderr
    with Image.open(tmp_path / "curve.png") as curve:
        assert curve.format == "PNG"


def test_it_prints_each_step_as_json(tmp_path: Path) -> None:
    steps = result_of("demo", "--out", tmp_path / "curve.png")
    assert [step["classes"] for step in steps] == [["3", "7"], ["3", "7", "1", "0"]]
    assert [step["after_sleep"] for step in steps] == [95.5, 91]


def test_ctrl_c_ends_it_with_one_sentence_and_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted_tour(seed: int, notify: Callable[[str, float], None]) -> Iterator[TourStep]:
        yield STEPS[0]
        raise KeyboardInterrupt

    monkeypatch.setattr(tour, "tour", interrupted_tour)
    assert_refused(130, "interrupted; no change was left incomplete", "demo", "--out", tmp_path / "curve.png")
    assert not (tmp_path / "curve.png").exists()


@pytest.mark.slow
def test_ctrl_c_in_a_sleep_ends_the_command(tmp_path: Path) -> None:
    code, out, shown = interrupt("demo", "--out", tmp_path / "curve.png", when=lambda text: "asleep" in text)
    assert (code, out) == (130, "")
    assert "2 digits known" not in shown and shown.count("error: interrupted") == 1
    assert not (tmp_path / "curve.png").exists()


def test_it_refuses_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    assert_refused(3, "nowhere does not exist: create it first", "demo", "--out", tmp_path / "nowhere" / "curve.png")
