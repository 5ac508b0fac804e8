"""The package as a whole: what it exports, and that help comes without torch."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import siesta

MODULES = [module.name for module in pkgutil.walk_packages(siesta.__path__, "siesta.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_exports_what_it_says(name: str) -> None:
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", []):
        assert hasattr(module, exported), f"{name}.__all__ names {exported}"


def test_the_package_is_lazy() -> None:
    script = "import siesta, sys; assert 'torch' not in sys.modules; siesta.Siesta; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = siesta.nothing
