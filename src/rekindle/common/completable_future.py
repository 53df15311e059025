"""`CompletableFuture`, the result type of asynchronous calls of `JobClient`."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, wait
from typing import Final, Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")
#: How late the handler of a signal may come that arrives right before the main thread sleeps.
_LOOK_FOR_SIGNALS_S: Final = 0.5


def waited_for(future: Future[T]) -> T:
    """Wait until the future is complete; return its value or raise its error.

    A signal right before a sleep does not wake the main thread, and its handler, Ctrl-C's too, runs when the sleep is
    over: so no sleep is long.
    """
    while not future.done():
        wait([future], _LOOK_FOR_SIGNALS_S)
    return future.result()


class CompletableFuture(Generic[T]):
    """A value that will be known later.

    >>> CompletableFuture.completed(3).result()
    3
    """

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """A future whose value is known already."""
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Cancels the future, not the job; True when the future is cancelled now."""
        self._future.cancel()
        return self._future.cancelled()

    def cancelled(self) -> bool:
        """Whether the future was cancelled before it was complete."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether the future is complete: with a value, with an error, or cancelled."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Waits until the future is complete and returns its value, or raises its error; `timeout` is in seconds."""
        return waited_for(self._future) if timeout is None else self._future.result(timeout)

    def exception(self) -> BaseException | None:
        """The error of a future that failed; None for every other, also before it is complete."""
        if not self._future.done():
            return None
        if self._future.cancelled():
            return CancelledError()
        return self._future.exception()

    def __str__(self) -> str:
        if not self.done():
            return "CompletableFuture[not completed]"
        error = self.exception()
        return "CompletableFuture[completed]" if error is None else f"CompletableFuture[failed: {error}]"

    __repr__ = __str__
