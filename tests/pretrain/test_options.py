"""Options of methods are checked by type and bounds."""

from __future__ import annotations

import pytest

from siesta.data.options import option_names
from siesta.errors import BadInput
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.options import OPTION_BOUNDS, check_method_options
from tests.pretrain.toys import quick_options


def test_every_numeric_option_has_bounds() -> None:
    for name, method in PRETRAINERS.own.items():
        assert set(option_names(method)) - {"teacher", "teacher_weights", "classes"} <= set(OPTION_BOUNDS), name


@pytest.mark.parametrize("name", PRETRAINERS)
def test_valid_options_are_returned_with_the_types_of_the_method(name: str) -> None:
    assert check_method_options(name, PRETRAINERS[name], quick_options(name)) == quick_options(name)


def test_whole_numbers_become_floats_where_the_method_takes_floats() -> None:
    checked = check_method_options("swav", PRETRAINERS["swav"], {"epsilon": 1})
    assert checked == {"epsilon": 1.0} and isinstance(checked["epsilon"], float)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colour": 3}, "method swav has no option 'colour': it has prototypes"),
        ({"prototypes": 1}, r"option 'prototypes' of method swav must be in 2\.\.1e\+06, not 1"),
        ({"epsilon": 0.0}, r"option 'epsilon' of method swav must be in 0\.001\.\.100, not 0"),
        ({"prototypes": "many"}, "option 'prototypes' of method swav must be a whole number, not 'many'"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        check_method_options("swav", PRETRAINERS["swav"], options)


def test_the_number_of_classes_is_not_an_option() -> None:
    with pytest.raises(BadInput, match="are the folders in --data: remove this option"):
        check_method_options("supervised", PRETRAINERS["supervised"], {"classes": 3})
