"""Runs jobs in this process instead of on Spark: PyFlink's tests in a minute, for the one who changes the API."""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future
from typing import Any

from rekindle import config
from rekindle.clock import SystemClock
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.datastream import find_launcher
from rekindle.datastream.transformations import Program
from rekindle.errors import JobExecutionError
from rekindle.graph.build import build_plan
from rekindle.runtime.failure_report import user_traceback
from rekindle.spark import launcher
from rekindle.spark.java_error import error_for_program
from rekindle.testing.in_process import InProcessJob


class FinishedJob:
    """A job that has run to its end."""

    def __init__(self, program: Program) -> None:
        self.job_id = JobID()
        self._future: Future[JobExecutionResult] = Future()
        self._results: list[Any] = []
        for added in program.configuration.get(config.PYTHON_FILES) or ():
            sys.path.append(os.path.dirname(added))
        try:
            job = InProcessJob(build_plan(program, 2), SystemClock(), max_records=3)
            self._results = job.run()
            self._future.set_result(JobExecutionResult(self.job_id, 1, {}))
        except Exception as error:
            cause = error.__cause__ or error
            told = JobExecutionError(f"{user_traceback(cause)}\n\nJob '{program.job_name}' failed: {error}.")
            self._future.set_exception(error_for_program()(told))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def result(self) -> Future[JobExecutionResult]:
        """The job's result."""
        return self._future

    def results(self) -> Any:
        """The collected records."""
        return iter([self._results])

    def cancel(self) -> Future[None]:
        """It has ended already."""
        done: Future[None] = Future()
        done.set_result(None)
        return done


class InProcessLauncher:
    """The functions of the launcher's module."""

    launch = FinishedJob
    plan_json = staticmethod(launcher.plan_json)
    explain = staticmethod(launcher.explain)
    dataframe_type = staticmethod(launcher.dataframe_type)
    query_engine = staticmethod(launcher.query_engine)


def install() -> None:
    """Let every job of this process run in it."""
    find_launcher.load_launcher = lambda: InProcessLauncher  # type: ignore[assignment,return-value]
