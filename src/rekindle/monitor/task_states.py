"""The states of a job's subtasks, in Flink's words, from the states of its attempts."""

from __future__ import annotations

from collections.abc import Iterable

from rekindle.coordinator.lifecycle import AttemptState
from rekindle.monitor.job_view import ENDED_TASK_STATES

#: A subtask: (chain, index).
Subtask = tuple[int, int]
#: The state into which an attempt's state brings its subtasks.
STATE_OF_TASKS: dict[AttemptState, str] = {
    AttemptState.CREATED: "CREATED",
    AttemptState.ACQUIRING: "SCHEDULED",
    AttemptState.STARTING_SLOTS: "DEPLOYING",
    AttemptState.DEPLOYING: "INITIALIZING",
    AttemptState.RUNNING: "RUNNING",
    AttemptState.CLOSING: "RUNNING",
    AttemptState.SHUTTING_DOWN: "CANCELING",
    AttemptState.FINISHED: "FINISHED",
    AttemptState.FAILED: "CANCELED",
    AttemptState.CANCELED: "CANCELED",
}


class TaskStates:
    """The state of each subtask in the current attempt, and when it entered each.

    >>> states = TaskStates([(0, 0), (0, 1)])
    >>> states.attempt_entered(AttemptState.ACQUIRING, 5)
    >>> states.attempt_entered(AttemptState.RUNNING, 7)
    >>> states.finished((0, 1), 9)
    >>> states.attempt_entered(AttemptState.FAILED, 10)
    >>> states.failed((0, 0), 11)
    >>> states.status(0, 0), states.status(0, 1), states.entered(0, 1)
    ('FAILED', 'FINISHED', {'CREATED': 5, 'SCHEDULED': 5, 'RUNNING': 7, 'FINISHED': 9})
    """

    def __init__(self, subtasks: Iterable[Subtask]) -> None:
        self._entered: dict[Subtask, dict[str, int]] = {subtask: {} for subtask in subtasks}
        self._status = dict.fromkeys(self._entered, "CREATED")

    def attempt_entered(self, state: AttemptState, now_ms: int) -> None:
        """The attempt has entered a state; a new attempt begins with ACQUIRING."""
        if state is AttemptState.ACQUIRING:
            for subtask in self._entered:
                self._entered[subtask] = {"CREATED": now_ms}
                self._status[subtask] = "CREATED"
        for subtask in self._entered:
            self._enter(subtask, STATE_OF_TASKS[state], now_ms)

    def finished(self, subtask: Subtask, now_ms: int) -> None:
        """A subtask has processed all its input."""
        self._enter(subtask, "FINISHED", now_ms)

    def failed(self, subtask: Subtask, now_ms: int) -> None:
        """A subtask was the cause of a failure; the attempt, and so the subtask, may have ended before that is told."""
        if subtask in self._entered and self._status[subtask] != "FINISHED":
            for state in ("CANCELING", "CANCELED"):
                self._entered[subtask].pop(state, None)
            self._status[subtask] = "RUNNING"
            self._enter(subtask, "FAILED", now_ms)

    def status(self, chain: int, index: int) -> str:
        """The state of a subtask."""
        return self._status.get((chain, index), "CREATED")

    def entered(self, chain: int, index: int) -> dict[str, int]:
        """When a subtask entered each state."""
        return dict(self._entered.get((chain, index), {}))

    def _enter(self, subtask: Subtask, state: str, now_ms: int) -> None:
        if self._status[subtask] not in ENDED_TASK_STATES and self._status[subtask] != state:
            self._status[subtask] = state
            self._entered[subtask][state] = now_ms
