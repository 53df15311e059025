"""The asynchronous part of snapshots: one thread per slot encodes, writes and acknowledges while epochs go on."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from rekindle.checkpoint.parts import CapturedOperator
from rekindle.checkpoint.paths import StateFileName, savepoint_reference, shared_reference
from rekindle.checkpoint.statefile import InlineWriter, PartWriter, StateFileWriter
from rekindle.checkpoint.store.options import StoreOptions, open_configured
from rekindle.checkpoint.store.port import Store
from rekindle.clock import Clock
from rekindle.crash_points import CrashPoint, reach
from rekindle.protocol import CheckpointAcknowledged, CheckpointDeclined, CheckpointOrder, Message, Storage
from rekindle.runtime.failure_report import own_traceback
from rekindle.runtime.local_copies import LocalCopies
from rekindle.runtime.snapshot import CapturedTask

_LOG = logging.getLogger(__name__)


#: A snapshot that waits for its upload, the delay of its start and the time of its synchronous part.
_Waiting = tuple[CapturedTask, float, float]


class Uploader:
    """Writes the snapshots of a slot's tasks, in order, and acknowledges or declines each to the driver."""

    def __init__(
        self,
        storage: Storage,
        attempt: int,
        send: Callable[[Message], None],
        store_options: StoreOptions,
        clock: Clock,
        copies: LocalCopies | None = None,
    ) -> None:
        self._storage = storage
        self._attempt = attempt
        self._send = send
        self._store_options = store_options
        self._clock = clock
        self._copies = copies
        self.store: Store | None = open_configured(storage.url, store_options) if storage.url is not None else None
        if self.store is not None and copies is not None:
            self.store = copies.of(self.store)
        self._savepoints: tuple[str, Store] | None = None  # the store of the last savepoint
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="snapshot upload", daemon=True)
        self._thread.start()

    def put(self, snapshot: CapturedTask, start_delay_ms: float, sync_ms: float) -> None:
        """Queue a snapshot; returns at once."""
        with self._changed:
            self._waiting.append((snapshot, start_delay_ms, sync_ms))
            self._changed.notify()

    def aborted(self, checkpoint_id: int) -> None:
        """Drop the snapshots of an aborted checkpoint that wait: behind a slow store they would pile up in memory."""
        with self._changed:
            dropped = [snapshot for snapshot, _, _ in self._waiting if snapshot.order.id == checkpoint_id]
            self._waiting = deque(each for each in self._waiting if each[0].order.id != checkpoint_id)
        for snapshot in dropped:
            snapshot.cancel()

    def close(self, timeout_s: float) -> None:
        """Begin no other snapshot, and wait for the one that is being written: no file may appear after the driver has
        looked for leftover files.
        """
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (waiting := self._next()) is not None:
            snapshot, _, _ = waiting
            try:
                self._send(self._write(*waiting))
            except Exception as error:
                _LOG.warning("%s: snapshot %d failed: %s", snapshot.name, snapshot.order.id, error)
                self._send(
                    CheckpointDeclined(
                        checkpoint=snapshot.order.id,
                        chain=snapshot.chain,
                        subtask=snapshot.subtask,
                        message=f"{snapshot.name}: {error}",
                        asynchronous=True,
                        traceback=own_traceback(error),
                    )
                )
            reach(CrashPoint.AFTER_ACKNOWLEDGEMENT)
            del waiting, snapshot  # the captured state must not stay until the next one

    def _next(self) -> _Waiting | None:
        """Wait for a snapshot; None when the uploader is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting)
            return None if self._closed else self._waiting.popleft()

    def _write(self, snapshot: CapturedTask, start_delay_ms: float, sync_ms: float) -> CheckpointAcknowledged:
        started = self._clock.monotonic()
        reach(CrashPoint.BEFORE_UPLOAD)
        written = snapshot.write(lambda operator: self._writer(snapshot.order, operator), self._clock)
        if self._copies is not None and snapshot.order.storage is None:
            for operator in snapshot.operators:
                self._copies.written(snapshot.order.id, operator.uid, operator.subtask, operator.files)
        reach(CrashPoint.AFTER_UPLOAD)
        answer = CheckpointAcknowledged(
            checkpoint=snapshot.order.id,
            chain=snapshot.chain,
            subtask=snapshot.subtask,
            operators=written,
            start_delay_ms=start_delay_ms,
            sync_ms=sync_ms,
            async_ms=(self._clock.monotonic() - started) * 1000,
        )
        reach(CrashPoint.BEFORE_ACKNOWLEDGEMENT)
        return answer

    def _writer(self, order: CheckpointOrder, operator: CapturedOperator) -> PartWriter:
        file = StateFileName.of(order.id, self._attempt, operator.uid, operator.subtask)
        if order.storage is not None:
            store = self._savepoint_store(order.storage)
            return StateFileWriter(store, order.storage.root, savepoint_reference(file))
        if self.store is None:
            return InlineWriter(operator.name, self._storage.max_inline_bytes)
        return StateFileWriter(self.store, self._storage.root, shared_reference(file))

    def _savepoint_store(self, storage: Storage) -> Store:
        assert storage.url is not None, "savepoints are files"
        if self._savepoints is None or self._savepoints[0] != storage.url:
            self._savepoints = storage.url, open_configured(storage.url, self._store_options)
        return self._savepoints[1]
