"""The cache of the HBase lookup, and how lookups share calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.datastream.connectors.hbase.batched_lookups import BatchedLookups
from rekindle.datastream.connectors.hbase.lookup_cache import MISSING, LookupCache
from rekindle.errors import ConnectorError
from rekindle.testing import ManualClock


def test_a_row_is_looked_up_again_when_it_is_too_old() -> None:
    clock = ManualClock()
    cache = LookupCache(10, 5.0, clock)
    cache.put(b"1", {})
    clock.advance(4_999)
    assert cache.get(b"1") == {}
    clock.advance(1)
    assert cache.get(b"1") is MISSING
    assert len(cache) == 0


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=40), st.integers(0, 4))
def test_the_least_recently_used_row_goes_first(steps: list[tuple[bool, str]], max_rows: int) -> None:
    cache, used = LookupCache(max_rows, None), list[bytes]()
    for puts, name in steps:
        row = name.encode()
        if puts:
            cache.put(row, {})
        else:
            assert (cache.get(row) is not MISSING) == (row in used)
        if row in used or puts:
            used = [*(each for each in used if each != row), row][-max_rows or len(used) + 1 :] if max_rows else []
    assert len(cache) == len(used)


class Server:
    """Answers calls when it is told to, and remembers their rows."""

    def __init__(self) -> None:
        self.calls: list[list[bytes]] = []
        self.open = threading.Event()
        self.open.set()
        self.error: Exception | None = None

    def __call__(self, rows: list[bytes]) -> dict[bytes, dict[bytes, bytes]]:
        self.calls.append(rows)
        assert self.open.wait(20)
        if self.error is not None:
            raise self.error
        return {row: {b"f:a": row} for row in rows if row != b"none"}


def with_lookups(server: Server, use: Callable[[BatchedLookups], Coroutine[Any, Any, None]], threads: int = 1) -> None:
    async def main() -> None:
        lookups = BatchedLookups(server, LookupCache(100, None), threads, max_rows=3)
        try:
            await use(lookups)
        finally:
            server.open.set()
            lookups.close()

    asyncio.run(main())


def test_lookups_at_the_same_time_share_calls_and_rows() -> None:
    server = Server()

    async def use(lookups: BatchedLookups) -> None:
        wanted = [b"1", b"2", b"1", b"3", b"none", b"2"]
        found = await asyncio.gather(*map(lookups.get, wanted))
        assert found == [{} if row == b"none" else {b"f:a": row} for row in wanted]
        assert server.calls == [[b"1", b"2", b"3"], [b"none"]]
        assert await lookups.get(b"none") == {}, "a row that is not there is cached too"
        assert (lookups.hits, lookups.misses, lookups.calls) == (1, 6, 2)

    with_lookups(server, use)


def test_a_cancelled_lookup_does_not_take_the_answer_from_others() -> None:
    server = Server()
    server.open.clear()

    async def use(lookups: BatchedLookups) -> None:
        first, second = (asyncio.ensure_future(lookups.get(b"1")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        server.open.set()
        assert await second == {b"f:a": b"1"}
        assert len(server.calls) == 1

    with_lookups(server, use)


def test_an_error_goes_to_all_that_wait_and_is_not_cached() -> None:
    server = Server()
    server.error = ConnectorError("away")

    async def use(lookups: BatchedLookups) -> None:
        failed = await asyncio.gather(lookups.get(b"1"), lookups.get(b"1"), return_exceptions=True)
        assert [str(each) for each in failed] == ["away", "away"]
        server.error = None
        assert await lookups.get(b"1") == {b"f:a": b"1"}

    with_lookups(server, use)


@pytest.mark.parametrize("threads", [1, 2])
def test_so_many_calls_are_under_way_as_there_are_threads(threads: int) -> None:
    server = Server()
    server.open.clear()

    async def use(lookups: BatchedLookups) -> None:
        waiting = [asyncio.ensure_future(lookups.get(b"%d" % number)) for number in range(12)]
        deadline = asyncio.get_running_loop().time() + 10
        while len(server.calls) < threads and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)
        assert len(server.calls) == threads
        server.open.set()
        assert len(await asyncio.gather(*waiting)) == 12
        assert len(server.calls) == 4

    with_lookups(server, use, threads)
