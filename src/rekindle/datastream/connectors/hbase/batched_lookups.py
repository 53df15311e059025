"""Looks rows up from an asyncio loop: lookups that wait at the same time share calls, those of one row share one.

HBase's client blocks, so calls run in threads. While all threads are busy, rows gather for the next call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from rekindle.datastream.connectors.hbase.lookup_cache import MISSING, LookupCache

Cells = dict[bytes, bytes]


class BatchedLookups:
    """Belongs to one loop: all methods are called on it."""

    def __init__(
        self, fetch: Callable[[list[bytes]], Mapping[bytes, Cells]], cache: LookupCache, threads: int, max_rows: int
    ) -> None:
        self._fetch = fetch
        self._cache = cache
        self._max_rows = max_rows
        self._free = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="rekindle-hbase-lookup")
        self._waiting: dict[bytes, asyncio.Future[Cells]] = {}
        self._queued: list[bytes] = []
        self._running: set[asyncio.Task[None]] = set()
        self.hits = self.misses = self.calls = 0

    async def get(self, row: bytes) -> Cells:
        """Return the cells of a row; empty if there is no such row."""
        cached = self._cache.get(row)
        if cached is not MISSING:
            self.hits += 1
            return cached  # type: ignore[no-any-return]
        self.misses += 1
        answer = self._waiting.get(row)
        if answer is None:
            answer = self._waiting[row] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(_look_at_error)
            self._queued.append(row)
            # Not at once: lookups that begin in the same turn of the loop belong to the same call.
            asyncio.get_running_loop().call_soon(self._start)
        # Another element may wait for the same row when this one is cancelled.
        return await asyncio.shield(answer)

    def close(self) -> None:
        """End the threads; lookups that wait are not answered."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        while self._queued and self._free:
            rows, self._queued = self._queued[: self._max_rows], self._queued[self._max_rows :]
            self._free -= 1
            task = asyncio.get_running_loop().create_task(self._run(rows))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, rows: list[bytes]) -> None:
        self.calls += 1
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, self._fetch, rows)
        except Exception as error:
            for row in rows:
                self._waiting.pop(row).set_exception(error)
        else:
            for row in rows:
                self._cache.put(row, found.get(row, {}))
                self._waiting.pop(row).set_result(found.get(row, {}))
        finally:
            self._free += 1
            self._start()


def _look_at_error(answer: asyncio.Future[Cells]) -> None:
    """Mark an error as seen, also if every element that waited for it was cancelled."""
    if not answer.cancelled():
        answer.exception()
