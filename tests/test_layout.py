"""Layout of the project: the tests mirror the package, and files and functions keep their limits of size."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "siesta"
TESTS = ROOT / "tests"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_TOP_LEVEL_MODULES = 10
CROSS_CUTTING = {  # suites about more than one module
    "cli/test_vector_commands.py",
    "codecs/test_added_codec.py",
    "experiment/test_config_hashes.py",
    "faults/test_clients.py",
    "faults/test_faults.py",
    "faults/test_fuzz.py",
    "faults/test_journal.py",
    "faults/test_soak.py",
    "learner/test_export_web.py",
    "learner/test_salvage.py",
    "learner/test_statistics.py",
    "learner/test_vector_learner.py",
    "methods/test_conformance.py",
    "methods/test_kill.py",
    "policies/test_conformance.py",
    "pretrain/test_pretrainers.py",
    "pretrain/test_run_of_0_1.py",
    "registry/test_outside_package.py",
    "service/test_failures.py",
    "service/test_kill.py",
    "service/test_openapi.py",
    "service/test_page_ask.py",
    "service/test_page_connection.py",
    "service/test_page_labels.py",
    "service/test_page_layout.py",
    "service/test_page_sleep.py",
    "service/test_page_source.py",
    "service/test_page_teach.py",
    "service/test_page_token.py",
    "service/test_sleeper_kill.py",
    "service/test_page_vectors.py",
    "store/test_disks.py",
    "store/test_faults.py",
    "store/test_kill.py",
    "store/test_store_model.py",
    "test_concurrency.py",
    "test_docs.py",
    "test_examples.py",
    "test_docs_examples.py",
    "test_layout.py",
    "test_learner_of_0_1.py",
    "test_results_recomputed.py",
    "test_real_pictures.py",
    "test_without_torch.py",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _mirror(module: Path) -> Path:
    """Return the test file of a module; that of an `__init__` is named after its package."""
    inside = module.relative_to(PACKAGE)
    if module.name == "__init__.py":
        return TESTS / inside.parent / f"test_{inside.parent.name or 'package'}.py"
    return TESTS / inside.with_name(f"test_{module.stem.strip('_')}.py")


def _has_logic(module: Path) -> bool:
    """Whether a module needs tests: one that only declares types, or only re-exports names, does not."""
    functions = [node for node in ast.walk(ast.parse(module.read_text("utf-8"))) if isinstance(node, Function)]
    return any(not isinstance(statement, ast.Expr) for function in functions for statement in function.body)


def _functions(module: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of lines of every function in a module."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, Function):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_module_has_its_test_file() -> None:
    mirrors = [_mirror(module) for module in MODULES if _has_logic(module)]
    assert [str(mirror.relative_to(ROOT)) for mirror in mirrors if not mirror.is_file()] == []


def test_every_other_test_file_is_listed_as_cross_cutting() -> None:
    mirrors = {_mirror(module) for module in MODULES}
    tests = {path for path in TESTS.rglob("test_*.py") if TESTS / "scripts" not in path.parents}
    assert {str(path.relative_to(TESTS)) for path in tests - mirrors} == CROSS_CUTTING


def test_no_file_is_too_long() -> None:
    lengths = {str(module.relative_to(ROOT)): module.read_text("utf-8").count("\n") for module in MODULES}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_function_is_too_long() -> None:
    lengths = {f"{module.relative_to(ROOT)}:{name}": lines for module in MODULES for name, lines in _functions(module)}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES} == {}


def test_few_modules_are_at_the_top() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__main__"}  # which only starts the command line
    assert len(modules) <= MAX_TOP_LEVEL_MODULES
