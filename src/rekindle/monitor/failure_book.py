"""The failures of a job, newest first; bounded."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable

from rekindle.errors import FailureOrigin, JobExecutionError
from rekindle.graph.nodes import Chain, JobPlan
from rekindle.monitor.job_view import FailureView
from rekindle.monitor.plan_views import vertex_id

#: The characters that are kept of a message.
_CHARACTERS = 20_000


class FailureBook:
    """Keeps the last failures. Not thread-safe."""

    def __init__(self, plan: JobPlan, limit: int, slot_of: Callable[[int], tuple[str, str] | None]) -> None:
        self._plan = plan
        self._slot_of = slot_of
        self._failures: deque[FailureView] = deque(maxlen=limit)
        self.count = 0

    def add(self, error: BaseException, now_ms: int, attempt: int, restarts: int, restart_in_ms: int | None) -> None:
        """An attempt has failed."""
        self.count += 1
        origin = error.origin if isinstance(error, JobExecutionError) else None
        chain = self.chain_of(error)
        slot = self._slot_of(self._plan.placement[chain.id, origin.subtask]) if chain and origin else None
        self._failures.appendleft(
            FailureView(
                at_ms=now_ms,
                name=_name(error, origin),
                message=_message(error, origin)[:_CHARACTERS],
                attempt=attempt,
                restarts=restarts,
                restart_in_ms=restart_in_ms,
                task=origin.task if origin else None,
                vertex=vertex_id(self._plan, chain) if chain else None,
                operator=origin.operator if origin else None,
                subtask=origin.subtask if origin else None,
                record=origin.record if origin else None,
                slot=slot[0] if slot else None,
                host=slot[1] if slot else None,
            )
        )

    def chain_of(self, error: BaseException) -> Chain | None:
        """The chain in which a failure began; None: it is not known, or no task was the cause."""
        origin = error.origin if isinstance(error, JobExecutionError) else None
        if origin is None:
            return None
        name = origin.task.rpartition(" (")[0]
        return next((chain for chain in self._plan.chains if chain.name == name), None)

    def views(self) -> list[FailureView]:
        """The failures that are kept, newest first."""
        return list(self._failures)


def _name(error: BaseException, origin: FailureOrigin | None) -> str:
    if origin is None or not origin.summary:
        return f"{type(error).__module__}.{type(error).__qualname__}"
    return origin.summary.splitlines()[0].partition(":")[0].strip() or type(error).__qualname__


def _message(error: BaseException, origin: FailureOrigin | None) -> str:
    text = str(error) if origin is not None else "".join(traceback.format_exception_only(error)).strip()
    return "\n".join([text, *getattr(error, "__notes__", ())]) if origin is not None else text
