"""A thread for calls into Spark that may never return: Spark forgets a job submitted just as its session stops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from rekindle.errors import ClusterError

T = TypeVar("T")
_ASK_EVERY_S = 0.5
#: How long a stopped session has to fail its jobs itself, with a more exact error.
_GRACE_S = 2.0


class SparkThread:
    """Runs calls one after the other on a thread of its own, which is abandoned if Spark never answers."""

    def __init__(self, is_stopped: Callable[[], bool]) -> None:
        self._is_stopped = is_stopped
        self._start()

    def _start(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=_run, args=(self._calls,), name="rekindle-spark", daemon=True).start()

    def call(self, work: Callable[[], T], job_name: str, look: Callable[[], None] | None = None) -> T:
        """Run `work` and return its result; ClusterError when the session was stopped and `work` does not return.

        `look` is called again and again meanwhile; if it raises, `work` is left behind.
        """
        future: Future[T] = Future()
        self._calls.put((work, future))
        while not _ended_within(future, _ASK_EVERY_S):
            if look is not None:
                self._leave_if_raised(look)
            if self._is_stopped() and not _ended_within(future, _GRACE_S):
                raise ClusterError(f"The Spark session was stopped while the job '{job_name}' ran.")
        return future.result()

    def close(self) -> None:
        """End the thread after the calls that wait."""
        self._calls.put(None)

    def _leave_if_raised(self, look: Callable[[], None]) -> None:
        try:
            look()
        except BaseException:
            self.close()
            self._start()  # the next call must not wait for this one
            raise


def _run(calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]) -> None:
    while (call := calls.get()) is not None:
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
