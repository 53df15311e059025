"""The asynchronous part of snapshots: one thread per slot encodes, writes and acknowledges while epochs go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic

import msgspec

from rekindle.checkpoint.paths import StateFileName, savepoint_reference, shared_reference
from rekindle.checkpoint.statefile import InlineWriter, PartWriter, StateFileWriter
from rekindle.checkpoint.store.options import StoreOptions, open_configured
from rekindle.checkpoint.store.port import Store
from rekindle.crash_points import CrashPoint, reach
from rekindle.protocol import Message, OperatorSnapshotTaken, SnapshotDeclined, SnapshotTaken, Storage
from rekindle.runtime.failure_report import own_traceback
from rekindle.runtime.task import TaskSnapshot

_LOG = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


class Uploader:
    """Takes snapshots over from the tasks, in order, and answers to the driver for each."""

    def __init__(
        self, storage: Storage, attempt: int, send: Callable[[Message], None], store_options: StoreOptions
    ) -> None:
        self._storage = storage
        self._attempt = attempt
        self._send = send
        self._store_options = store_options
        self.store: Store | None = open_configured(storage.url, store_options) if storage.url is not None else None
        self._savepoints: tuple[str, Store] | None = None  # the store of the last savepoint
        self._waiting: SimpleQueue[tuple[TaskSnapshot, float, float] | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="snapshot upload", daemon=True)
        self._thread.start()

    def put(self, snapshot: TaskSnapshot, start_delay_ms: float, sync_ms: float) -> None:
        """Hand a snapshot over; returns at once."""
        self._waiting.put((snapshot, start_delay_ms, sync_ms))

    def close(self, timeout_s: float) -> None:
        """Begin with no other snapshot, and wait for the one that is being written: a file must not come after the
        driver has looked for what is left over.
        """
        self._closed = True
        self._waiting.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (waiting := self._waiting.get()) is not None and not self._closed:
            snapshot, start_delay_ms, sync_ms = waiting
            try:
                self._send(self._write(snapshot, start_delay_ms, sync_ms))
            except Exception as error:
                _LOG.warning("%s: snapshot %d failed: %s", snapshot.task.name, snapshot.order.id, error)
                chain, subtask = snapshot.task.chain.id, snapshot.task.subtask
                answer = f"{snapshot.task.name}: {error}", True, own_traceback(error)
                self._send(SnapshotDeclined(snapshot.order.id, chain, subtask, *answer))
            reach(CrashPoint.AFTER_ACKNOWLEDGEMENT)

    def _write(self, snapshot: TaskSnapshot, start_delay_ms: float, sync_ms: float) -> SnapshotTaken:
        started = monotonic()
        reach(CrashPoint.BEFORE_UPLOAD)
        written = snapshot.write(lambda uid, name: self._writer(snapshot, uid, name))
        reach(CrashPoint.AFTER_UPLOAD)
        answer = SnapshotTaken(
            checkpoint=snapshot.order.id,
            chain=snapshot.task.chain.id,
            subtask=snapshot.task.subtask,
            operators=[
                OperatorSnapshotTaken(each.uid, _encode(each.state), each.sync_ms, each.async_ms) for each in written
            ],
            start_delay_ms=start_delay_ms,
            sync_ms=sync_ms,
            async_ms=(monotonic() - started) * 1000,
        )
        reach(CrashPoint.BEFORE_ACKNOWLEDGEMENT)
        return answer

    def _writer(self, snapshot: TaskSnapshot, uid: str, name: str) -> PartWriter:
        file = StateFileName.of(snapshot.order.id, self._attempt, uid, snapshot.task.subtask)
        if snapshot.order.storage is not None:
            storage = snapshot.order.storage
            return StateFileWriter(self._savepoint_store(storage), storage.root, savepoint_reference(file))
        if self.store is None:
            return InlineWriter(name, self._storage.max_inline_bytes)
        return StateFileWriter(self.store, self._storage.root, shared_reference(file))

    def _savepoint_store(self, storage: Storage) -> Store:
        assert storage.url is not None, "savepoints are files"
        if self._savepoints is None or self._savepoints[0] != storage.url:
            self._savepoints = storage.url, open_configured(storage.url, self._store_options)
        return self._savepoints[1]
