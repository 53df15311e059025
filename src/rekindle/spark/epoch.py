"""Runs one epoch as one Spark job, with a description for Spark's web page."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pyspark import SparkContext

from rekindle.coordinator.cluster import EpochRun
from rekindle.errors import ClusterError, JobCancelledError
from rekindle.spark import internals
from rekindle.spark.shuffle import EpochJob, Exchange, StageInput
from rekindle.spark.spark_failure import explain_failure

#: Spark cannot cancel a job that is being submitted at this moment: `cancel` asks again at this interval.
_CANCEL_INTERVAL_S = 0.05
_CANCEL_DEADLINE_S = 5.0


class EpochRunner:
    """Runs epochs one after the other on one session; another thread may call `cancel`."""

    def __init__(self, sc: SparkContext, *, java_stacks: bool = False) -> None:
        self._sc = sc
        self._exchange = Exchange(sc)
        self._java_stacks = java_stacks
        self._idle = threading.Event()
        self._idle.set()
        self._cancelled = False
        self._job_id = ""

    def run(self, run: EpochRun, inputs: Sequence[StageInput] = ()) -> list[bytes]:
        """Run the epoch to its end; returns the chunks that slots sent to the driver, in no particular order."""
        assert self._idle.is_set(), "one epoch runs at a time"
        if internals.is_stopped(self._sc):
            raise ClusterError(f"The Spark session of the job '{run.job_name}' has been stopped.")
        self._cancelled, self._job_id = False, run.job_id
        self._idle.clear()
        try:
            with internals.own_local_properties(self._sc):
                return self._run(run, inputs)
        except Exception as error:
            if (message := internals.java_message(error)) is None:
                raise
            if internals.is_stopping(self._sc):
                # While a session stops, tasks fail in many ways: the stop is the reason to report.
                message = f"SparkContext was shut down ({message})"
            if not self._java_stacks:
                raise explain_failure(message, run.job_name) from None
            stack = internals.java_stack(error) or message
            raise type(explained := explain_failure(message, run.job_name))(f"{explained}\n{stack}") from None
        finally:
            self._idle.set()

    def cancel(self) -> None:
        """Stop the running epoch, whose `run` then raises JobCancelledError; do nothing when none runs."""
        self._cancelled = True
        waited = 0.0
        while not (self._idle.is_set() or internals.is_stopped(self._sc)) and waited < _CANCEL_DEADLINE_S:
            internals.cancel_jobs(self._sc, self._job_id)
            self._idle.wait(_CANCEL_INTERVAL_S)
            waited += _CANCEL_INTERVAL_S

    def _run(self, run: EpochRun, inputs: Sequence[StageInput]) -> list[bytes]:
        # An interrupted task ends at once when it is cancelled; another only 2 s later, when Spark kills its worker.
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
            # A stopped session has removed its files; the job's own error is the one to report.
            if internals.java_message(error) is None:
                raise


def describe(run: EpochRun) -> str:
    """The job's description on Spark's web page."""
    parts = [run.job_name, f"epoch {run.epoch}"]
    if run.checkpoint is not None:
        parts.append(f"checkpoint {run.checkpoint.id}")
    return " · ".join(parts)
