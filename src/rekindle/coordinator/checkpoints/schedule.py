"""Decides when the next checkpoint may be triggered, and which kind it is: interval, minimum pause, maximum concurrent.

Pure: the times come in as values. `ledger.py` asks before each epoch, unless the job's last checkpoint is under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rekindle.coordinator.checkpoints.types import CheckpointKind, CheckpointRequest
from rekindle.graph.settings import CheckpointPolicy


@dataclass(frozen=True)
class Schedule:
    """The times that decide about the next checkpoint, in monotonic milliseconds.

    `pending` is the number of checkpoints under way.

    >>> policy = CheckpointPolicy(interval_ms=1000, min_pause_ms=500)
    >>> schedule = Schedule().begun(policy, now_ms=0)
    >>> schedule.next_turn_ms(policy, requests=(), pending=0, now_ms=0)
    1000
    >>> schedule = schedule.after_periodic(policy, now_ms=1000).after_completion(now_ms=1800)
    >>> schedule.next_turn_ms(policy, requests=(), pending=0, now_ms=1800)
    2300
    """

    due_ms: float = 0.0  # when the next periodic checkpoint is due
    last_completion_ms: float | None = None
    final_due_ms: float | None = None  # when the final checkpoint is due; None while there is input
    reader_behind: bool = False  # the results wait for their reader: only requested checkpoints are triggered

    # -- what the next epoch carries ----------------------------------------------------------------------------------

    def due_now(
        self, policy: CheckpointPolicy, requests: Sequence[CheckpointRequest], pending: int, now_ms: float
    ) -> tuple[CheckpointKind, CheckpointRequest | None] | None:
        """The checkpoint that the next epoch carries: its kind, and its request if it has one; None: no checkpoint."""
        turn_ms = self.next_turn_ms(policy, requests, pending, now_ms)
        if turn_ms is None or turn_ms > now_ms:
            return None
        request = next_request(policy, requests, pending)
        if request is not None:
            return request.kind, request
        return (CheckpointKind.CHECKPOINT if self.final_due_ms is None else CheckpointKind.FINAL), None

    def next_turn_ms(
        self, policy: CheckpointPolicy, requests: Sequence[CheckpointRequest], pending: int, now_ms: float
    ) -> float | None:
        """When the next checkpoint may be triggered; None: not before an event."""
        if next_request(policy, requests, pending) is not None:
            return now_ms
        if self.final_due_ms is not None:
            return self.final_due_ms
        if self.reader_behind:
            return None
        if not policy.enabled or is_full(policy, pending):
            return None
        paused_ms = 0.0 if self.last_completion_ms is None else self.last_completion_ms + policy.min_pause_ms
        return max(self.due_ms, paused_ms)

    def is_held_back(self, policy: CheckpointPolicy, pending: int, now_ms: float) -> bool:
        """Whether a periodic checkpoint is due, but as many as allowed are pending."""
        return policy.enabled and is_full(policy, pending) and self.due_ms <= now_ms

    # -- what moves the times -----------------------------------------------------------------------------------------

    def begun(self, policy: CheckpointPolicy, now_ms: float) -> Schedule:
        """The schedule of a new attempt: its interval begins now."""
        return replace(self, due_ms=now_ms + policy.interval_ms, final_due_ms=None)

    def after_periodic(self, policy: CheckpointPolicy, now_ms: float) -> Schedule:
        """The schedule after the trigger of a periodic checkpoint.

        The rate is fixed: a late start does not delay the next one, unless it was late by a whole interval.
        """
        due_ms = self.due_ms + policy.interval_ms
        return replace(self, due_ms=due_ms if due_ms > now_ms else now_ms + policy.interval_ms)

    def after_completion(self, now_ms: float) -> Schedule:
        """The schedule after a checkpoint or savepoint has completed: the minimum pause begins."""
        return replace(self, last_completion_ms=now_ms)

    def with_final(self, due_ms: float | None) -> Schedule:
        """The schedule whose final checkpoint is due then; None: no final checkpoint is due."""
        return replace(self, final_due_ms=due_ms)


def next_request(
    policy: CheckpointPolicy, requests: Sequence[CheckpointRequest], pending: int
) -> CheckpointRequest | None:
    """The first savepoint, else the first requested checkpoint if fewer than `max_concurrent` are pending."""
    savepoints = [each for each in requests if each.kind.is_savepoint]
    if savepoints:
        return savepoints[0]
    return requests[0] if requests and not is_full(policy, pending) else None


def is_full(policy: CheckpointPolicy, pending: int) -> bool:
    """Whether as many checkpoints as allowed are pending; savepoints do not wait for this."""
    return pending >= policy.max_concurrent
