"""The start of slots ends: when they are up, at its deadline, when the session has ended, when the job is cancelled."""

from __future__ import annotations

import logging
import threading

import pytest

from rekindle.errors import ClusterError, JobCancelledError
from rekindle.spark.slot_start_watch import SlotStartWatch, WantedSlots
from rekindle.testing import ManualClock


class Spark:
    def __init__(self) -> None:
        self.tasks = 0
        self.cancelled = 0
        self.ended: str | None = None

    def executors(self) -> int:
        return 0

    def active_tasks(self) -> int:
        return self.tasks

    def ending(self) -> str | None:
        return self.ended

    def cancel(self) -> None:
        self.cancelled += 1


class Start:
    """A start of four slots, looked at once a second."""

    def __init__(self) -> None:
        self.clock, self.spark, self.stop = ManualClock(), Spark(), threading.Event()
        wanted = WantedSlots("count", 4, "spark://host:7077", 60.0)
        self.watch = SlotStartWatch(wanted, self.spark, self.clock, self.stop)

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(1000)
            self.watch.look()


@pytest.fixture
def start() -> Start:
    return Start()


def test_until_the_deadline_nothing_is_cancelled_and_the_log_says_once_what_is_missing(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        start.pass_time(59)
    assert (start.spark.cancelled, start.watch.error, start.stop.is_set()) == (0, None, False)
    said = "Job 'count' waits for Spark to start 4 slots: no executor of spark://host:7077 is registered."
    assert caplog.messages == [said]


def test_at_the_deadline_the_job_is_cancelled_and_the_error_says_what_is_missing(start: Start) -> None:
    start.pass_time(60)
    assert start.spark.cancelled == 1
    assert start.stop.is_set()
    assert isinstance(start.watch.error, ClusterError)
    assert "within 60 s (slot.request.timeout): no executor of spark://host:7077" in str(start.watch.error)


def test_a_session_that_has_ended_is_not_waited_for(start: Start) -> None:
    start.pass_time(1)
    start.spark.ended = "its master has forgotten it"
    start.pass_time(5)
    assert start.spark.cancelled > 0
    assert str(start.watch.error).endswith("because its Spark session has ended: its master has forgotten it.")


def test_a_cancelled_start_that_has_no_task_is_cancelled_at_once(start: Start) -> None:
    start.stop.set()
    start.watch.look()
    assert start.spark.cancelled == 1
    assert start.watch.error is None


def test_tasks_that_are_starting_slots_get_a_moment(start: Start) -> None:
    start.spark.tasks = 2
    start.stop.set()
    start.watch.look()
    start.pass_time(1)
    assert start.spark.cancelled == 0
    start.pass_time(1)
    assert start.spark.cancelled == 1


def test_a_spark_that_does_not_end_its_job_is_left_behind(start: Start) -> None:
    start.stop.set()
    start.watch.look()
    with pytest.raises(JobCancelledError):
        start.pass_time(4)
