"""`siesta sleep` and the commands around it."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

from siesta.policies import explain_policies
from siesta.sleep.augment import explain_augmentations
from siesta.sleep.job import SleepJob
from tests.cli.running import assert_refused, interrupt, result_of, run
from tests.conftest import MakePictures


def test_a_sleep_reports_its_budget_and_settings(taught_copy: Path) -> None:
    report = result_of("sleep", taught_copy, "--updates", "12", "--batch-size", "4", "--seed", "3")
    assert (report["generation"], report["updates"], report["classes"], report["new_classes"]) == (1, 12, 6, 6)
    assert report["settings"]["augment"] is None and report["settings"]["seed"] == 3
    assert not report["interrupted"]
    done = run("sleep", taught_copy, "--seconds", "0.3", "--batch-size", "2")
    assert done.returncode == 0
    assert "Generation 2 is in use" in done.stdout.replace("\n", " ")


def test_a_sleep_uses_the_given_policy_and_augmentation(taught_copy: Path) -> None:
    options = ["--updates", "6", "--batch-size", "4", "--policy", "grasp", "--augment", "mixup_cutmix"]
    report = result_of("sleep", taught_copy, *options)
    assert report["updates"] == 6 and report["embedded"] > 0
    assert (report["settings"]["policy"], report["settings"]["augment"]) == ("grasp", "mixup_cutmix")


def test_a_folder_judges_a_sleep(taught_copy: Path, tmp_path: Path, make_pictures: MakePictures) -> None:
    labels = [entry["label"] for entry in result_of("info", taught_copy)["classes"] if "/" not in entry["label"]]
    folder = make_pictures(tmp_path / "judge", labels, each=2)
    report = result_of("sleep", taught_copy, "--updates", "8", "--batch-size", "4", "--judge", folder)
    assert (report["judge"], report["held_out"], report["optimistic"]) == ("judge", 2 * len(labels), True)
    assert "95 % interval" in run("generations", taught_copy).stdout
    assert "95 % interval" in run("info", taught_copy).stdout


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("is not a folder", ["--updates", "5", "--judge", "nowhere"]),
        ("at most one", ["--updates", "5", "--minutes", "1"]),
        ("25:99.*06:30", ["--until", "25:99"]),
        ("above zero", ["--updates", "-5"]),
        ("above zero", ["--seconds", "0"]),
        ("above zero", ["--minutes", "inf"]),
        ("no policy 'wild'.*balanced_uniform", ["--updates", "5", "--policy", "wild"]),
        ("no augmentation 'blur'.*mixup_cutmix", ["--updates", "5", "--augment", "blur"]),
        ("batch", ["--updates", "5", "--batch-size", "0"]),
        ("rate", ["--updates", "5", "--lr", "-1"]),
        ("seed", ["--updates", "5", "--seed", "-1"]),
        ("--daily", ["--updates", "5", "--daily", "02:00-05:00"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_sleep_refuses_bad_options(taught_learner: Path, pattern: str, options: list[str]) -> None:
    files = sorted(taught_learner.rglob("*.safetensors"))
    assert_refused(3, pattern, "sleep", taught_learner, *options)
    assert sorted(taught_learner.rglob("*.safetensors")) == files


def test_a_learner_without_samples_cannot_sleep(empty_learner: Path) -> None:
    assert_refused(3, "first", "sleep", empty_learner, "--updates", "5")


def test_a_sleep_without_a_budget_ends_by_itself_and_states_its_ceiling(taught_copy: Path) -> None:
    first = result_of("info", taught_copy)["sleep_need"]
    assert first["due"] and first["new_classes"] == 6 and first["most_seconds"] is None
    assert "sleep: due: 6 new classes and" in run("info", taught_copy).stdout
    done = run("sleep", taught_copy, "--batch-size", "2")
    assert done.returncode == 0
    assert "samples 8 passes" in " ".join(done.stderr.split()), "with few held-out samples"
    assert "It made a fixed number of passes" in " ".join(done.stdout.split())
    after = result_of("info", taught_copy)
    assert [(sleep["ended"], sleep["rounds"], sleep["interrupted"]) for sleep in after["sleeps"]] == [
        ("passes", 1, False)
    ]
    need = after["sleep_need"]
    assert not need["due"] and need["new_classes"] == need["new_samples"] == 0
    assert 0 < need["least_seconds"] <= need["most_seconds"]


def test_ctrl_c_ends_a_sleep_early_and_keeps_its_result(taught_copy: Path, image: Path) -> None:
    code, out, _ = interrupt(
        "sleep", taught_copy, "--updates", "1000000", "--json", when=lambda text: "updates," in text
    )
    assert code == 130
    report = json.loads(out)
    assert report["interrupted"]
    assert 0 < report["updates"] < 1_000_000
    info = result_of("info", taught_copy)
    assert [(sleep["generation"], sleep["interrupted"]) for sleep in info["sleeps"]] == [(1, True)]
    assert result_of("sleep", taught_copy, "--updates", "8", "--batch-size", "4")["generation"] == 2
    assert len(result_of("predict", taught_copy, image)) == 1


def test_a_sleep_can_wait_for_a_time_without_teaching(taught_copy: Path) -> None:
    report = result_of("sleep", taught_copy, "--updates", "8", "--batch-size", "4", "--when", "idle:1s")
    assert (report["generation"], report["updates"], report["interrupted"]) == (1, 8, False)


def test_a_daily_sleep_lasts_until_it_is_woken(taught_copy: Path) -> None:
    now = datetime.now()
    window = f"{now - timedelta(minutes=2):%H:%M}-{now + timedelta(hours=2):%H:%M}"
    job = SleepJob(taught_copy)

    def wake() -> None:
        while job.status().progress is None:
            time.sleep(0.05)
        job.wake()

    thread = Thread(target=wake, daemon=True)
    thread.start()
    report = result_of("sleep", taught_copy, "--daily", window, "--batch-size", "4")
    thread.join(60)
    assert report["interrupted"] and report["generation"] == 1 and job.status().state == "done"


def test_a_background_sleep_is_paused_resumed_and_woken_by_commands(taught_copy: Path) -> None:
    started = result_of("sleep", taught_copy, "--updates", "1000000", "--background")
    assert started["state"] == "asleep" and result_of("sleep-status", taught_copy)["pid"] == started["pid"]
    assert result_of("sleep-pause", taught_copy) == {"wished": "pause"}
    assert result_of("sleep-resume", taught_copy) == {"wished": "resume"}
    woken = result_of("wake", taught_copy)
    assert woken["state"] == "done" and woken["report"]["interrupted"] and woken["failure"] is None


def test_generations_are_listed_and_rolled_back_to(taught_copy: Path) -> None:
    result_of("sleep", taught_copy, "--updates", "4", "--batch-size", "2")
    assert [(entry["number"], entry["in_use"]) for entry in result_of("generations", taught_copy)] == [
        (0, False),
        (1, True),
    ]
    assert result_of("rollback", taught_copy, "0") == {"generation": 0}
    first, second = run("generations", taught_copy).stdout.splitlines()
    assert first.startswith("*    0  ") and second.startswith("     1  ") and "4 updates" in second


def test_without_a_sleep_its_commands_say_so(taught_copy: Path, tmp_path: Path) -> None:
    assert result_of("sleep-status", taught_copy)["state"] == "never"
    for command in ("sleep-pause", "sleep-resume", "wake"):
        assert_refused(3, "sleep|asleep", command, taught_copy)
    assert_refused(3, "there is no learner at", "sleep-status", tmp_path / "nowhere")


def test_help_explains_policies_and_augmentations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    shown = re.sub(r"[\s│]+", " ", run("sleep", "--help").stdout)
    assert explain_policies() in shown and explain_augmentations() in shown
