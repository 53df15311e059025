"""Results reach a slow or absent reader without filling the driver's memory."""

from __future__ import annotations

import threading

import pytest

from rekindle.coordinator.results import _WAITING_BATCHES, ResultQueue


def test_batches_come_in_order_and_end():
    queue = ResultQueue()
    queue.put([1])
    queue.put([2, 3])
    queue.end(None)
    assert list(queue.batches()) == [[1], [2, 3]]


def test_the_error_comes_after_the_batches():
    queue = ResultQueue()
    queue.put([1])
    queue.end(ValueError("boom"))
    batches = queue.batches()
    assert next(batches) == [1]
    with pytest.raises(ValueError, match="boom"):
        next(batches)


def fill(queue: ResultQueue) -> threading.Thread:
    def put_more_than_fits() -> None:
        for number in range(_WAITING_BATCHES + 1):
            queue.put([number])

    writer = threading.Thread(target=put_more_than_fits, daemon=True)
    writer.start()
    return writer


def test_a_slow_reader_makes_the_writer_wait():
    queue = ResultQueue()
    writer = fill(queue)
    writer.join(timeout=0.2)
    assert writer.is_alive()
    assert next(queue.batches()) == [0]
    writer.join(timeout=5)
    assert not writer.is_alive()


def test_an_abandoned_queue_never_blocks():
    queue = ResultQueue()
    writer = fill(queue)
    queue.abandon()
    writer.join(timeout=5)
    assert not writer.is_alive()
