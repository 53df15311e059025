"""Futures of jobs: waiting for them lets the handlers of signals run."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future

import pytest

from rekindle.common.completable_future import CompletableFuture, waited_for


@pytest.mark.timeout(60)
@pytest.mark.parametrize("wait", [waited_for, lambda future: CompletableFuture(future).result()])
def test_a_signal_that_does_not_wake_the_main_thread_is_handled_while_it_waits(wait):
    """The signal goes to another thread: the main thread sleeps on, as after one that came right before the sleep."""
    future: Future[str] = Future()
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    before = signal.signal(signal.SIGUSR1, lambda number, frame: future.set_result("handled"))
    later = threading.Timer(0.2, lambda: signal.pthread_kill(other.ident, signal.SIGUSR1))
    try:
        later.start()
        assert wait(future) == "handled"
    finally:
        later.join()
        signal.signal(signal.SIGUSR1, before)
        ended.set()
        other.join()


def test_the_error_of_a_future_is_raised():
    future: Future[None] = Future()
    future.set_exception(TimeoutError("of the job"))
    with pytest.raises(TimeoutError, match="of the job"):
        waited_for(future)
