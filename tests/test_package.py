"""The package as a whole, across all modules: its public names, and what importing it loads."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys

import pytest

import siesta

MODULES = [module.name for module in pkgutil.walk_packages(siesta.__path__, "siesta.")]


def heavy_modules_after(statement: str) -> set[str]:
    """Return which heavy packages a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    loaded = json.loads(done.stderr.splitlines()[-1])
    return {"torch", "numpy", "onnxruntime", "PIL", "faiss", "siesta.learner"}.intersection(loaded)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_exports_the_names_in_its_all(name: str) -> None:
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", []):
        assert hasattr(module, exported), f"{name}.__all__ names {exported}"


@pytest.mark.parametrize("name", siesta.__all__)
def test_public_names_can_be_imported_and_listed(name: str) -> None:
    assert getattr(siesta, name) is not None
    assert name in dir(siesta)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = siesta.nothing


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert heavy_modules_after("import siesta") == set()
    assert heavy_modules_after("import siesta; siesta.BadInput") == set()
    assert "torch" not in heavy_modules_after("import siesta; siesta.Policy")


def test_help_loads_no_torch() -> None:
    run_help = (
        "import sys\nfrom siesta.cli import main\nsys.argv = ['siesta', '--help']\ntry: main()\nexcept SystemExit: pass"
    )
    assert heavy_modules_after(run_help) <= {"numpy"}


def test_the_learner_is_loaded_on_first_use_without_torch() -> None:
    loaded = heavy_modules_after("import siesta; siesta.Siesta")
    assert "siesta.learner" in loaded and not {"torch", "faiss"} & loaded


def test_onnx_runtime_reports_nothing_unless_the_user_allows_it() -> None:
    script = "import os, siesta.engines; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    for given, expected in ({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0"):
        inherited = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
        environment = {**inherited, **given, "HOME": "/nonexistent"}
        done = subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment
        )
        assert done.stdout.strip() == expected
        assert given or "telemetry" not in done.stderr
