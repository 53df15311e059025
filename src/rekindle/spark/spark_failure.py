"""Says in one sentence of ours why Spark failed a job, from Spark's message."""

from __future__ import annotations

import os
import re
import sys

from rekindle import errors
from rekindle.errors import ClusterError, JobCancelledError, RekindleError
from rekindle.spark import internals

_RAISED_IN_PUMP = re.compile(r"^(?:rekindle\.(?:errors|wire)\.)(\w+): (.+)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^((?:\w+\.)*\w+(?:Error|Exception|Interrupt|Exit))(?:: (.+))?$", re.MULTILINE)
_CANCELLED = re.compile(r"SPARK_JOB_CANCELLED|killed via the Web UI|Job \d+ cancelled|Stage \d+ was cancelled")
_STOPPED = re.compile(r"SparkContext (?:was|has been) ?shut ?down|stopped SparkContext")
#: Rekindle, and packages that it needs in a worker; a borrowed session may use another interpreter than its program.
_MISSING = re.compile(r"No module named '(rekindle|msgspec|cloudpickle|pyarrow)")


def explain_failure(message: str, job_name: str) -> RekindleError:
    """The error, in one sentence, for Spark's message about a failed job."""
    if message.startswith(internals.JVM_GONE):
        return ClusterError(f"Spark's driver process ended while the job '{job_name}' ran.")
    if _STOPPED.search(message):
        return ClusterError(f"The Spark session was stopped while the job '{job_name}' ran.")
    if raised := _RAISED_IN_PUMP.search(message):
        kind = getattr(errors, raised[1], ClusterError)
        return (kind if issubclass(kind, RekindleError) else ClusterError)(raised[2])
    if _CANCELLED.search(message):
        return JobCancelledError(f"The job '{job_name}' was cancelled in Spark (its page, or cancelJobGroup).")
    if missing := _MISSING.search(message):
        tried = os.environ.get("PYSPARK_PYTHON", "python3")
        return ClusterError(
            f"Spark's Python workers, which run {tried}, cannot import {missing[1]}: install Rekindle for it on every "
            "worker machine or, before the session is made, set PYSPARK_PYTHON to an interpreter that has it, such as "
            f"this program's own, {sys.executable}."
        )
    if errors_in_python := _PYTHON_ERROR.findall(message):
        name, text = errors_in_python[-1]
        return ClusterError(f"A Spark task of the job '{job_name}' failed: {name}{': ' + text if text else '.'}")
    return ClusterError(f"Spark failed to run the job '{job_name}': {first_sentence(message)}")


def first_sentence(message: str) -> str:
    """The first line of a Java message, without the task scheduler's words around the cause."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "no reason was given")
    return re.sub(r"^Job aborted due to stage failure: ", "", line).split("\tat ")[0]
