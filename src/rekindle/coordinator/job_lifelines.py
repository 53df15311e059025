"""Connections that live as long as the job, over all its attempts: their end tells hosts to remove its local copies."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack

from rekindle import wire
from rekindle.coordinator.control import listen
from rekindle.protocol import CopiesPlace
from rekindle.reception import Reception


class JobLifelines:
    """Accepts the guardians' connections and keeps them open until it is closed."""

    def __init__(self, host: str, tls: wire.TlsFiles | None) -> None:
        self._secret = os.urandom(32)
        self._lock = threading.Lock()
        self._connections: list[wire.Connection] = []
        self._closed = False
        with ExitStack() as undo:
            listener = undo.enter_context(listen(host))
            self._port: int = listener.getsockname()[1]
            self._reception = Reception(listener, self._secret, self._admit, "job lifeline", tls)
            undo.pop_all()

    def place(self, directories: tuple[str, ...], slot: int) -> CopiesPlace:
        """Where a slot keeps its copies: one of the directories, always the same for a slot."""
        directory = directories[slot % len(directories)] if directories else ""
        return CopiesPlace(directory, self._port, self._secret)

    def _admit(self, connection: wire.Connection) -> None:
        with self._lock:
            self._connections = [each for each in self._connections if each.is_open()]
            self._connections.append(connection)
            if self._closed:
                connection.close()

    def close(self) -> None:
        """End every connection: the job has ended."""
        with self._lock:
            self._closed = True
            self._reception.close()
            for connection in self._connections:
                connection.close()
