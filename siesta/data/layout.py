"""How a dataset should lie on disk, and one sentence that says so when it does not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from siesta.data.dataset import Pictures, Split
from siesta.data.folder import SUFFIXES
from siesta.errors import BadInput

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """A folder and what is expected in it.

    Attributes:
        name: The dataset.
        root: The folder that was given.
        expected: How it should look, in a few words.
    """

    name: str
    root: Path
    expected: str

    def wrong(self, what: str) -> BadInput:
        """What is wrong, and how it should be."""
        return BadInput(f"{what}: {self.name} should look like {self.expected}, below {self.root}")

    def has(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        try:
            return (self.root / name).exists()
        except (OSError, ValueError):  # a name that no disk can hold
            return False

    def first_of(self, *names: str) -> str:
        """The first of these files or folders that is there."""
        for name in names:
            if self.has(name):
                return name
        raise self.wrong(f"there is no {' or '.join(names)} in {self.root}")

    def lines(self, name: str | Path) -> list[str]:
        """Lines of a text file without blanks at their ends; empty ones are left out."""
        path = self.root / name
        try:
            text = path.read_text("utf-8-sig")
        except OSError as error:
            raise self.wrong(f"{path} cannot be read ({error.strerror})") from error
        except ValueError as error:
            raise self.wrong(f"{path} is not a text file") from error
        return [line for line in map(str.strip, text.split("\n")) if line]

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """Lines of two words each."""
        found = [line.split() for line in self.lines(name)]
        for words in found:
            if len(words) != 2:
                raise self.wrong(f"{self.root / name} has a line of {len(words)} words, '{' '.join(words)[:80]}'")
        return [(first, second) for first, second in found]

    def number(self, text: str, below: int, where: str) -> int:
        """A whole number from 0 to below `below`."""
        if not (text.isascii() and text.isdigit() and int(text) < below):
            raise self.wrong(f"{where} has '{text}' where a number below {below} should be")
        return int(text)

    def tree(self, part: str, inside: str = "") -> dict[str, list[str]]:
        """Files of `root/part/<class>/`, or of `root/part/<class>/inside/`: class -> relative names, all sorted."""
        classes = sorted(entry.name for entry in self._entries(part) if entry.name[0] != "." and entry.is_dir())
        if not classes:
            raise self.wrong(f"{self.root / part} has no folders of classes")
        return {label: self.files(f"{part}/{label}/{inside}".rstrip("/")) for label in classes}

    def files(self, part: str) -> list[str]:
        """Relative names of the pictures in `root/part/`, sorted; hidden ones are left out."""
        return [f"{part}/{name}" for name in sorted(entry.name for entry in self._entries(part) if _is_picture(entry))]

    def _entries(self, part: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / part) as entries:
                yield from entries
        except (OSError, ValueError) as error:
            raise self.wrong(f"{self.root / part} cannot be read ({getattr(error, 'strerror', error)})") from error

    def split(self, names: Sequence[str], labels: Sequence[int], folder: str = "") -> Split:
        """These files of `root/folder/`; the first and the last must be there, the others when they are read."""
        if not names:
            raise self.wrong(f"there are no pictures in {self.root / folder}")
        if len(set(names)) < len(names):
            raise self.wrong("a picture is named twice")
        for name in (names[0], names[-1]):
            if not (self.root / folder / name).is_file():
                raise self.wrong(f"there is no picture {self.root / folder / name}")
        return Split(Pictures.of_files(self.root / folder, names), names, np.array(labels, dtype=np.int32))

    def split_of(self, tree: Mapping[str, Sequence[str]], classes: Sequence[str], folder: str = "") -> Split:
        """All files of a tree, in its order; `classes` number them."""
        numbers = {label: number for number, label in enumerate(classes)}
        for label in tree:
            if label not in numbers:
                raise self.wrong(f"the class {label} has pictures to test on and none to learn from")
        names = [name for files in tree.values() for name in files]
        labels = np.repeat([numbers[label] for label in tree], [len(files) for files in tree.values()])
        return self.split(names, labels.tolist(), folder)

    def learned_classes(self, tree: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """The classes of a training tree; each must have pictures."""
        for label, files in tree.items():
            if not files:
                raise self.wrong(f"the class {label} has no pictures to learn from")
        return tuple(tree)


def _is_picture(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    return name[0] != "." and name[name.rfind(".") :].lower() in SUFFIXES and not entry.is_dir()
