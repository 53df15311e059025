"""Results on their way to `execute_and_collect`: while its reader is far behind, no epoch brings more (back-pressure).

Nobody waits here: what is there already is taken, and a job whose reader has gone for a walk can still be stopped.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_WAITING_BATCHES = 64


class ResultQueue:
    """Batches from the job's thread to the user's."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._batches: deque[list[Any]] = deque()
        self._ended = False
        self._abandoned = False
        self._error: BaseException | None = None
        #: Called, from the reader's thread, when there is room again.
        self.on_room: Callable[[], None] = lambda: None

    def has_room(self) -> bool:
        """Whether the reader keeps up: if not, nothing that brings more is to be begun."""
        return len(self._batches) < _WAITING_BATCHES

    def put(self, batch: list[Any]) -> None:
        """Hand over a batch."""
        with self._changed:
            if not self._abandoned:
                self._batches.append(batch)
                self._changed.notify_all()

    def end(self, error: BaseException | None) -> None:
        """Nothing follows; the reader gets the error after the batches."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def abandon(self) -> None:
        """Nobody reads any more."""
        with self._changed:
            self._abandoned = True
            self._batches.clear()
            self._changed.notify_all()

    def batches(self) -> Iterator[list[Any]]:
        """Every batch as it comes; raises the job's error at the end."""
        while True:
            with self._changed:
                while not self._batches and not self._ended:
                    self._changed.wait()
                if not self._batches:
                    if self._error is not None:
                        raise self._error
                    return
                batch = self._batches.popleft()
                made_room = len(self._batches) == _WAITING_BATCHES - 1
            if made_room:
                self.on_room()
            yield batch
