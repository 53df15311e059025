"""A stream that nobody reads any more is told to the jobs, whoever wrote to it, and ends them without a restart."""

from __future__ import annotations

import errno
import io
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rekindle.common.job_status import JobStatus
from rekindle.coordinator import closed_output
from rekindle.coordinator.closed_output import heard_by, tell
from rekindle.coordinator.console import Progress
from rekindle.coordinator.driver_log import DriverLog
from rekindle.coordinator.failure_messages import output_closed
from rekindle.coordinator.job import JobMaster
from rekindle.coordinator.job_events import FunctionsOpened, JobEnded
from rekindle.coordinator.restart import FixedDelay
from rekindle.errors import OutputClosedError
from rekindle.testing import ManualClock
from tests.support.waiting import becomes_true
from tests.unit.coordinator.fakes import Nowhere, checkpointing_in, spec_of

DEADLINE_S = 20.0
A_DAY_MS = 86_400_000


class Broken(io.StringIO):
    """A stream whose writes fail."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


@pytest.fixture
def heard() -> Iterator[list[str]]:
    streams: list[str] = []
    with heard_by(lambda stream, error: streams.append(stream)):
        yield streams


def test_a_line_of_progress_that_nobody_reads_is_told_and_raises_nothing(heard: list[str]) -> None:
    progress = Progress("count", "plain", ManualClock(), Broken(BrokenPipeError()))
    progress.on_event(FunctionsOpened())
    progress.on_event(JobEnded())
    assert heard == ["stderr", "stderr"]


def test_a_full_disk_is_no_closed_output(heard: list[str]) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    Progress("count", "plain", ManualClock(), Broken(full)).on_event(FunctionsOpened())
    assert heard == []
    assert not isinstance(output_closed("count", "stdout", full), OutputClosedError)
    assert isinstance(output_closed("count", "stdout", BrokenPipeError()), OutputClosedError)


def test_a_line_of_the_log_that_nobody_reads_is_told(heard: list[str]) -> None:
    log = DriverLog(stream=Broken(BrokenPipeError()))
    log.handle(logging.LogRecord("rekindle.job", logging.INFO, "", 0, "running", None, None))
    assert heard == ["stderr"]


def test_a_job_that_waits_for_its_restart_ends_with_the_output(tmp_path) -> None:
    spec = replace(spec_of(checkpointing_in(tmp_path), 1), restart=FixedDelay(1, A_DAY_MS))
    job = JobMaster(spec, Nowhere()).start()
    assert becomes_true(lambda: job.status() is JobStatus.RESTARTING, DEADLINE_S)
    tell("stdout", BrokenPipeError(32, "Broken pipe"))
    error = job.result().exception(timeout=DEADLINE_S)
    assert isinstance(error, OutputClosedError)
    assert job.status() is JobStatus.FAILED
    assert closed_output._listeners == []
