"""`CompletableFuture`, the result type of asynchronous calls of `JobClient`."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


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
        return self._future.result(timeout)

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
