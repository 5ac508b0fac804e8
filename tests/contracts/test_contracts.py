"""The package exports what its modules define."""

from __future__ import annotations

import importlib
import pkgutil

from siesta import contracts


def test_every_name_of_every_module_is_exported() -> None:
    modules = [
        importlib.import_module(f"siesta.contracts.{part.name}") for part in pkgutil.iter_modules(contracts.__path__)
    ]
    names = {name: getattr(module, name) for module in modules for name in module.__all__}
    assert sorted(names) == sorted(contracts.__all__)
    assert all(getattr(contracts, name) is value for name, value in names.items())
