"""A connection between two services that can be cut."""

from __future__ import annotations

import contextlib
import socket
from threading import Lock, Thread

__all__ = ["Wire"]


class Wire:
    """Passes everything on from a port of its own to another one.

    Attributes:
        target: The port that connections go to.
        port: Its own port.
        down: Whether connections are refused.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.down = False
        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections, in the middle of whatever they carry."""
        with self._lock:
            for one in self._sockets:
                _close(one)
            self._sockets.clear()

    def close(self) -> None:
        """Close the port and all connections."""
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    if self.down:
                        raise ConnectionRefusedError
                    far = socket.create_connection(("127.0.0.1", self.target), timeout=60)
                except OSError:
                    near.close()
                    continue
                with self._lock:
                    self._sockets += [near, far]
                for source, target in ((near, far), (far, near)):
                    Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _close(source)
    _close(target)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
