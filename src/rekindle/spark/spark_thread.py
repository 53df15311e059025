"""Calls into Spark that may never return: Spark forgets a job that was submitted in the moment its session stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from rekindle.errors import ClusterError

T = TypeVar("T")
_ASK_EVERY_S = 0.5
#: How long a stopped session has to end its jobs itself, with a better word about the reason.
_GRACE_S = 2.0


class SparkThread:
    """Runs calls one after the other on a thread of its own, which is left behind if Spark never answers."""

    def __init__(self, is_stopped: Callable[[], bool]) -> None:
        self._is_stopped = is_stopped
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._run, name="rekindle-spark", daemon=True).start()

    def call(self, work: Callable[[], T], job_name: str) -> T:
        """The result of `work`; ClusterError when the session has been stopped and the call does not come back."""
        future: Future[T] = Future()
        self._calls.put((work, future))
        while not _ended_within(future, _ASK_EVERY_S):
            if self._is_stopped() and not _ended_within(future, _GRACE_S):
                raise ClusterError(f"The Spark session was stopped while the job '{job_name}' ran.")
        return future.result()

    def close(self) -> None:
        """Lets the thread end."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            work, future = call
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)


def _ended_within(future: Future[Any], seconds: float) -> bool:
    try:
        future.exception(seconds)
    except TimeoutError:
        return False
    return True
