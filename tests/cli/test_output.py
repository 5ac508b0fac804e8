"""Results go to stdout and everything else to stderr, literally."""

from __future__ import annotations

import json
import math

import pytest

from siesta.cli import output


def test_json_documents_and_lines_go_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"label": "[red]"})
    output.print_json_line([1, None])
    captured = capsys.readouterr()
    assert captured.out == '{\n  "label": "[red]"\n}\n[1, null]\n' and captured.err == ""


@pytest.mark.parametrize("function", [output.print_json, output.print_json_line])
def test_a_number_that_json_does_not_have_is_refused(function: type) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        function(math.nan)


def test_a_result_is_a_sentence_or_its_values_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_result("Renamed '[b]' to ':bird:'.", as_json=False, label="[b]")
    assert capsys.readouterr().out == "Renamed '[b]' to ':bird:'.\n"
    output.print_result("Renamed.", as_json=True, label="[b]")
    assert json.loads(capsys.readouterr().out) == {"label": "[b]"}


def test_control_characters_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    output.console.print("\x1b[31mred\x07\x9b.png\n\u200dfünf", soft_wrap=True)
    assert capsys.readouterr().out == "\\x1b[31mred\\x07\\x9b.png\n\u200dfünf\n"


@pytest.mark.parametrize("make", [output.image_progress, output.sleep_progress, output.experiment_progress])
def test_progress_bars_go_to_stderr(make: type, capsys: pytest.CaptureFixture[str]) -> None:
    with make() as bar:
        bar.update(bar.add_task("reading", total=4, text="half of it"), completed=2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "2/4" in captured.err or "50 %  half of it" in captured.err
