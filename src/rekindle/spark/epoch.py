"""Runs one epoch as one Spark job, under names that a person finds on Spark's page."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence

from pyspark import SparkContext

from rekindle import errors
from rekindle.coordinator.cluster import EpochRun
from rekindle.errors import ClusterError, JobCancelledError, RekindleError
from rekindle.spark import internals as private
from rekindle.spark.shuffle import EpochJob, Exchange, StageInput

_RAISED_IN_PUMP = re.compile(r"^(?:rekindle\.(?:errors|wire)\.)(\w+): (.+)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^((?:\w+\.)*\w+(?:Error|Exception|Interrupt|Exit))(?:: (.+))?$", re.MULTILINE)
_CANCELLED = re.compile(r"SPARK_JOB_CANCELLED|killed via the Web UI|Job \d+ cancelled|Stage \d+ was cancelled")
_STOPPED = re.compile(r"SparkContext (?:was|has been) ?shut ?down|stopped SparkContext")
#: What Rekindle itself needs in a worker; a borrowed session may use another interpreter than its program.
_MISSING = re.compile(r"No module named '(msgspec|cloudpickle|pyarrow)")
#: A job that is being submitted at this very moment is not there to be cancelled yet: ask again.
_CANCEL_INTERVAL_S = 0.05
_CANCEL_DEADLINE_S = 5.0


class EpochRunner:
    """Runs epochs one after the other on one session; `cancel` may come from another thread."""

    def __init__(self, sc: SparkContext, *, java_stacks: bool = False) -> None:
        self._sc = sc
        self._exchange = Exchange(sc)
        self._java_stacks = java_stacks
        self._idle = threading.Event()
        self._idle.set()
        self._cancelled = False
        self._job_id = ""

    def run(self, run: EpochRun, inputs: Sequence[StageInput] = ()) -> list[bytes]:
        """Runs the epoch to its end; the rows that slots sent to the driver, in no particular order."""
        assert self._idle.is_set(), "one epoch runs at a time"
        if private.is_stopped(self._sc):
            raise ClusterError(f"The Spark session of the job '{run.job_name}' has been stopped.")
        self._cancelled, self._job_id = False, run.job_id
        self._idle.clear()
        try:
            with private.own_local_properties(self._sc):
                return self._run(run, inputs)
        except Exception as error:
            if (message := private.java_message(error)) is None:
                raise
            if private.is_stopping(self._sc):
                # Tasks fail in many ways under a session that goes.
                message = f"SparkContext was shut down ({message})"
            if not self._java_stacks:
                raise explain_failure(message, run.job_name) from None
            stack = private.java_stack(error) or message
            raise type(explained := explain_failure(message, run.job_name))(f"{explained}\n{stack}") from None
        finally:
            self._idle.set()

    def cancel(self) -> None:
        """Stops the running epoch, whose `run` then raises JobCancelledError; nothing happens when none runs."""
        self._cancelled = True
        waited = 0.0
        while not (self._idle.is_set() or private.is_stopped(self._sc)) and waited < _CANCEL_DEADLINE_S:
            private.cancel_jobs(self._sc, self._job_id)
            self._idle.wait(_CANCEL_INTERVAL_S)
            waited += _CANCEL_INTERVAL_S

    def _run(self, run: EpochRun, inputs: Sequence[StageInput]) -> list[bytes]:
        # Interrupted, a cancelled task ends at once; else only when Spark has killed its Python worker, 2 s later.
        self._sc.setJobGroup(run.job_id, describe(run), interruptOnCancel=True)
        job = self._exchange.build(run, inputs)
        try:
            if self._cancelled:
                raise JobCancelledError(f"The job '{run.job_name}' was cancelled.")
            return self._exchange.collect(job)
        finally:
            self._remove(job)

    def _remove(self, job: EpochJob) -> None:
        try:
            self._exchange.remove(job)
        except Exception as error:
            # With the session gone its files are gone too; the job's own error is the one to report.
            if private.java_message(error) is None:
                raise


def describe(run: EpochRun) -> str:
    """The job's description on Spark's page."""
    parts = [run.job_name, f"epoch {run.epoch}"]
    if run.checkpoint is not None:
        parts.append(f"checkpoint {run.checkpoint.id}")
    return " · ".join(parts)


def explain_failure(message: str, job_name: str) -> RekindleError:
    """What Spark says about a failed job, as one sentence of ours."""
    if message.startswith(private.JVM_GONE):
        return ClusterError(f"Spark's driver process ended while the job '{job_name}' ran.")
    if _STOPPED.search(message):
        return ClusterError(f"The Spark session was stopped while the job '{job_name}' ran.")
    if raised := _RAISED_IN_PUMP.search(message):
        kind = getattr(errors, raised[1], ClusterError)
        return (kind if issubclass(kind, RekindleError) else ClusterError)(raised[2])
    if _CANCELLED.search(message):
        return JobCancelledError(f"The job '{job_name}' was cancelled in Spark (its page, or cancelJobGroup).")
    if "No module named 'rekindle" in message:
        return ClusterError("Spark's Python workers cannot import rekindle: install it on every worker machine.")
    if missing := _MISSING.search(message):
        return ClusterError(
            f"Spark's Python workers cannot import {missing[1]}, which Rekindle needs: before the session is made, set"
            f" PYSPARK_PYTHON to this program's own interpreter, {sys.executable}."
        )
    if errors_in_python := _PYTHON_ERROR.findall(message):
        name, text = errors_in_python[-1]
        return ClusterError(f"A Spark task of the job '{job_name}' failed: {name}{': ' + text if text else '.'}")
    return ClusterError(f"Spark failed to run the job '{job_name}': {first_sentence(message)}")


def first_sentence(message: str) -> str:
    """The first line of a Java message, without what the task scheduler puts around the cause."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "no reason was given")
    return re.sub(r"^Job aborted due to stage failure: ", "", line).split("\tat ")[0]
