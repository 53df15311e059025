"""Requests for checkpoints and savepoints: any thread asks, the job master's thread takes and answers them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import TypeVar

from rekindle.coordinator.checkpoints.types import Answer, CheckpointKind, CheckpointRequest, CompletedCheckpoint
from rekindle.errors import CheckpointError

T = TypeVar("T")


class CheckpointRequests:
    """The requests that wait to be taken, also before the job runs, and the futures of their callers."""

    def __init__(self, on_request: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._waiting: list[CheckpointRequest] = []
        self._futures: dict[str, Future[CompletedCheckpoint]] = {}
        self._closed: str | None = None
        #: Called from the caller's thread when there is a new request.
        self._on_request = on_request

    def ask(
        self,
        kind: CheckpointKind,
        directory: str | None = None,
        drain: bool = False,
        format_type: str | None = None,
        full: bool = False,
    ) -> Future[CompletedCheckpoint]:
        """Request a checkpoint; the future fails with a `CheckpointError` that says why there is none."""
        future: Future[CompletedCheckpoint] = Future()
        request = CheckpointRequest(uuid.uuid4().hex, kind, directory, format_type, drain, full)
        with self._lock:
            if self._closed is not None:
                future.set_exception(CheckpointError(self._closed))
                return future
            self._waiting.append(request)
            self._futures[request.token] = future
        self._on_request()
        return future

    def take(self) -> list[CheckpointRequest]:
        """The new requests since the last call."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken

    def answer(self, answer: Answer) -> None:
        """Complete the future of a request."""
        with self._lock:
            future = self._futures.pop(answer.token, None)
        if future is None:
            return
        if answer.checkpoint is not None and answer.reason is None:
            _settle(future, answer.checkpoint)
        else:
            _settle(future, CheckpointError(answer.message))

    def close(self, why: str) -> None:
        """Fail every open request, and every later one: the job has ended."""
        with self._lock:
            self._closed = why
            self._waiting.clear()
            futures, self._futures = list(self._futures.values()), {}
        for future in futures:
            _settle(future, CheckpointError(why))


def mapped(future: Future[CompletedCheckpoint], take: Callable[[CompletedCheckpoint], T]) -> Future[T]:
    """A future with one part of a checkpoint, or with the same error."""
    part: Future[T] = Future()

    def settle(done: Future[CompletedCheckpoint]) -> None:
        if not part.set_running_or_notify_cancel():
            return
        if (error := done.exception()) is not None:
            part.set_exception(error)
        else:
            part.set_result(take(done.result()))

    future.add_done_callback(settle)
    return part


def _settle(future: Future[CompletedCheckpoint], outcome: CompletedCheckpoint | CheckpointError) -> None:
    """Complete a future, unless its caller has cancelled it."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        if isinstance(outcome, CheckpointError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
    except InvalidStateError:
        pass
