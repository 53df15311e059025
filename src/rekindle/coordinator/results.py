"""The results of `execute_and_collect` on their way from the epochs to the user's thread.

The job's thread never blocks here, so a job whose reader is slow or gone can still be stopped. While the reader is far
behind, no epoch brings more results (back-pressure).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rekindle.coordinator.job_events import CutCovered, CutMade, JobEvent

_WAITING_BATCHES = 64


class ResultQueue:
    """Passes batches of records from the job's thread to the user's."""

    def __init__(self, on_room: Callable[[], None] = lambda: None) -> None:
        self._changed = threading.Condition()
        self._batches: deque[list[Any]] = deque()
        self._ended = False
        self._abandoned = False
        self._error: BaseException | None = None
        #: Called from the reader's thread when there is room again.
        self._on_room = on_room

    def has_room(self) -> bool:
        """Whether the reader keeps up; if not, no epoch that brings more results is to begin."""
        return len(self._batches) < _WAITING_BATCHES

    def put(self, batch: list[Any]) -> None:
        """Add a batch; never blocks."""
        with self._changed:
            if not self._abandoned:
                self._batches.append(batch)
                self._changed.notify_all()

    def end(self, error: BaseException | None) -> None:
        """End the results; the reader gets the error after the last batch."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def abandon(self) -> None:
        """Drop all batches, present and future: the job is cancelled."""
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
                self._on_room()
            yield batch


class ResultReceiver:
    """Decodes the chunks that epochs bring and puts their records into the queue. Implements `attempt_spec.Receiver`.

    With `hold_back` records wait for the checkpoint that contains them, so that the reader gets each record once.
    """

    def __init__(
        self,
        decode_chunks: Callable[[list[bytes]], list[Any]],
        *,
        hold_back: bool,
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        self.queue = ResultQueue(on_room)
        self._decode_chunks = decode_chunks
        self._hold_back = hold_back
        self._since_cut: list[list[Any]] = []
        self._held: dict[int, list[list[Any]]] = {}  # by the checkpoint that contains them

    def has_room(self) -> bool:
        """Whether the reader of the results keeps up."""
        return self.queue.has_room()

    def deliver(self, chunks: list[bytes]) -> None:
        """Take the chunks of an epoch."""
        records = self._decode_chunks(chunks)
        if self._hold_back:
            self._since_cut.append(records)
        else:
            self.queue.put(records)

    def on_event(self, event: JobEvent) -> None:
        """Hold the records since the last cut back until the cut's checkpoint is complete, and release them then."""
        match event:
            case CutMade(checkpoint_id):
                self._hold(checkpoint_id)
            case CutCovered(checkpoint_id):
                self._release(checkpoint_id)

    def _hold(self, checkpoint_id: int) -> None:
        self._held[checkpoint_id], self._since_cut = self._since_cut, []

    def _release(self, checkpoint_id: int) -> None:
        for covered in sorted(each for each in self._held if each <= checkpoint_id):
            for records in self._held.pop(covered):
                self.queue.put(records)

    def drop_held(self) -> None:
        """Drop the records that no completed checkpoint contains: the next attempt produces them again."""
        self._since_cut.clear()
        self._held.clear()
