"""Tables of the rows that the studies of heads and of variants of sleep write."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from scripts import measurement_tables, study_tables
from scripts.measurement_tables import Row

CONFIG = {"dataset": "cub200", "image_size": 112, "steps": 2, "updates": 96, "seed": 0}


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of studies that the tables are made from."""
    for module in (measurement_tables, study_tables):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "results" / "studies").mkdir(parents=True)
    return tmp_path / "results" / "studies"


def _write(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    file.write_text(
        "".join(json.dumps({"config": CONFIG, "date": "2026-01-02T03", **row}) + "\n" for row in rows), "utf-8"
    )


def _variant(variant: str, top1: float, **others: Any) -> list[Row]:
    return [
        {
            "variant": variant,
            "stage": f"{number}-{state}",
            **{
                f"{head}_{measure}": top1 + number
                for head in ("cosine", "discriminant")
                for measure in ("top1", "top5")
            },
            **others,
        }
        for number in range(2)
        for state in ("awake", "slept")
    ]


def test_variants_of_sleep_have_a_row_each_and_a_table_for_each_data_set(studies: Path) -> None:
    other = {"config": {**CONFIG, "dataset": "cifar100"}}
    _write(
        studies / "sleep_variants.jsonl",
        [*_variant("plain", 50.0), *_variant("plain", 20.0, **other), *_variant("averaged", 60.0)],
    )
    cifar, cub = study_tables.sleep_variants().split("\n\n| variant")
    assert "| plain | 20.0 -> 20.0 | 21.0 -> 21.0 | 21.0 | 21.0 / 21.0 |" in cifar and "cifar100, 112 px" in cifar
    assert "| plain | 50.0 -> 50.0 |" in cub and "| averaged | 60.0 -> 60.0 |" in cub and "seed 0" in cub


def test_old_classes_are_compared_before_and_after_each_sleep(studies: Path) -> None:
    rows = [*_variant("default", 50.0), *_variant("plain", 70.0)]
    for row, old in zip(rows[2:4], (40.0, 41.5), strict=True):
        row["discriminant_old_top1"] = old
    _write(studies / "sleep_variants.jsonl", rows)
    assert "| 2 | 40.0 | 41.5 | +1.5 |" in study_tables.between_sleeps()


def test_of_many_steps_the_first_and_the_last_are_shown(studies: Path) -> None:
    rows = [
        {**row, "stage": f"{number}-{state}", "discriminant_top1": 50.0 + number}
        for number in range(6)
        for state, row in zip(("awake", "slept"), _variant("plain", 50.0)[:2], strict=True)
    ]
    _write(studies / "sleep_variants.jsonl", [{**row, "config": {**CONFIG, "steps": 6}} for row in rows])
    assert "| plain | 50.0 -> 50.0 | 55.0 -> 55.0 |" in study_tables.sleep_variants()


def test_heads_are_compared_at_the_first_and_the_last_step(studies: Path) -> None:
    stages = [
        ("0-awake", "all"),
        ("0-slept", "all"),
        ("1-awake", "all"),
        ("1-slept", "all"),
        ("1-slept", "long-tailed"),
    ]
    rows = [
        {"head": "lda", "stage": stage, "samples": samples, "top1": 40.0 + number, "top5": 90.0}
        for number, (stage, samples) in enumerate(stages)
    ]
    rows[2] |= {"old_top1": 70.0, "new_top1": 30.0}
    rows[3] |= {"auroc_softmax": 71.0, "auroc_relative_mahalanobis": 81.0}
    _write(studies / "heads.jsonl", rows)
    expected = "| lda | 40.0 / 90.0 | 41.0 / 90.0 | 42.0 / 90.0 | 43.0 / 90.0 | 44.0 / 90.0 | - | - | - | 70.0 / 30.0 |"
    assert f"{expected} 71.0 / 81.0 |" in study_tables.heads()


def test_missing_rows_name_the_command_that_writes_them(studies: Path) -> None:
    with pytest.raises(SystemExit, match=r"sleep_variants\.jsonl is missing: run python -m scripts\.sleep_variants"):
        study_tables.sleep_variants()


def test_what_rejections_change_is_shown_before_and_after(studies: Path) -> None:
    with pytest.raises(SystemExit, match=r"run python -m scripts\.reject_trials"):
        study_tables.reject()
    pair = {"near_same_label": [50.0, 1.0], "near_right": [20.0, 40.0]}
    others = {"others_right": [100.0, 99.5], "others_score": [70.0, 69.0]}
    config = {"dataset": "cub200", "classes": 60, "updates": 96, "seed": 0}
    row = {"head": "cosine", "stage": "slept", "rejected": 200, **pair, **others, "config": config}
    _write(studies / "reject.jsonl", [row])
    text = study_tables.reject()
    assert (
        "| cosine, slept | 200 | 50.0 -> 1.0 % | 20.0 -> 40.0 % | 100.0 -> 99.5 % | 70.0 -> 69.0 % |"
        in text.splitlines()
    )
    assert "60 classes of cub200, 15 images each, slept: 96 updates" in text


def test_tops_over_vectors_have_a_line_for_each_setting_with_means_over_seeds(studies: Path) -> None:
    rows = []
    for seed, layers in ((0, 1), (1, 1), (0, 2), (1, 2)):
        accuracy = {f"{when}_{part}": 50.0 + 10 * seed for when in ("awake", "slept") for part in ("val", "test")}
        config = {"dataset": "digits", "head": "discriminant", "layers": layers, "lr": 0.2, "seed": seed}
        rows.append({**accuracy, "learned": 1000, "tested": 300, "date": "2026-11-19T00:00", "config": config})
    (studies / "vector_tops.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = study_tables.vector_tops()
    assert "| digits | discriminant | 1 | 0.2 | 55.0 -> 55.0 | 55.0 -> 55.0 |" in text
    assert "Means of 2 seeds. digits: 1,000 learned and 300 tested." in text
