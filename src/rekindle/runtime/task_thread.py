"""One thread per task: all calls of user code run on it (input, timers, life cycle), so users need no locks."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NoReturn

from rekindle.clock import Clock
from rekindle.runtime.task import Task

_POLL_MIN_S = 0.001
_POLL_MAX_S = 0.05
#: A timer may be set for the end of time, which is longer than the operating system can wait.
_WAIT_MAX_S = 3600.0


class TaskThread:
    """Runs mails one after the other; between epochs it checks whether the task has something to do (I4)."""

    def __init__(self, task: Task, clock: Clock, ready: Callable[[], None]) -> None:
        self.task = task
        self._clock = clock
        self._ready = ready
        self._mails: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._watching = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name=task.name, daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Run a call on the task's thread; return its future."""
        future: Future[Any] = Future()
        self._mails.put((call, future))
        return future

    def watch(self) -> None:
        """Until the next mail, check the task and call `ready` once it has something to do."""
        self.submit(self._start_watching)

    def stop(self, timeout_s: float) -> bool:
        """End the thread after the queued mails; False if it did not end in time."""
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
                self._check_task()
                continue
            if mail is None:
                return
            pause_s = _POLL_MIN_S
            call, future = mail
            self._watching = False
            try:
                result = call()
            except BaseException as error:
                self._end_if_forked(error)
                future.set_exception(error)
            else:
                self._end_if_forked()
                future.set_result(result)

    def _end_if_forked(self, error: BaseException | None = None) -> None:
        """End this process if user code has forked it: the child must not go on as a second slot."""
        if os.getpid() != self._process:
            _exit_process(error)

    def _wait_s(self, pause_s: float) -> float | None:
        if not self._watching:
            return None
        waits = [pause_s] if self.task.polls() else []
        due_ms = self.task.next_due_ms()
        if due_ms is not None:
            waits.append(min(max(0.0, (due_ms - self._clock.wall_ms()) / 1000), _WAIT_MAX_S))
        return min(waits, default=None)

    def _check_task(self) -> None:
        due_ms = self.task.next_due_ms()
        if self._has_input() or (due_ms is not None and due_ms <= self._clock.wall_ms()):
            self._watching = False
            self._ready()

    def _has_input(self) -> bool:
        """Whether the task has input. A user's reader may fail here: its error is raised in the next epoch."""
        try:
            return self.task.has_input()
        except BaseException as error:
            self.task.fail_next_epoch(error)
            return True


def _exit_process(error: BaseException | None) -> NoReturn:
    """End the process as a Python program ends, without the slot's exit handlers."""
    status = 0
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    elif error is not None:
        status = 1
        traceback.print_exception(error)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
