"""Reading the folder of a data set, with errors that name the expected layout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from siesta.data.dataset import Dataset, Pictures, Split
from siesta.data.folder import SUFFIXES
from siesta.errors import BadInput

__all__ = ["DatasetFolder"]


@dataclass(frozen=True)
class DatasetFolder:
    """The folder of a data set and its expected layout.

    Attributes:
        name: Name of the data set.
        root: The folder.
        expected: Description of the expected layout, for error messages.
    """

    name: str
    root: Path
    expected: str

    def error(self, problem: str) -> BadInput:
        """Return an error that states the problem and the expected layout."""
        return BadInput(f"{problem}: {self.name} should look like {self.expected}, below {self.root}")

    def exists(self, name: str) -> bool:
        """Return whether there is a file or folder of that name."""
        try:
            return (self.root / name).exists()
        except (OSError, ValueError):  # not a valid file name
            return False

    def first_existing(self, *names: str) -> str:
        """Return the first of these names that exists."""
        for name in names:
            if self.exists(name):
                return name
        raise self.error(f"there is no {' or '.join(names)} in {self.root}")

    def read_lines(self, name: str | Path) -> list[str]:
        """Return the lines of a text file, stripped and without empty ones."""
        path = self.root / name
        try:
            text = path.read_text("utf-8-sig")
        except OSError as error:
            raise self.error(f"{path} cannot be read ({error.strerror})") from error
        except ValueError as error:
            raise self.error(f"{path} is not a text file") from error
        return [line for line in map(str.strip, text.split("\n")) if line]

    def read_pairs(self, name: str) -> list[tuple[str, str]]:
        """Return the lines of a text file that has two words in each."""
        rows = [line.split() for line in self.read_lines(name)]
        for words in rows:
            if len(words) != 2:
                raise self.error(f"{self.root / name} has a line of {len(words)} words, '{' '.join(words)[:80]}'")
        return [(first, second) for first, second in rows]

    def parse_index(self, text: str, count: int, source: str) -> int:
        """Return a whole number in 0..count - 1; errors name its source."""
        if not (text.isascii() and text.isdigit() and int(text) < count):
            raise self.error(f"{source} has '{text}' where a number below {count} should be")
        return int(text)

    def class_files(self, part: str, subfolder: str = "") -> dict[str, list[str]]:
        """Return the relative image names in `part/<class>/`, or `part/<class>/subfolder/`, by class, all sorted."""
        classes = sorted(entry.name for entry in self._entries(part) if entry.name[0] != "." and entry.is_dir())
        if not classes:
            raise self.error(f"{self.root / part} has no folders of classes")
        return {label: self.picture_names(f"{part}/{label}/{subfolder}".rstrip("/")) for label in classes}

    def picture_names(self, part: str) -> list[str]:
        """Return the sorted relative names of the images in a folder, without hidden ones."""
        return [f"{part}/{name}" for name in sorted(entry.name for entry in self._entries(part) if _is_picture(entry))]

    def _entries(self, part: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / part) as entries:
                yield from entries
        except (OSError, ValueError) as error:
            raise self.error(f"{self.root / part} cannot be read ({getattr(error, 'strerror', error)})") from error

    def make_split(self, names: Sequence[str], labels: Sequence[int], subfolder: str = "") -> Split:
        """Return a split of these files; only the first and the last are checked to exist."""
        if not names:
            raise self.error(f"there are no images in {self.root / subfolder}")
        if len(set(names)) < len(names):
            raise self.error("an image is named twice")
        for name in (names[0], names[-1]):
            if not (self.root / subfolder / name).is_file():
                raise self.error(f"there is no image {self.root / subfolder / name}")
        return Split(Pictures.from_files(self.root / subfolder, names), names, np.array(labels, dtype=np.int32))

    def dataset_of_classes(
        self,
        train_files: Mapping[str, Sequence[str]],
        test_files: Mapping[str, Sequence[str]],
        subfolders: tuple[str, str] = ("", ""),
    ) -> Dataset:
        """Return a data set of files by class; its classes are those of the training images.

        Args:
            train_files: Names of training images by class.
            test_files: Names of test images by class.
            subfolders: The folders below the root that these names are relative to.
        """
        classes = self.training_classes(train_files)
        train_folder, test_folder = subfolders
        return Dataset(
            self.name,
            classes,
            self.split_of_classes(train_files, classes, train_folder),
            self.split_of_classes(test_files, classes, test_folder),
        )

    def split_of_classes(
        self, class_files: Mapping[str, Sequence[str]], classes: Sequence[str], subfolder: str = ""
    ) -> Split:
        """Return a split of all files, labelled by the position of their class in `classes`."""
        numbers = {label: number for number, label in enumerate(classes)}
        for label in class_files:
            if label not in numbers:
                raise self.error(f"the class {label} has test images and no training images")
        names = [name for files in class_files.values() for name in files]
        labels = np.repeat([numbers[label] for label in class_files], [len(files) for files in class_files.values()])
        return self.make_split(names, labels.tolist(), subfolder)

    def training_classes(self, class_files: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Return the classes of the training images; each must have one."""
        for label, files in class_files.items():
            if not files:
                raise self.error(f"the class {label} has no training images")
        return tuple(class_files)


def _is_picture(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    return name[0] != "." and name[name.rfind(".") :].lower() in SUFFIXES and not entry.is_dir()
