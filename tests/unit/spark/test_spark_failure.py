"""Spark's message about a failed job becomes an error in one sentence."""

from __future__ import annotations

import os
import sys

import pytest

from rekindle.errors import ClusterError, JobCancelledError, ProtocolError, RekindleError, SlotLostError
from rekindle.spark.spark_failure import explain_failure, first_sentence

PYSPARK_PYTHON = os.environ.get("PYSPARK_PYTHON", "python3")

PYTHON_FAILURE = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task
Traceback (most recent call last):
  File "worker.py", line 1, in main
{raised}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
"""


@pytest.mark.parametrize(
    ("message", "kind", "said"),
    [
        (
            PYTHON_FAILURE.format(raised="rekindle.errors.SlotLostError: Slot 1 went away in epoch 2, stage 0 (x)."),
            SlotLostError,
            "Slot 1 went away in epoch 2, stage 0 (x).",
        ),
        (
            PYTHON_FAILURE.format(raised="rekindle.errors.ProtocolError: Slot 0 refused: seen."),
            ProtocolError,
            "Slot 0 refused: seen.",
        ),
        (
            PYTHON_FAILURE.format(raised="rekindle.wire.ConnectionClosedError: connection closed"),
            ClusterError,
            "connection closed",
        ),
        (
            PYTHON_FAILURE.format(raised="ModuleNotFoundError: No module named 'rekindle'"),
            ClusterError,
            f"Spark's Python workers, which run {PYSPARK_PYTHON}, cannot import rekindle: install Rekindle for it on "
            "every worker machine or, before the session is made, set PYSPARK_PYTHON to an interpreter that has it, "
            f"such as this program's own, {sys.executable}.",
        ),
        (
            PYTHON_FAILURE.format(raised="MemoryError"),
            ClusterError,
            "A Spark task of the job 'orders' failed: MemoryError.",
        ),
        (
            "[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group abc SQLSTATE: XXKDA",
            JobCancelledError,
            "The job 'orders' was cancelled in Spark (its page, or cancelJobGroup).",
        ),
        (
            "Job 3 cancelled because SparkContext was shut down",
            ClusterError,
            "The Spark session was stopped while the job 'orders' ran.",
        ),
        (
            "Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited): exit code 137\n\tat x",
            ClusterError,
            "Spark failed to run the job 'orders': ExecutorLostFailure (executor 1 exited): exit code 137",
        ),
    ],
)
def test_a_failure_is_one_sentence(message: str, kind: type[RekindleError], said: str) -> None:
    error = explain_failure(message, "orders")
    assert type(error) is kind
    assert str(error) == said


def test_an_empty_message_is_said_to_be_empty() -> None:
    assert first_sentence(" \n") == "no reason was given"
