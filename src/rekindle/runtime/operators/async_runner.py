"""Calls an async function for many elements at a time on the loop's thread; the task's thread takes the ready results.

One lock guards the queue. The task's thread adds whole batches and is woken once per batch, not once per element.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from rekindle.datastream.functions import AsyncFunctionDescriptor, AsyncRetryStrategy
from rekindle.runtime.copy_on_emit import Isolate
from rekindle.runtime.operators.async_event_loop import EventLoopThread
from rekindle.runtime.operators.async_queue import (
    Element,
    Item,
    Marks,
    OrderedQueue,
    StreamElementQueue,
    UnorderedQueue,
)

#: The number of ready results that wake the task's thread while it waits.
_WAKE_RESULTS = 4096


class AsyncRunner:
    """The elements in flight of one subtask."""

    def __init__(
        self,
        descriptor: AsyncFunctionDescriptor,
        loop: EventLoopThread,
        wake: Callable[[], None],
        isolate_input: Isolate | None,
        isolate_output: Isolate | None,
    ) -> None:
        self._function = descriptor.async_function
        self._timeout_s = descriptor.timeout_ms / 1000
        self._capacity = descriptor.capacity
        self._retries = _Retries(descriptor.async_retry_strategy)
        self._loop = loop
        self._wake = wake
        self._isolate_input = isolate_input
        self._isolate_output = isolate_output
        ordered = descriptor.output_mode is AsyncFunctionDescriptor.OutputMode.ORDERED
        self._changed = threading.Condition()
        # Guarded by `_changed`:
        self._queue: StreamElementQueue = OrderedQueue() if ordered else UnorderedQueue()
        self._ready: list[Item] = []
        self._waiting: deque[Element] = deque()  # queued, call not started
        self._started = 0  # number of elements whose call has started and that are not ready
        self._failed: Element | None = None
        self._wakes_task = True  # whether to wake the task when a result becomes ready
        self._cancelled = False
        # Used by the loop's thread only:
        self._running: dict[Element, asyncio.Task[None]] = {}
        self._timeout_handle: asyncio.TimerHandle | None = None
        self._will_start = False

    # -- the task's side ----------------------------------------------------------------------------------------------

    def put(self, elements: list[Element]) -> None:
        """Queue elements behind all others; their calls start as capacity becomes free."""
        with self._changed:
            for element in elements:
                self._queue.put(element)
            self._waiting.extend(elements)
        self._loop.post(self._start)

    def mark(self, change: Callable[[Marks], None]) -> None:
        """Change the marks behind all elements."""
        with self._changed:
            change(self._queue.last_marks(self._ready))
            self._queue.release(self._ready)

    def take(self, listening: bool) -> list[Item]:
        """Return the items that may be emitted now. `listening`: wake the task when the next item becomes ready."""
        with self._changed:
            taken, self._ready = self._ready, []
            self._wakes_task = listening
            return taken

    def failed(self) -> Element | None:
        """Return an element whose call failed, which fails the job; None if none failed."""
        return self._failed

    def has_ready(self) -> bool:
        """Whether `take` would return an item, or a call has failed."""
        return bool(self._ready) or self._failed is not None

    def now(self) -> float:
        """The loop's time in seconds, by which calls time out."""
        return self._loop.loop.time()

    def wait_for_start(self, deadline: float, backlog: int) -> bool:
        """Wait until the calls of all elements have started, or many results are ready; True if some have not started.

        After the deadline wait only while more than `backlog` elements have not started.
        """
        with self._changed:
            while self._waiting and len(self._ready) < _WAKE_RESULTS and not self._has_stopped():
                left = deadline - self.now()
                if left <= 0 and len(self._waiting) <= backlog:
                    return False
                self._changed.wait(max(left, 0.05))
            return bool(self._waiting) and not self._has_stopped()

    def wait_for_end(self) -> bool:
        """Wait until all elements are ready, or many results are; True if some elements are not ready."""
        with self._changed:
            while self._queue and len(self._ready) < _WAKE_RESULTS and not self._has_stopped():
                self._changed.wait()
            return bool(self._queue) and not self._has_stopped()

    def _has_stopped(self) -> bool:
        return self._cancelled or self._failed is not None

    def in_flight(self) -> list[Item]:
        """Return the items that the task has not taken, in order."""
        with self._changed:
            return [*self._ready, *self._queue]

    def cancel(self) -> None:
        """End all waiting and all calls; called from any thread."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()
        self._loop.stop()

    # -- the loop's side ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._will_start = False
        with self._changed:
            room = min(self._capacity - self._started, len(self._waiting))
            starting = [self._waiting.popleft() for _ in range(room)]
            self._started += len(starting)
            if not self._waiting:
                self._changed.notify_all()
        if not starting:
            return
        create_task, running, isolate = self._loop.loop.create_task, self._running, self._isolate_input
        deadline = self.now() + self._timeout_s
        for element in starting:
            element.deadline = deadline
            record = element.record if isolate is None else isolate(element.record)
            running[element] = create_task(self._run(element, record))
        if self._timeout_s and self._timeout_handle is None:
            self._schedule_timeouts(self._timeout_s)

    async def _run(self, element: Element, record: Any) -> None:
        results: list[Any] = []
        failure: BaseException | None = None
        calls = 1
        while True:
            try:
                results, failure = _as_list("async_invoke", await self._function.async_invoke(record)), None
            except asyncio.CancelledError as error:
                if element not in self._running or self._cancelled:
                    raise
                failure = error
            except BaseException as error:
                failure = error
            try:
                delay_s = self._retries.delay_s(calls, results, failure)
            except Exception as error:
                delay_s, failure = None, error
            if delay_s is None:
                break
            await asyncio.sleep(delay_s)
            calls += 1
        if self._running.pop(element, None) is not None:
            self._complete(element, results, failure)

    def _complete(self, element: Element, results: list[Any], failure: BaseException | None) -> None:
        isolate = self._isolate_output
        element.results = results if isolate is None else list(map(isolate, results))
        with self._changed:
            if failure is not None:
                element.error = failure
                self._failed = self._failed or element
            else:
                self._started -= self._queue.completed(element, self._ready)
            must_tell = self._wakes_task and self.has_ready()
            if must_tell:
                self._wakes_task = False
            if failure is not None or len(self._ready) >= _WAKE_RESULTS or not self._queue:
                self._changed.notify_all()
        if must_tell:
            self._wake()
        if self._waiting and not self._will_start:
            self._will_start = True  # one start for all elements that complete in this turn of the loop
            self._loop.loop.call_soon(self._start)

    # -- timeouts -----------------------------------------------------------------------------------------------------

    def _schedule_timeouts(self, seconds: float) -> None:
        self._timeout_handle = self._loop.loop.call_later(seconds, self._time_out_elements)

    def _time_out_elements(self) -> None:
        """Time out the elements whose deadline has passed. All have the same timeout, so one timer is enough."""
        self._timeout_handle = None
        now = self.now()
        over: list[Element] = []
        for element in self._running:
            if element.deadline > now:
                self._schedule_timeouts(element.deadline - now)
                break
            over.append(element)
        for element in over:
            self._running.pop(element).cancel()
            self._time_out(element)

    def _time_out(self, element: Element) -> None:
        try:
            results = self._function.timeout(element.record)
            if inspect.isawaitable(results):
                self._loop.loop.create_task(self._await_time_out(element, results))
            else:
                self._complete(element, _as_list("timeout", results), None)
        except BaseException as error:
            self._complete(element, [], error)

    async def _await_time_out(self, element: Element, results: Any) -> None:
        try:
            self._complete(element, _as_list("timeout", await results), None)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._complete(element, [], error)


class _Retries:
    """A retry strategy with its predicates."""

    def __init__(self, strategy: AsyncRetryStrategy[Any]) -> None:
        self._strategy = strategy
        predicate = strategy.get_retry_predicate()
        self._asks_result = predicate.result_predicate()
        self._asks_error = predicate.exception_predicate()

    def delay_s(self, calls: int, results: list[Any], failure: BaseException | None) -> float | None:
        """Return how long to wait before the next call; None if there is no next call."""
        if failure is None:
            wanted = self._asks_result is not None and self._asks_result(results)
        else:
            wanted = self._asks_error is not None and isinstance(failure, Exception) and self._asks_error(failure)
        if not wanted or not self._strategy.can_retry(calls):
            return None
        return self._strategy.get_backoff_time_millis(calls) / 1000


def _as_list(method: str, results: Any) -> list[Any]:
    if isinstance(results, list):
        return results
    if isinstance(results, str | bytes) or not isinstance(results, Iterable):
        # The sentences begin as PyFlink's.
        what = "cannot be none" if results is None else "should be of list type"
        raise TypeError(
            f"The result of AsyncFunction {what}: {method}() must return a list of results, an empty one if there are "
            f"none, not {results!r}"
        )
    return list(results)
