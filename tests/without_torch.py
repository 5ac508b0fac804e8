"""Runs `siesta` in an interpreter in which torch and what else only training needs cannot be imported."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

BLOCKED = ("torch", "faiss", "onnx", "onnxscript", "onnx_ir")


class Blocker:
    """A finder that comes first and finds nothing."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return None


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocker())
    sys.argv[0] = "siesta"
    from siesta.cli import main

    try:
        main()
    finally:
        assert not set(BLOCKED) & set(sys.modules)
