"""Installed packages that exist in metadata only, or with a module beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


def install(folder: Path, package: str, entries: dict[str, dict[str, str]], **modules: str) -> Path:
    """Write what an installed package has in a folder of `sys.path`: its metadata, and modules by name."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in names.items()) for group, names in entries.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on `sys.path` to install packages in; what was imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
