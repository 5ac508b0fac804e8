"""Folders of pictures as people have them: `FOLDER/<label>/*`, or just pictures somewhere below."""

from __future__ import annotations

from pathlib import Path

from siesta.errors import BadInput

__all__ = ["SUFFIXES", "labelled_files", "picture_files"]

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def labelled_files(folder: Path) -> list[tuple[Path, str]]:
    """Every file of `folder/<label>/` with its label, in sorted order; hidden files are left out."""
    _check(folder)
    try:
        found = _labelled(folder)
    except OSError as error:
        raise BadInput(
            f"{error.filename or folder} cannot be read ({error.strerror}): check its permissions"
        ) from error
    if not found:
        raise BadInput(f"{folder} has no pictures: it should look like {folder}/<label>/<picture>.jpg")
    return found


def _labelled(folder: Path) -> list[tuple[Path, str]]:
    return [
        (file, label.name)
        for label in sorted(folder.iterdir())
        if label.is_dir() and not _hidden(Path(label.name))
        for file in sorted(label.iterdir())
        if (file.is_file() or file.is_symlink()) and not file.is_dir() and not _hidden(Path(file.name))
    ]


def picture_files(folder: Path) -> list[Path]:
    """Every picture file anywhere below `folder`, in sorted order; hidden ones are left out."""
    _check(folder)
    found = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in SUFFIXES and file.is_file() and not _hidden(file.relative_to(folder))
    )
    if not found:
        raise BadInput(f"{folder} has no picture files ({', '.join(sorted(SUFFIXES))})")
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _check(folder: Path) -> None:
    try:
        found = folder.is_dir()
    except (OSError, ValueError):  # a name that no disk can hold
        found = False
    if not found:
        raise BadInput(f"{folder} is not a folder: give one that holds pictures")
