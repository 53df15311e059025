"""One thread per task: input, timers and life-cycle calls reach user code on that thread, so users need no locks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from rekindle.clock import Clock
from rekindle.runtime.task import Task

_POLL_MIN_S = 0.001
_POLL_MAX_S = 0.05
#: A timer may be set for the end of time, which the operating system cannot wait for.
_WAIT_MAX_S = 3600.0


class TaskThread:
    """Runs mails one after the other; between epochs watches for something to do (I4)."""

    def __init__(self, task: Task, clock: Clock, ready: Callable[[], None]) -> None:
        self.task = task
        self._clock = clock
        self._ready = ready
        self._mails: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._watching = False
        self._thread = threading.Thread(target=self._run, name=task.name, daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Run a call on the task's thread."""
        future: Future[Any] = Future()
        self._mails.put((call, future))
        return future

    def watch(self) -> None:
        """From now on, until the next mail, say `ready` once when the task has something to do."""
        self.submit(self._start_watching)

    def stop(self, timeout_s: float) -> bool:
        """End the thread after the mails that wait; False if it did not end in time."""
        self._mails.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _start_watching(self) -> None:
        self._watching = True

    def _run(self) -> None:
        pause_s = _POLL_MIN_S
        while True:
            try:
                mail = self._mails.get(timeout=self._wait_s(pause_s))
            except Empty:
                pause_s = min(pause_s * 2, _POLL_MAX_S)
                self._look()
                continue
            if mail is None:
                return
            pause_s = _POLL_MIN_S
            call, future = mail
            self._watching = False
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

    def _wait_s(self, pause_s: float) -> float | None:
        if not self._watching:
            return None
        waits = [pause_s] if self.task.polls() else []
        due_ms = self.task.next_due_ms()
        if due_ms is not None:
            waits.append(min(max(0.0, (due_ms - self._clock.wall_ms()) / 1000), _WAIT_MAX_S))
        return min(waits, default=None)

    def _look(self) -> None:
        due_ms = self.task.next_due_ms()
        if self._has_input() or (due_ms is not None and due_ms <= self._clock.wall_ms()):
            self._watching = False
            self._ready()

    def _has_input(self) -> bool:
        """A reader of the user's own is asked here: its error asks for an epoch, which then fails with it."""
        try:
            return self.task.has_input()
        except BaseException as error:
            self.task.fail_next_epoch(error)
            return True
