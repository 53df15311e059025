"""Ending jobs after SIGTERM: which end each gets, what the log says of it, and with which status the program ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from rekindle.common import Configuration
from rekindle.datastream.termination import (
    TerminableJob,
    Terminated,
    Termination,
    TerminationSettings,
    _installed,
    end_jobs,
)
from rekindle.errors import CheckpointError, ConfigurationError, JobCancelledError
from tests.support.recorded_jobs import FakeHandle
from tests.support.waiting import wait_until

SAVEPOINT, CANCEL = TerminationSettings(True, 100.0), TerminationSettings(False, 100.0)
AT_ONCE = TerminationSettings(True, 0.0)


class Job(FakeHandle):
    """A job that ends when it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.over: Future[Any] = Future()

    def result(self) -> Future[Any]:
        return self.over

    def suspend(self) -> Future[None]:
        self.over.set_exception(JobCancelledError("cancelled"))
        return super().suspend()


def ended(job: Job, settings: TerminationSettings) -> bool:
    return end_jobs([TerminableJob("orders", job, settings)])


def test_a_savepoint_in_time(caplog):
    job = Job()
    job.outcome.set_result("file:///savepoints/s-1")
    assert ended(job, SAVEPOINT)
    assert job.asked == [("stop", False, None, None)]
    assert caplog.messages == [
        "SIGTERM: job 'orders' stops with a savepoint, within 100 s.",
        "Job 'orders' has stopped: its savepoint is at file:///savepoints/s-1.",
    ]


def test_a_cancellation(caplog):
    job = Job()
    assert not ended(job, CANCEL)
    assert job.asked == [("suspend",)]
    assert caplog.messages == ["SIGTERM: job 'orders' is cancelled, and its checkpoints stay."]


@pytest.mark.parametrize("error", [None, CheckpointError("The store is full.")])
def test_no_savepoint_or_none_in_time_is_a_cancellation(caplog, error):
    job = Job()
    if error is not None:
        job.outcome.set_exception(error)
    assert not ended(job, AT_ONCE)
    assert job.asked == [("stop", False, None, None), ("suspend",)]
    assert ("The store is full." if error else "was not complete after 0 s") in caplog.messages[-1]


@pytest.mark.parametrize("error", [None, RuntimeError("failed")])
def test_a_job_that_ends_by_itself_meanwhile(error):
    job = Job()
    job.outcome.set_exception(CheckpointError("The job has ended."))
    if error is None:
        job.over.set_result(None)
    else:
        job.over.set_exception(error)
    assert ended(job, SAVEPOINT) is (error is None)
    assert job.asked == [("stop", False, None, None)]


def test_only_savepoints_of_all_jobs_are_a_success():
    stopped, cancelled = Job(), Job()
    stopped.outcome.set_result("file:///savepoints/s-1")
    jobs = [TerminableJob("stopped", stopped, SAVEPOINT), TerminableJob("cancelled", cancelled, CANCEL)]
    assert not end_jobs(jobs)
    assert not end_jobs([])


@pytest.mark.parametrize(("settings", "status"), [(SAVEPOINT, 0), (CANCEL, 143)])
def test_the_program_ends_with_a_status(settings, status):
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    job = Job()
    job.outcome.set_result("file:///savepoints/s-1")
    try:
        with pytest.raises(Terminated) as terminated:
            run_until_sigterm(TerminableJob("orders", job, settings))
    finally:
        for thread in threading.enumerate():
            if thread.name == "rekindle-sigterm-end":
                thread.join(100)  # it sends signals until its block is left
        for block in list(_installed):
            block.uninstall()
        signal.signal(signal.SIGTERM, before)
    assert terminated.value.code == status


def run_until_sigterm(job: TerminableJob) -> None:
    with Termination(lambda: [job]):
        with Termination(list):  # that of `execute()` in a program of `rekindle run`
            signal.raise_signal(signal.SIGTERM)
        pytest.fail("the program went on")


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN, lambda number, frame: None])
def test_without_a_signal_every_handler_is_as_before(handler):
    before = signal.signal(signal.SIGTERM, handler)
    try:
        descriptors = set(os.listdir("/proc/self/fd"))
        with Termination(list):
            inside = signal.getsignal(signal.SIGTERM)
        wait_until(lambda: set(os.listdir("/proc/self/fd")) <= descriptors, "no descriptor is left open", 100)
        assert signal.getsignal(signal.SIGTERM) == handler
        assert (inside == handler) is (handler is not signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_forked_child_is_ended_by_it_and_its_parent_not():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with Termination(list):
            child = multiprocessing.get_context("fork").Process(target=threading.Event().wait)
            child.start()
            child.terminate()
            child.join(100)
        assert child.exitcode == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_savepoint_needs_a_directory():
    settings = {"rekindle.sigterm.action": "savepoint", "rekindle.sigterm.grace-period": "1 min"}
    with pytest.raises(ConfigurationError, match=r"set execution\.checkpointing\.savepoint-dir\.$"):
        TerminationSettings.of(Configuration.from_dict(settings))
    settings |= {"state.savepoints.dir": "/savepoints"}
    assert TerminationSettings.of(Configuration.from_dict(settings)) == TerminationSettings(True, 60.0)
