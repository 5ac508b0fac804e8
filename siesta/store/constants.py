"""Tensor files that no sleep changes: bottom, codec and the structure of the graphs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from siesta.store.session import Session
from siesta.store.settings import write_settings
from siesta.store.tensor_files import StoredTensors, Tensors, current_file, finish_next, tensors_hash, write_next

__all__ = ["ConstantTensors"]


class ConstantTensors:
    """The constant tensor files of a store, or their contents for a store in memory.

    Only the codec is ever replaced, when it is fitted anew.
    """

    def __init__(self, session: Session, settings: dict[str, Any], in_memory: Mapping[str, Tensors]) -> None:
        """Use the files of a session.

        Args:
            session: The open store.
            settings: Its settings; a new codec changes them.
            in_memory: The tensors of a store without files, by name.
        """
        self._session = session
        self._settings = settings
        self._in_memory = dict(in_memory)

    def read(self, name: str) -> Tensors:
        """Return the tensors of a file, such as "bottom"."""
        if self._session.path is None:
            return dict(self._in_memory[name])
        return StoredTensors(self._session.path, name, self.hashes()[name])

    def in_memory(self) -> dict[str, Tensors]:
        """Return the tensors of a store without files, by name."""
        return {name: dict(tensors) for name, tensors in self._in_memory.items()}

    def files(self) -> dict[str, Path]:
        """Return the constant files of the store, by name; none of a store in memory."""
        path = self._session.path
        if path is None:
            return {}
        return {name: current_file(path, name, expected) for name, expected in self.hashes().items()}

    def codec_hash(self) -> str:
        """Return a text that changes with the codec."""
        return self.hashes().get("codec", "")  # a store in memory records the hash of a later codec only

    def hashes(self) -> dict[str, str]:
        """Return the hashes as they are recorded now: another process may have replaced the codec."""
        with self._session.errors():
            (value,) = self._session.connection.execute("SELECT value FROM settings WHERE name = 'hashes'").fetchone()
        hashes: dict[str, str] = json.loads(value)
        return hashes

    def write_next_codec(self, tensors: Tensors) -> dict[str, str]:
        """Write another codec beside the one in use; return the hashes to be recorded with it."""
        self.finish()  # a version that an earlier call could not rename is the current one, and must not be replaced
        path = self._session.path
        codec = tensors_hash(tensors) if path is None else write_next(path, "codec", tensors)
        return {**self.hashes(), "codec": codec}

    def record_codec(self, hashes: Mapping[str, str], error: float) -> None:
        """Record the hashes and the fitting error of the next codec, in the caller's transaction."""
        write_settings(self._session.connection, {**self._settings, "hashes": hashes, "codec_error": error})

    def use_codec(self, tensors: Tensors, hashes: Mapping[str, str], error: float) -> None:
        """Use the next codec, after the transaction that recorded it."""
        self._in_memory["codec"] = tensors
        self._settings.update(hashes=hashes, codec_error=error)
        self.finish()

    def finish(self) -> None:
        """Rename the next codec if it was recorded, or remove it, where a crash prevented that."""
        if self._session.path is not None:
            finish_next(self._session.path, self.hashes())
