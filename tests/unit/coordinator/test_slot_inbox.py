"""The attempt's thread misses no message, failure or cancellation of its slots."""

from __future__ import annotations

import math
import threading

import pytest

from rekindle.clock import SystemClock
from rekindle.coordinator.slot_inbox import SlotInbox
from rekindle.errors import ClusterError, JobCancelledError, JobExecutionError, SlotLostError
from rekindle.protocol import Closed, Committed, Ready, SlotHello, StageReport, TaskFailed

LONG_S = 60.0
FAILED = TaskFailed("task", "count", 0, "Traceback", "", None)


def hello(slot: int) -> SlotHello:
    return SlotHello("job", 1, slot, 100 + slot, "here", "boot", "/nowhere", 0)


def report(epoch: int, stage: int) -> StageReport:
    return StageReport(epoch, stage, [], [], [], False)


@pytest.fixture
def inbox() -> SlotInbox:
    return SlotInbox("orders", SystemClock(), on_failure=lambda: None)


def in_a_moment(call, *arguments) -> None:
    timer = threading.Timer(0.05, call, arguments)
    timer.daemon = True
    timer.start()


def test_hellos_come_in_the_order_of_the_slots(inbox):
    inbox.on_message(1, hello(1))
    in_a_moment(inbox.on_message, 0, hello(0))
    assert [each.pid for each in inbox.await_hellos(2, LONG_S, lambda: None)] == [100, 101]


def test_slots_that_do_not_connect_are_named_with_the_servers_trouble(inbox):
    inbox.on_message(1, hello(1))
    with pytest.raises(ClusterError, match=r"^After 0 s slots \[0, 2\] did not report: no descriptor is left\.$"):
        inbox.await_hellos(3, 0.01, lambda: "no descriptor is left")


def test_a_failure_ends_every_wait_and_the_first_one_counts():
    calls = []
    inbox = SlotInbox("orders", SystemClock(), on_failure=lambda: calls.append("failure"))
    inbox.on_message(0, hello(0))
    in_a_moment(inbox.on_message, 0, FAILED)
    with pytest.raises(JobExecutionError):
        inbox.await_deployed(1)
    inbox.on_gone(0, "it exited with code 1")
    with pytest.raises(JobExecutionError):
        inbox.await_reports(1, LONG_S)
    assert calls == ["failure"]


def test_a_cancellation_ends_a_wait(inbox):
    in_a_moment(inbox.cancel)
    with pytest.raises(JobCancelledError):
        inbox.await_deployed(1)


def test_reports_of_an_earlier_epoch_do_not_count(inbox):
    assert inbox.next_epoch() == 1
    inbox.on_message(0, report(1, stage=0))
    assert inbox.next_epoch() == 2
    inbox.on_message(0, report(1, stage=0))
    with pytest.raises(ClusterError, match="only 0 of 1 stage reports of epoch 2 had come"):
        inbox.await_reports(1, 0.01)
    inbox.on_message(0, report(2, stage=0))
    assert [each.epoch for each in inbox.await_reports(1, LONG_S)] == [2]


def test_a_source_is_ready_until_the_next_epoch(inbox):
    inbox.on_message(0, Ready())
    assert inbox.ready
    inbox.next_epoch()
    assert not inbox.ready


@pytest.mark.parametrize(
    "change",
    [
        lambda inbox: inbox.wake(),
        lambda inbox: inbox.cancel(),
        lambda inbox: inbox.on_message(0, Ready()),
        lambda inbox: inbox.on_message(0, FAILED),
        lambda inbox: inbox.on_gone(0, "it exited"),
    ],
)
def test_a_change_before_the_wait_is_not_missed(inbox, change):
    seen = inbox.changes()
    change(inbox)
    inbox.wait_for_change(seen, None)
    assert inbox.changes() == seen + 1


def test_messages_about_checkpoints_are_taken_once(inbox):
    inbox.on_message(0, Committed(7, 0, 0))
    inbox.on_message(0, Committed(8, 0, 0))
    assert inbox.checkpoints_with_messages() == {7, 8}
    assert [each.checkpoint for each in inbox.take_checkpoint_messages()] == [7, 8]
    assert inbox.take_checkpoint_messages() == []
    assert inbox.checkpoints_with_messages() == set()


def test_a_slots_failure_is_awaited_for_a_while(inbox):
    assert inbox.await_failure(0.01) is None
    in_a_moment(inbox.on_gone, 0, "it exited with code 1")
    assert isinstance(inbox.await_failure(LONG_S), SlotLostError)


def test_a_cancellation_ends_the_wait_for_a_failure(inbox):
    in_a_moment(inbox.cancel)
    with pytest.raises(JobCancelledError):
        inbox.await_failure(LONG_S)


# -- closing -----------------------------------------------------------------------------------------------------------


def closed(*errors: str) -> Closed:
    return Closed(b"", list(errors))


def test_a_slot_that_goes_while_the_attempt_closes_is_no_failure(inbox):
    for slot in (0, 1):
        inbox.on_message(slot, hello(slot))
    inbox.begin_close()
    inbox.on_message(0, closed())
    in_a_moment(inbox.on_message, 1, closed())
    inbox.on_gone(0, "it exited with code 0")
    assert set(inbox.await_closed(math.inf, lambda: {0, 1}, even_if_cancelled=False)) == {0, 1}
    inbox.check_closed()


def test_a_slot_that_has_gone_is_not_waited_for_and_that_is_no_success(inbox):
    inbox.on_message(0, hello(0))
    inbox.begin_close()
    assert inbox.await_closed(math.inf, set, even_if_cancelled=True) == {}
    with pytest.raises(SlotLostError, match="it ended before its functions were closed"):
        inbox.check_closed()


def test_a_function_that_fails_to_close_is_no_success(inbox):
    inbox.on_message(0, hello(0))
    inbox.begin_close()
    inbox.on_message(0, closed("ValueError: no"))
    with pytest.raises(JobExecutionError, match="ValueError: no"):
        inbox.check_closed()


def test_a_cancelled_attempt_stops_waiting_unless_it_closes_because_of_that(inbox):
    inbox.on_message(0, hello(0))
    inbox.cancel()
    inbox.begin_close()
    assert inbox.await_closed(math.inf, lambda: {0}, even_if_cancelled=False) == {}
    in_a_moment(inbox.on_message, 0, closed())
    assert set(inbox.await_closed(math.inf, lambda: {0}, even_if_cancelled=True)) == {0}


def test_a_failed_attempt_closes_its_other_slots(inbox):
    inbox.on_message(0, hello(0))
    inbox.on_message(1, FAILED)
    assert inbox.await_closed(math.inf, lambda: {0}, even_if_cancelled=True) == {}
    inbox.begin_close(forget_failure=True)
    in_a_moment(inbox.on_message, 0, closed())
    assert set(inbox.await_closed(math.inf, lambda: {0}, even_if_cancelled=True)) == {0}
