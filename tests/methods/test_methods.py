"""The registry of methods: presets, codecs and settings classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from siesta.methods import METHODS, MethodSettings, MethodSpec
from siesta.methods.ncm import NCM
from siesta.methods.siesta import SiestaMethod, SiestaSettings


@pytest.mark.parametrize("name", METHODS)
def test_the_preset_is_valid_and_can_be_overridden(name: str) -> None:
    spec = METHODS[name]
    assert isinstance(spec.settings({}), spec.settings_class)
    for key, value in spec.preset.items():
        assert getattr(spec.settings({}), key) == value
        default = spec.settings_class.model_fields[key].default
        assert default != value and getattr(spec.settings({key: default}), key) == default


def test_codec_and_settings_are_those_of_the_class() -> None:
    spec = MethodSpec(SiestaMethod, {"updates": 7})
    assert spec.codec == "opq"
    assert spec.settings({"batch_size": 2}) == SiestaSettings(updates=7, batch_size=2)
    with pytest.raises(ValidationError, match="epochs"):
        spec.settings({"epochs": 1})


@pytest.mark.parametrize("name", METHODS)
def test_every_entry_is_what_other_packages_must_give(name: str) -> None:
    assert METHODS.problem(METHODS[name]) is None


class WithoutCodec:
    """Has everything that a method needs but a codec."""

    Settings = MethodSettings
    learn_many = sleep = predict_many = resources = save = close = print


class WithPlainSettings(NCM):
    """Has settings that cannot be validated."""

    Settings: ClassVar[Any] = dict


class WithoutSeed(NCM):
    """Takes no seed."""

    def __init__(self, folder: Path, settings: MethodSettings) -> None:
        super().__init__(folder, settings, 0)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (NCM, "is of type type, not a MethodSpec"),
        (WithoutCodec, "does not implement Method: it has no codec"),
        (WithPlainSettings, "has <class 'dict'> as its Settings, not a subclass of MethodSettings"),
        (WithoutSeed, "cannot be called with 3 positional arguments"),
    ],
)
def test_what_is_wrong_with_a_method_of_another_package_is_said(part: Any, message: str) -> None:
    assert METHODS.problem(part if part is NCM else MethodSpec(part)) == message


def test_methods_that_work_on_images_require_the_raw_codec() -> None:
    on_images = {name for name, spec in METHODS.own.items() if spec.codec == "raw" and not spec.collects}
    assert on_images == {"siesta_er", "er", "offline_whole"}
    collecting = {name for name, spec in METHODS.own.items() if spec.collects}
    assert len(collecting) == 11 and all(METHODS[name].codec == "raw" for name in collecting)


@pytest.mark.parametrize("name", METHODS.own)
def test_the_documentation_names_the_method_and_its_settings(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text("utf-8")
    assert f"`{name}`" in page or f"## {name}" in page or f", {name}\n" in page
    for key in METHODS[name].settings_class.model_fields:
        assert f"`{key}" in page
