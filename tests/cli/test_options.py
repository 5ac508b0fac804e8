"""Options that several commands share are the same in all of them."""

from __future__ import annotations

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from siesta.cli.app import app
from siesta.cli.options import parse_part_option, parse_part_options

GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
PARAMETERS = {
    name: {option.name: option for option in command.params if isinstance(option, TyperOption)}
    for name, command in GROUP.commands.items()
}


def test_new_and_base_create_learners_with_the_same_defaults() -> None:
    for name in ("backbone", "cut", "weights", "codec_option", "memory", "image_size", "space"):
        new, base = PARAMETERS["new"][name], PARAMETERS["base"][name]
        assert (new.default, new.opts, new.help) == (base.default, base.opts, base.help)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("codebooks=32", ("codebooks", 32)),
        ("weight=0.5", ("weight", 0.5)),
        ("kind=a=b", ("kind", "a=b")),
        ("on=true", ("on", True)),
        ("name=", ("name", "")),
    ],
)
def test_options_of_parts_are_names_with_values(text: str, option: tuple[str, object]) -> None:
    assert parse_part_option(text) == option
    assert parse_part_options([text, "more=1"]) == {option[0]: option[1], "more": 1}


def test_json_is_a_flag_wherever_it_is_offered() -> None:
    offering = {name: options["as_json"] for name, options in PARAMETERS.items() if "as_json" in options}
    assert {"new", "learn", "sleep", "predict", "eval", "info", "check", "demo"} <= offering.keys()
    assert all(option.opts == ["--json"] and option.is_flag for option in offering.values())
