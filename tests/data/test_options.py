"""Options are checked against the signature of their function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from siesta.data.options import check_options, option_names
from siesta.errors import BadInput


def function(
    _data: object, *, count: int, share: float = 0.5, on: bool = False, name: str = "", file: Path | None = None
) -> None: ...


def test_values_are_converted_to_the_types_of_the_function() -> None:
    given = {"count": 3, "share": 1, "on": True, "name": "x", "file": "a/b"}
    taken = check_options("order x", function, given)
    assert taken == {"count": 3, "share": 1.0, "on": True, "name": "x", "file": Path("a/b")}
    assert type(taken["share"]) is float
    assert option_names(function) == ("count", "share", "on", "name", "file")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 1, "size": 2}, "order x has no option 'size': it has count, share, on, name, file"),
        ({}, "order x needs the option 'count'"),
        ({"count": "1"}, "'count' of order x must be a whole number, not '1'"),
        ({"count": True}, "a whole number, not True"),
        ({"count": 1.0}, "a whole number, not 1.0"),
        ({"count": 1, "share": "half"}, "a number, not 'half'"),
        ({"count": 1, "share": float("nan")}, "a finite number, not nan"),
        ({"count": 1, "on": 1}, "true or false, not 1"),
        ({"count": 1, "file": 3}, "the path of a file, not 3"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_options("order x", function, options)
    assert message in str(caught.value)
