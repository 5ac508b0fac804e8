"""Result rows are validated: what 0.1 wrote is accepted, anything else named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from siesta.contracts import Resources
from siesta.errors import BadInput, Damaged
from siesta.experiment.result_row import SCHEMA, validate_new_row, validate_resources, validate_row
from siesta.experiment.run_folder import read_rows
from tests.experiment.written_runs import write_run

RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.fixture
def row(tmp_path: Path) -> dict[str, Any]:
    return read_rows(write_run(tmp_path))[0]


def test_recorded_rows_are_valid() -> None:
    files = sorted(RESULTS.rglob("rows.jsonl"))
    assert files
    for file in files:
        for number, row in enumerate(read_rows(file.parent), start=1):
            validate_row(file, number, row)


def test_rows_of_the_first_versions_need_neither_data_nor_command(row: dict[str, Any]) -> None:
    del row["data"], row["command"]
    validate_row(Path("rows.jsonl"), 1, row)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"top1": 100.1}, r"line 4 of .*rows\.jsonl is not a result row \(top1: input should be less than"),
        ({"seed": -1}, r"\(seed: "),
        ({"phase": "during"}, r"\(phase: "),
        ({"flops": {"wake": 1.0, "sleep": 1.0}}, r"\(flops\.inference: field required\)"),
        ({"bytes": {"codes": -1}}, r"\(bytes\.codes: "),
        ({"bytes": {"codes": 1}}, r"\(bytes\.images: field required\)"),
        ({"schema": SCHEMA + 1}, f"rows of schema {SCHEMA + 1}, this version reads {SCHEMA}"),
        ({"schema": None}, "line 4 of .* is not a result row: "),
    ],
)
def test_an_invalid_value_is_named(row: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(Damaged, match=message):
        validate_row(Path("run/rows.jsonl"), 4, row | change)


def test_a_new_row_is_refused_by_the_name_of_its_method(row: dict[str, Any]) -> None:
    validate_new_row(row)
    with pytest.raises(BadInput, match=r"method 'siesta' gives an invalid result row \(top1: .*\): correct that value"):
        validate_new_row(row | {"top1": -1.0})


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": (1, 2)}, object()])
def test_a_setting_that_json_cannot_hold_is_refused(row: dict[str, Any], value: object) -> None:
    with pytest.raises(BadInput, match=r"method 'siesta' gives an invalid result row \(settings\.extra"):
        validate_new_row(row | {"settings": {"extra": value}})


@pytest.fixture
def resources(row: dict[str, Any]) -> Resources:
    return Resources(*(row[name] for name in ("updates", "parameters", "bytes", "flops", "seconds")))


def test_valid_resources_may_have_further_parts_and_any_mapping(resources: Resources) -> None:
    valid = replace(resources, bytes=MappingProxyType({**resources.bytes, "second network": 4}))
    assert validate_resources("siesta", valid) is valid


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bytes": {"codes": 1}}, r"method 'siesta' reports invalid resources \(bytes\.images: field required\)"),
        ({"bytes": None}, r"\(bytes: "),
        ({"updates": -1}, r"\(updates: "),
        ({"updates": np.int64(3)}, r"\(updates: "),
        ({"parameters": 0}, r"\(parameters: "),
        ({"flops": {"wake": float("nan"), "sleep": 1.0, "inference": 1.0}}, r"\(flops\.wake: .*finite"),
        ({"seconds": {"wake": "1", "sleep": 1.0, "inference": 1.0}}, r"\(seconds\.wake: "),
    ],
)
def test_invalid_resources_name_the_method_and_the_field(
    resources: Resources, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        validate_resources("siesta", replace(resources, **change))


def test_a_further_part_of_the_bytes_must_be_a_number_of_bytes(resources: Resources) -> None:
    parts: dict[str, Any] = {**resources.bytes, "extra": 1.5}
    with pytest.raises(BadInput, match=r"\(bytes\.extra: "):
        validate_resources("siesta", replace(resources, bytes=parts))


def test_resources_of_another_type_are_refused() -> None:
    with pytest.raises(BadInput, match=r"method 'siesta' returns dict as its resources: return contracts\.Resources"):
        validate_resources("siesta", {"updates": 1})
