"""`CloseableIterator`: the results of a running job, read in the program that started it."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from rekindle.common.completable_future import waited_for
from rekindle.common.job_client import JobClient
from rekindle.datastream.find_launcher import CollectingJob


class CloseableIterator:
    """Iterates over a job's results as they arrive. Closing it before the end cancels the job.

    >>> from concurrent.futures import Future
    >>> class FinishedJob:
    ...     def results(self): return iter([[1, 2], [3]])
    ...     def result(self):
    ...         future = Future()
    ...         future.set_result(None)
    ...         return future
    >>> with CloseableIterator(FinishedJob()) as results:
    ...     list(results)
    [1, 2, 3]
    """

    def __init__(self, job: CollectingJob) -> None:
        self._job = job
        self._batches: Iterator[list[Any]] = iter(job.results())
        self._current: Iterator[Any] = iter(())
        self._ended = False

    def next(self) -> Any:
        """Return the next result. Raises StopIteration at the end of the job, or the job's error if it failed."""
        return self.__next__()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        while not self._ended:
            for record in self._current:
                return record
            self._next_batch()
        raise StopIteration

    def _next_batch(self) -> None:
        try:
            self._current = iter(next(self._batches))
        except StopIteration:
            self._ended = True
            waited_for(self._job.result())
        except KeyboardInterrupt:
            self.close()
            raise

    def get_job_client(self) -> JobClient:
        """Return a client of the job, for its status and savepoints."""
        return JobClient(self._job)

    def close(self) -> None:
        """Cancel the job unless it has ended."""
        if not self._ended:
            self._ended = True
            self._job.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
