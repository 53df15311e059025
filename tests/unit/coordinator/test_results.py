"""Results reach a slow reader without filling the driver's memory, each once."""

from __future__ import annotations

import pytest

from rekindle.coordinator.job_events import CutCovered, CutMade
from rekindle.coordinator.results import _WAITING_BATCHES, ResultQueue, ResultReceiver


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


def test_put_never_blocks_and_the_reader_reports_when_there_is_room():
    """A job's thread that blocked here could not answer a savepoint, nor notice a slot's death."""
    calls = []
    queue = ResultQueue(lambda: calls.append(queue.has_room()))
    for number in range(_WAITING_BATCHES + 2):
        assert queue.has_room() == (number < _WAITING_BATCHES)
        queue.put([number])
    batches = queue.batches()
    for number in range(2):
        assert next(batches) == [number]
        assert not queue.has_room()
    assert not calls
    assert next(batches) == [2]
    assert calls == [True]
    assert next(batches) == [3]
    assert calls == [True], "called again without need"


def test_an_abandoned_queue_has_room_and_drops_batches():
    queue = ResultQueue()
    for number in range(_WAITING_BATCHES):
        queue.put([number])
    queue.abandon()
    assert queue.has_room()
    queue.put([1])
    queue.end(None)
    assert list(queue.batches()) == []


def released(receiver: ResultReceiver) -> list:
    """The records that the reader would get now, if the results ended here."""
    receiver.queue.end(None)
    return [record for batch in receiver.queue.batches() for record in batch]


def test_a_record_is_released_with_the_checkpoint_that_contains_it():
    receiver = ResultReceiver(list, hold_back=True)
    receiver.deliver([b"1"])
    receiver.on_event(CutMade(7))
    receiver.deliver([b"2"])
    receiver.on_event(CutMade(8))
    receiver.deliver([b"3"])
    receiver.on_event(CutCovered(8))  # 7 was subsumed
    assert released(receiver) == [b"1", b"2"]


def test_records_that_no_completed_checkpoint_contains_are_dropped_with_their_attempt():
    receiver = ResultReceiver(list, hold_back=True)
    receiver.deliver([b"1"])
    receiver.on_event(CutMade(7))
    receiver.deliver([b"2"])
    receiver.drop_held()
    receiver.on_event(CutCovered(7))
    receiver.on_event(CutMade(8))
    receiver.on_event(CutCovered(8))
    assert released(receiver) == []


def test_without_checkpoints_records_are_not_held_back():
    receiver = ResultReceiver(list, hold_back=False)
    receiver.deliver([b"1"])
    assert released(receiver) == [b"1"]
