"""Calls an async function for many elements at a time, on its loop's thread; the task's thread takes what is ready.

One lock guards the queue. The task's thread puts whole batches and is woken once per batch, not once per element.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

from rekindle.datastream.functions import AsyncFunctionDescriptor, AsyncRetryStrategy
from rekindle.runtime.event_loop import EventLoopThread
from rekindle.runtime.isolation import Isolate
from rekindle.runtime.operators.async_queue import (
    Element,
    Item,
    Marks,
    OrderedQueue,
    StreamElementQueue,
    UnorderedQueue,
)

#: So many results wake the task's thread while it waits.
_BUNCH = 4096


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
        self._waiting: deque[Element] = deque()  # in the queue, not started
        self._held = 0  # started, not ready
        self._failed: Element | None = None
        self._wakes = True  # whether the task wants to hear of what becomes ready
        self._cancelled = False
        # Of the loop's thread only:
        self._running: dict[Element, asyncio.Task[None]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._will_start = False

    # -- the task's side ----------------------------------------------------------------------------------------------

    def put(self, elements: list[Element]) -> None:
        """Elements behind all others; they start as there is room."""
        with self._changed:
            for element in elements:
                self._queue.put(element)
            self._waiting.extend(elements)
        self._loop.post(self._start)

    def mark(self, change: Callable[[Marks], None]) -> None:
        """A mark behind all elements."""
        with self._changed:
            change(self._queue.last_marks(self._ready))
            self._queue.release(self._ready)

    def take(self, listening: bool) -> list[Item]:
        """What may leave now. `listening`: the task hears of the next thing that becomes ready."""
        with self._changed:
            taken, self._ready = self._ready, []
            self._wakes = listening
            return taken

    def failed(self) -> Element | None:
        """An element whose call failed: the whole job does."""
        return self._failed

    def has_ready(self) -> bool:
        """Whether `take` would bring something."""
        return bool(self._ready) or self._failed is not None

    def wait_for_start(self, deadline: float, backlog: int) -> bool:
        """Wait until all elements have been started, or many results are ready; True if some have not been.

        After the deadline only while there are more than `backlog` of them.
        """
        with self._changed:
            while self._waiting and len(self._ready) < _BUNCH and not self._over():
                left = deadline - monotonic()
                if left <= 0 and len(self._waiting) <= backlog:
                    return False
                self._changed.wait(max(left, 0.05))
            return bool(self._waiting) and not self._over()

    def wait_for_end(self) -> bool:
        """Wait until everything is ready, or many results are; True if some are not."""
        with self._changed:
            while self._queue and len(self._ready) < _BUNCH and not self._over():
                self._changed.wait()
            return bool(self._queue) and not self._over()

    def _over(self) -> bool:
        return self._cancelled or self._failed is not None

    def in_flight(self) -> list[Item]:
        """All that the task has not taken, in order."""
        with self._changed:
            return [*self._ready, *self._queue]

    def cancel(self) -> None:
        """Nobody waits any more; called from any thread."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()
        self._loop.stop()

    # -- the loop's side ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._will_start = False
        with self._changed:
            room = min(self._capacity - self._held, len(self._waiting))
            starting = [self._waiting.popleft() for _ in range(room)]
            self._held += len(starting)
            if not self._waiting:
                self._changed.notify_all()
        if not starting:
            return
        create_task, running, isolate = self._loop.loop.create_task, self._running, self._isolate_input
        deadline = monotonic() + self._timeout_s
        for element in starting:
            element.deadline = deadline
            record = element.record if isolate is None else isolate(element.record)
            running[element] = create_task(self._run(element, record))
        if self._timeout_s and self._sweeper is None:
            self._sweep_in(self._timeout_s)

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
                self._held -= self._queue.completed(element, self._ready)
            must_tell = self._wakes and self.has_ready()
            if must_tell:
                self._wakes = False
            if failure is not None or len(self._ready) >= _BUNCH or not self._queue:
                self._changed.notify_all()
        if must_tell:
            self._wake()
        if self._waiting and not self._will_start:
            self._will_start = True  # once for all that complete in this turn of the loop
            self._loop.loop.call_soon(self._start)

    # -- time ---------------------------------------------------------------------------------------------------------

    def _sweep_in(self, seconds: float) -> None:
        self._sweeper = self._loop.loop.call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        """All elements have the same time, so those that started first are over first: one timer is enough."""
        self._sweeper = None
        now = monotonic()
        over: list[Element] = []
        for element in self._running:
            if element.deadline > now:
                self._sweep_in(element.deadline - now)
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
    """A strategy with its predicates at hand."""

    def __init__(self, strategy: AsyncRetryStrategy[Any]) -> None:
        self._strategy = strategy
        predicate = strategy.get_retry_predicate()
        self._asks_result = predicate.result_predicate()
        self._asks_error = predicate.exception_predicate()

    def delay_s(self, calls: int, results: list[Any], failure: BaseException | None) -> float | None:
        """How long to wait before the next call; None: there is none."""
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
        raise TypeError(f"{method}() must return a list of results, an empty one if there are none, not {results!r}")
    return list(results)
