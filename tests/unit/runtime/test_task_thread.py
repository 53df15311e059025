"""Between epochs a task's thread watches for input; an error there is reported, never swallowed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

import pytest

from rekindle.clock import SystemClock
from rekindle.common import WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceSplit
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.task import Task
from rekindle.runtime.task_head import EpochBudget
from rekindle.runtime.task_thread import TaskThread
from rekindle.system import readable
from rekindle.testing.in_process import InProcessJob
from tests.support.environments import environment

DEADLINE_S = 30.0
BUDGET = EpochBudget(max_records=100, target_ms=1000)


class QuietReader(SourceReader):
    """Returns no record, and says that it may have one."""

    def poll(self, max_records):
        return []

    def snapshot_state(self, checkpoint_id: int):
        return []


class BrokenReader(QuietReader):
    def is_available(self):
        raise OSError("the disk has gone")


class Reading(Source):
    def __init__(self, reader: type[SourceReader]) -> None:
        self.reader = reader

    def boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit("0")]

    def create_reader(self, context, splits):
        return self.reader()


def task_reading(reader: type[SourceReader]) -> Task:
    env = environment(1)
    job = InProcessJob.of(env.from_source(Reading(reader), WatermarkStrategy.no_watermarks(), "reading"))
    (task,) = job.tasks.values()
    return task


def test_a_reader_that_fails_between_epochs_fails_the_next_one():
    task, ready = task_reading(BrokenReader), threading.Event()
    thread = TaskThread(task, SystemClock(), ready.set)
    thread.submit(task.open).result(DEADLINE_S)
    thread.watch()
    assert ready.wait(DEADLINE_S), "nobody would ever ask for an epoch: the job would sleep for ever"
    with pytest.raises(OperatorFailure) as caught:
        thread.submit(lambda: task.run_epoch(BUDGET)).result(DEADLINE_S)
    assert isinstance(caught.value.__cause__, OSError)
    assert thread.submit(task.close).result(DEADLINE_S) == []
    assert thread.stop(DEADLINE_S)


def test_a_reader_without_records_is_no_backlog_though_it_says_available():
    task = task_reading(QuietReader)
    task.open()
    assert task.has_input()
    assert not task.run_epoch(BUDGET).more, "epochs would follow each other without a pause"


class ForEver(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer((1 << 63) - 1)


def test_a_timer_at_the_end_of_time_does_not_end_the_thread():
    env = environment(1)
    job = InProcessJob.of(env.from_sequence(1, 10).key_by(lambda n: n).process(ForEver()), max_records=1)
    job.epoch()
    task = next(task for task in job.tasks.values() if task.next_due_ms() is not None)
    thread = TaskThread(task, SystemClock(), lambda: None)
    thread.watch()
    thread.submit(lambda: None).result(DEADLINE_S)
    thread.watch()
    assert thread.submit(lambda: "alive").result(DEADLINE_S) == "alive"
    assert thread.stop(DEADLINE_S)


def leave_by_exit():
    sys.exit(3)


def leave_by_error():
    raise ValueError("in the child")


def leave_by_return():
    """Forks, and the child returns into the engine because its author forgot to end it."""


@pytest.mark.parametrize(("leave", "status"), [(leave_by_exit, 3), (leave_by_error, 1), (leave_by_return, 0)])
def test_a_process_that_user_code_forks_does_not_go_on_as_a_second_slot(leave, status):
    """Otherwise the parent waits for the child for ever, and the child keeps the slot's connections open."""

    def forks():
        child = os.fork()
        if child == 0:
            leave()
            return None
        return child

    thread = TaskThread(task_reading(QuietReader), SystemClock(), lambda: None)
    child = thread.submit(forks).result(DEADLINE_S)
    try:
        ended = os.pidfd_open(child)
        assert readable([ended], DEADLINE_S), "the child lives on"
        os.close(ended)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, how = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(how) == status
    assert thread.submit(lambda: "alive").result(DEADLINE_S) == "alive"
    assert thread.stop(DEADLINE_S)
