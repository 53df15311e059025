"""Operations that a request starts and later requests ask about: savepoints, checkpoints, stops."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

from rekindle.web.flink_values import Json
from rekindle.web.java_throwable import failure_cause
from rekindle.web.request_errors import RequestError

#: The number of operations that are remembered; one more is refused until some are forgotten.
_MOST = 1000
#: A client that waits for an outcome asks at least this often.
_ASKS_EVERY_S = 5.0

Kind = Literal["savepoint", "checkpoint"]


@dataclass
class _Operation:
    future: Future[Any]
    done_s: float | None = None
    is_told: bool = False


class StartedOperations:
    """Operations by kind, job and request id; bounded, and safe from any thread."""

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._lock = threading.Condition()
        self._known: dict[tuple[Kind, str, str], _Operation] = {}

    def start(self, kind: Kind, job_id: str, request_id: str | None, begin: Callable[[], Future[Any]]) -> str:
        """Begin an operation unless one with this request id is known. Returns the request id, given or new."""
        key = kind, job_id, request_id or secrets.token_hex(16)
        with self._lock:
            self._forget_old()
            if key in self._known:
                return key[2]
            if len(self._known) >= _MOST:
                raise RequestError(503, f"{_MOST} operations are under way: ask again when some are over.")
            operation = self._known[key] = _Operation(Future())
        try:
            future = begin()
        except BaseException:
            with self._lock:
                self._known.pop(key, None)
            raise
        operation.future = future
        future.add_done_callback(lambda _: setattr(operation, "done_s", monotonic()))
        return key[2]

    def status(self, kind: Kind, job_id: str, request_id: str, result: Callable[[Any], Json]) -> Json:
        """The answer about an operation: under way, done with its result, or failed. RequestError: it is not known."""
        with self._lock:
            self._forget_old()
            operation = self._known.get((kind, job_id, request_id))
        if operation is None:
            raise RequestError(404, f"There is no {kind} operation with triggerId={request_id} for job {job_id}.")
        future = operation.future
        if not future.done():
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        with self._lock:
            operation.is_told = True
            self._lock.notify_all()
        error = future.exception()
        if error is not None:
            name = f"{type(error).__module__}.{type(error).__qualname__}"
            return {
                "status": {"id": "COMPLETED"},
                "operation": {"failure-cause": failure_cause(name, f"{name}: {error}")},
            }
        return {"status": {"id": "COMPLETED"}, "operation": result(future.result())}

    def wait_until_told(self) -> None:
        """Wait a moment for clients that still ask: the one that stopped a job hears where its savepoint is."""
        before_s = monotonic() - _ASKS_EVERY_S

        def are_told() -> bool:
            known = self._known.values()
            return not any(each.done_s is not None and each.done_s > before_s and not each.is_told for each in known)

        with self._lock:
            self._lock.wait_for(are_told, _ASKS_EVERY_S)

    def _forget_old(self) -> None:
        """Forget operations whose outcome no client has asked for in time."""
        before_s = monotonic() - self._kept_s
        for key, operation in list(self._known.items()):
            if operation.done_s is not None and operation.done_s < before_s:
                del self._known[key]
