"""Buffers that a thread of its own sends: while it sends one flush, the task fills the next ones.

The thread sends when enough mutations or bytes wait, when the oldest mutation has waited for the interval, and when the
task waits for everything. An error of the thread is raised by the task's next call, and by all later ones.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from rekindle.datastream.connectors.hbase.mutations import Mutation
from rekindle.datastream.connectors.hbase.row_buffer import RowBuffer

_JOIN_S = 10.0
#: So many full buffers wait at most. With one the thread would have nothing to send between two epochs.
_FULL_BUFFERS = 3


class BackgroundFlush:
    """Holds the buffers and the thread. `add`, `drain` and `close` are called by one thread, the task's."""

    def __init__(
        self, send: Callable[[RowBuffer], None], max_mutations: int, max_bytes: int, interval_s: float | None
    ) -> None:
        self._send = send
        self._max_mutations = max_mutations
        self._max_bytes = max_bytes
        self._interval_s = interval_s
        self._changed = threading.Condition()
        self._buffer = RowBuffer()
        self._full: deque[RowBuffer] = deque()
        self._oldest = 0.0
        self._sending = False
        self._draining = False
        self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="rekindle-hbase-flush", daemon=True)
        self._thread.start()

    # -- the task's thread --------------------------------------------------------------------------------------------

    def add(self, mutation: Mutation, table: str, timestamp: int | None) -> None:
        """Buffer a mutation; wait if too many full buffers are still to be sent."""
        with self._changed:
            while len(self._full) >= _FULL_BUFFERS and self._error is None:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            buffer = self._buffer
            buffer.add(mutation, table, timestamp)
            if buffer.mutations == 1:
                self._oldest = time.monotonic()
                self._changed.notify_all()
            if buffer.mutations >= self._max_mutations or buffer.size_bytes >= self._max_bytes:
                self._full.append(buffer)
                self._buffer = RowBuffer()
                self._changed.notify_all()

    def drain(self) -> None:
        """Return when every mutation is confirmed."""
        with self._changed:
            self._draining = True
            self._changed.notify_all()
            while self._error is None and (self._full or self._buffer.mutations or self._sending):
                self._changed.wait()
            self._draining = False
            if self._error is not None:
                raise self._error

    def close(self) -> None:
        """End the thread. Waiting rows are not sent: the task has drained before, or it fails and reads them again."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(_JOIN_S)

    # -- its own thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (buffer := self._next_buffer()) is not None:
            error: BaseException | None = None
            try:
                self._send(buffer)
            except BaseException as raised:  # the task raises it
                error = raised
            with self._changed:
                self._sending = False
                self._error = error
                self._changed.notify_all()
            if error is not None:
                return

    def _next_buffer(self) -> RowBuffer | None:
        """Wait for a flush that is due; None at the end."""
        with self._changed:
            while not self._closed and not self._is_due():
                self._changed.wait(self._until_due_s())
            if self._closed:
                return None
            if self._full:
                buffer = self._full.popleft()
            else:
                buffer, self._buffer = self._buffer, RowBuffer()
            self._sending = True
            self._changed.notify_all()
            return buffer

    def _is_due(self) -> bool:
        if self._full:
            return True
        if not self._buffer.mutations:
            return False
        if self._draining:
            return True
        return self._interval_s is not None and time.monotonic() >= self._oldest + self._interval_s

    def _until_due_s(self) -> float | None:
        if self._interval_s is None or not self._buffer.mutations:
            return None
        return max(0.0, self._oldest + self._interval_s - time.monotonic())
