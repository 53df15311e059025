"""Calls into Spark return, or raise that the session was stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from rekindle.errors import ClusterError
from rekindle.spark import spark_thread
from rekindle.spark.spark_thread import SparkThread


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_thread, "_ASK_EVERY_S", 0.01)
    monkeypatch.setattr(spark_thread, "_GRACE_S", 0.05)


@pytest.fixture
def stopped() -> threading.Event:
    return threading.Event()


@pytest.fixture
def calls(stopped: threading.Event) -> Iterator[SparkThread]:
    thread = SparkThread(stopped.is_set)
    yield thread
    thread.close()


def test_results_and_errors_come_back_from_one_thread(calls: SparkThread) -> None:
    first, second = (calls.call(threading.get_ident, "job") for _ in range(2))
    assert first == second != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 // 0, "job")


def test_a_slow_call_of_a_running_session_is_waited_for(calls: SparkThread) -> None:
    go_on = threading.Event()
    threading.Timer(0.1, go_on.set).start()
    assert calls.call(lambda: go_on.wait(10), "job")


def test_an_error_that_looks_like_patience_running_out_is_the_calls_own(calls: SparkThread) -> None:
    def fail() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        calls.call(fail, "job")


def test_a_call_that_is_left_behind_holds_up_no_other(calls: SparkThread) -> None:
    stuck = threading.Event()

    def look() -> None:
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError):
        calls.call(lambda: stuck.wait(30), "job", look)
    assert calls.call(lambda: "done", "job") == "done"
    stuck.set()


def test_a_call_that_ends_after_the_stop_tells_its_own_story(calls: SparkThread, stopped: threading.Event) -> None:
    stopped.set()
    assert calls.call(lambda: "done", "job") == "done"


def test_a_call_that_a_stopped_session_forgot_is_left_behind(calls: SparkThread, stopped: threading.Event) -> None:
    forgotten = threading.Event()
    stopped.set()
    with pytest.raises(ClusterError, match="The Spark session was stopped while the job 'counted' ran"):
        calls.call(lambda: forgotten.wait(30), "counted")
    forgotten.set()
