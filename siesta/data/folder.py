"""Folders of images: `FOLDER/<label>/*`, or images at any depth."""

from __future__ import annotations

from pathlib import Path

from siesta.errors import BadInput

__all__ = ["SUFFIXES", "has_image_name", "labelled_files", "picture_files"]

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def has_image_name(file: Path) -> bool:
    """Whether the name of a file ends as those of images do."""
    return file.suffix.lower() in SUFFIXES


def labelled_files(folder: Path) -> list[tuple[Path, str]]:
    """Return every file of `folder/<label>/` with its label, sorted, without hidden files."""
    _check_folder(folder)
    try:
        files = _labelled(folder)
    except OSError as error:
        raise BadInput(
            f"{error.filename or folder} cannot be read ({error.strerror}): check its permissions"
        ) from error
    if not files:
        raise BadInput(
            f"{folder} has no folders with images, one for each label: it should look like {folder}/<label>/<image>.jpg"
        )
    return files


def _labelled(folder: Path) -> list[tuple[Path, str]]:
    return [
        (file, label.name)
        for label in sorted(folder.iterdir())
        if label.is_dir() and not _hidden(Path(label.name))
        for file in sorted(label.iterdir())
        if (file.is_file() or file.is_symlink()) and not file.is_dir() and not _hidden(Path(file.name))
    ]


def picture_files(folder: Path) -> list[Path]:
    """Return every image file at any depth below `folder`, sorted, without hidden ones."""
    _check_folder(folder)
    files = sorted(
        file
        for file in folder.rglob("*")
        if has_image_name(file) and file.is_file() and not _hidden(file.relative_to(folder))
    )
    if not files:
        raise BadInput(f"{folder} has no image files ({', '.join(sorted(SUFFIXES))}): give another folder")
    return files


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _check_folder(folder: Path) -> None:
    try:
        is_folder = folder.is_dir()
    except (OSError, ValueError):  # not a valid file name
        is_folder = False
    if not is_folder:
        raise BadInput(f"{folder} is not a folder: give one that holds images")
