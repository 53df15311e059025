"""When the buffer of an HBase sink is sent, and where the errors of its thread surface."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from rekindle.datastream.connectors.hbase import Put
from rekindle.datastream.connectors.hbase.background_flush import _FULL_BUFFERS, BackgroundFlush
from rekindle.datastream.connectors.hbase.row_buffer import RowBuffer
from rekindle.errors import ConnectorError
from tests.support.waiting import wait_until

Send = Callable[[RowBuffer], None]


class Sent:
    """Records the sizes of flushes; sending waits while `gate` is closed, and fails if told so."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None

    def __call__(self, buffer: RowBuffer) -> None:
        assert self.gate.wait(20)
        if self.error is not None:
            raise self.error
        self.sizes.append(len(buffer))


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def start(sent: Sent) -> Iterator[Callable[..., BackgroundFlush]]:
    started: list[BackgroundFlush] = []

    def make(mutations: int = 1000, size: int = 1 << 20, interval_s: float | None = None) -> BackgroundFlush:
        started.append(BackgroundFlush(sent, mutations, size, interval_s))
        return started[-1]

    yield make
    sent.gate.set()
    for each in started:
        each.close()
        assert not each._thread.is_alive()


def add(flush: BackgroundFlush, *numbers: int, size: int = 1) -> None:
    for number in numbers:
        flush.add(Put(b"%d" % number, {b"f:a": b"x" * size}), "t", None)


def test_so_many_mutations_make_a_flush(sent: Sent, start: Callable[..., BackgroundFlush]) -> None:
    flush = start(mutations=3)
    add(flush, *range(7))
    wait_until(lambda: sent.sizes == [3, 3], "two full flushes were sent", 10)
    flush.drain()
    assert sent.sizes == [3, 3, 1]


def test_so_many_bytes_make_a_flush(sent: Sent, start: Callable[..., BackgroundFlush]) -> None:
    flush = start(size=1000)
    add(flush, 1, size=600)
    add(flush, 2, size=600)
    wait_until(lambda: sent.sizes == [2], "the bytes were sent", 10)


def test_the_interval_makes_a_flush(sent: Sent, start: Callable[..., BackgroundFlush]) -> None:
    flush = start(interval_s=0.05)
    add(flush, 1)
    wait_until(lambda: sent.sizes == [1], "the oldest mutation was sent after the interval", 10)
    add(flush, 2)
    wait_until(lambda: sent.sizes == [1, 1], "so was the next", 10)


def test_without_limits_only_a_drain_sends(sent: Sent, start: Callable[..., BackgroundFlush]) -> None:
    flush = start()
    add(flush, 1, 2)
    assert sent.sizes == []
    flush.drain()
    assert sent.sizes == [2]
    flush.drain()
    assert sent.sizes == [2], "nothing is sent twice"


def test_a_drain_waits_for_the_flush_that_is_under_way(sent: Sent, start: Callable[..., BackgroundFlush]) -> None:
    flush = start(mutations=1)
    sent.gate.clear()
    add(flush, 1)
    threading.Timer(0.1, sent.gate.set).start()
    flush.drain()
    assert sent.sizes == [1]


def test_too_many_full_buffers_make_the_task_wait(sent: Sent, start: Callable[..., BackgroundFlush]) -> None:
    flush = start(mutations=2)
    sent.gate.clear()
    add(flush, 1, 2)
    wait_until(lambda: flush._sending, "the first flush is under way", 10)
    add(flush, *range(2 * _FULL_BUFFERS))
    blocked = threading.Thread(target=add, args=(flush, 5), daemon=True)
    blocked.start()
    blocked.join(0.1)
    assert blocked.is_alive()
    sent.gate.set()
    blocked.join(10)
    assert not blocked.is_alive()


def test_an_error_surfaces_at_the_next_call_and_at_all_later_ones(
    sent: Sent, start: Callable[..., BackgroundFlush]
) -> None:
    flush = start(mutations=1)
    sent.error = ConnectorError("refused")
    add(flush, 1)
    flush._thread.join(10)
    for call in (lambda: add(flush, 2), flush.drain, flush.drain):
        with pytest.raises(ConnectorError, match="refused"):
            call()


def test_close_does_not_send_what_waits(sent: Sent, start: Callable[..., BackgroundFlush]) -> None:
    flush = start()
    add(flush, 1)
    flush.close()
    assert sent.sizes == []
