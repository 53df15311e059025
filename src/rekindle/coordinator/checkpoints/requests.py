"""Checkpoints and savepoints that somebody asks for: any thread asks, the job master's thread takes and answers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError

from rekindle.coordinator.checkpoints.types import Answer, CheckpointKind, CheckpointRequest, CompletedCheckpoint
from rekindle.errors import CheckpointError


class CheckpointRequests:
    """Where requests wait for their turn, and their askers for the answer. What comes before the job runs waits too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[CheckpointRequest] = []
        self._askers: dict[str, Future[CompletedCheckpoint]] = {}
        self._closed: str | None = None
        #: Called, from the asker's thread, when there is something to take.
        self.on_request: Callable[[], None] = lambda: None

    def ask(
        self, kind: CheckpointKind, directory: str | None = None, drain: bool = False
    ) -> Future[CompletedCheckpoint]:
        """Ask for a checkpoint; the future fails with a `CheckpointError` that says why there is none."""
        asker: Future[CompletedCheckpoint] = Future()
        request = CheckpointRequest(uuid.uuid4().hex, kind, directory, drain=drain)
        with self._lock:
            if self._closed is not None:
                asker.set_exception(CheckpointError(self._closed))
                return asker
            self._waiting.append(request)
            self._askers[request.token] = asker
        self.on_request()
        return asker

    @property
    def has_requests(self) -> bool:
        """Whether `take` would bring something."""
        return bool(self._waiting)

    def take(self) -> list[CheckpointRequest]:
        """The requests that nobody has taken yet."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken

    def answer(self, answer: Answer) -> None:
        """Tell who asked."""
        with self._lock:
            asker = self._askers.pop(answer.token, None)
        if asker is None:
            return
        if answer.checkpoint is not None and answer.reason is None:
            _settle(asker, answer.checkpoint)
        else:
            _settle(asker, CheckpointError(answer.message))

    def close(self, why: str) -> None:
        """The job is over: nobody will answer any more."""
        with self._lock:
            self._closed = why
            self._waiting.clear()
            askers, self._askers = list(self._askers.values()), {}
        for asker in askers:
            _settle(asker, CheckpointError(why))


def _settle(asker: Future[CompletedCheckpoint], outcome: CompletedCheckpoint | CheckpointError) -> None:
    """Who gave up waiting (`cancel`) is not told."""
    if not asker.set_running_or_notify_cancel():
        return
    try:
        if isinstance(outcome, CheckpointError):
            asker.set_exception(outcome)
        else:
            asker.set_result(outcome)
    except InvalidStateError:
        pass
