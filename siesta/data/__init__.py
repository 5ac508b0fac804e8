"""Pictures on disk."""

from siesta.data.folder import labelled_files, picture_files

__all__ = ["labelled_files", "picture_files"]
