"""The reader of an HBase source: a thread scans ahead, and `poll` hands out what is there."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rekindle.datastream.connectors.base import SourceReader, SourceSplit
from rekindle.datastream.connectors.hbase.key_ranges import following
from rekindle.datastream.connectors.hbase.table_scan import Row, TableScan
from rekindle.datastream.connectors.hbase.thrift_calls import ThriftCalls

T = TypeVar("T")

#: So many calls' worth of rows wait for `poll` at most.
_CHUNKS_AHEAD = 4
_JOIN_S = 10.0


class HBaseReader(SourceReader[T], Generic[T]):
    """Reads ranges one after the other. A split's position is (start, stop, the last row that was returned)."""

    def __init__(
        self,
        calls: ThriftCalls,
        scan: TableScan,
        decoder: Callable[[bytes, dict[bytes, bytes]], Any],
        splits: list[SourceSplit],
        wake_up: Callable[[], None],
    ) -> None:
        self._calls = calls
        self._scan = scan
        self._decoder = decoder
        self._wake_up = wake_up
        self._left: dict[str, tuple[bytes, bytes, bytes | None]] = {each.split_id: each.position for each in splits}
        self._chunks: deque[tuple[str, list[Row]]] = deque()  # an empty chunk ends its split
        self._offset = 0  # in the first chunk
        self._changed = threading.Condition()
        self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(dict(self._left),), name="rekindle-hbase-scan", daemon=True
        )
        self._thread.start()

    # -- the task's thread --------------------------------------------------------------------------------------------

    def poll(self, max_records: int) -> list[T] | None:
        """Return rows that have arrived, as records."""
        records: list[T] = []
        with self._changed:
            while self._chunks and len(records) < max_records:
                split_id, rows = self._chunks[0]
                taken = rows[self._offset : self._offset + max_records - len(records)]
                records += [self._decoder(row, cells) for row, cells in taken]
                self._offset += len(taken)
                self._move(split_id, rows, taken)
            if not records and not self._chunks:
                if self._error is not None:
                    raise self._error
                if not self._left:
                    return None
        return records

    def _move(self, split_id: str, rows: list[Row], taken: list[Row]) -> None:
        if taken:
            start, stop, _ = self._left[split_id]
            self._left[split_id] = (start, stop, taken[-1][0])
        if not rows:
            del self._left[split_id]
        if self._offset == len(rows):
            self._chunks.popleft()
            self._offset = 0
            self._changed.notify_all()

    def is_available(self) -> bool:
        """Return whether rows, the end or an error have arrived."""
        return bool(self._chunks) or self._error is not None or not self._left

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """Return the ranges that are not read to their end, with the last row that was returned."""
        return [SourceSplit(split_id, position) for split_id, position in self._left.items()]

    def close(self) -> None:
        """End the thread and its connection."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._calls.close()
        self._thread.join(_JOIN_S)

    # -- the scanning thread ------------------------------------------------------------------------------------------

    def _run(self, splits: dict[str, tuple[bytes, bytes, bytes | None]]) -> None:
        try:
            for split_id, (start, stop, last) in splits.items():
                begin = start if last is None else following(last)
                for rows in self._scan.chunks(self._calls, begin, stop):
                    if not self._hand_over(split_id, rows):
                        return
                self._hand_over(split_id, [])
        except BaseException as error:  # poll raises it
            self._error = error
            self._wake_up()

    def _hand_over(self, split_id: str, rows: list[Row]) -> bool:
        """Wait for room, then add a chunk; False if the reader is closed."""
        with self._changed:
            while len(self._chunks) >= _CHUNKS_AHEAD and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            self._chunks.append((split_id, rows))
        self._wake_up()
        return True
