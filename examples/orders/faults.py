"""Simulated failures: a function that raises at a chosen record, to see the job recover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rekindle.datastream import CheckpointListener, MapFunction, RuntimeContext

#: The branches before which a function can be made to fail.
BRANCHES = ("deduplication", "tracking", "purchases", "stock", "batches")


class SimulatedError(RuntimeError):
    """Raised on purpose."""


@dataclass(frozen=True)
class Fault:
    """A function before a branch raises at its `record`-th record, in attempt `attempt`, or in every attempt (None).

    With `checkpoints` it starts to count once that many are complete in the attempt, so that the job has a checkpoint
    to go back to.

    >>> Fault.parse("tracking:100"), Fault.parse("stock:5:always").attempt
    (Fault(branch='tracking', record=100, attempt=0, checkpoints=0), None)
    """

    branch: str
    record: int
    attempt: int | None = 0
    checkpoints: int = 0

    @staticmethod
    def parse(text: str) -> Fault:
        """Parse `branch:record[:attempt[:checkpoints]]`; the first attempt is 0, `always` is every attempt."""
        branch, *numbers = text.split(":")
        if branch not in BRANCHES or not 1 <= len(numbers) <= 3:
            raise ValueError(
                f"{text!r} names no fault: use branch:record[:attempt[:checkpoints]], branch one of {BRANCHES}."
            )
        record, attempt, checkpoints = (*numbers, *("", "0", "0")[len(numbers) :])
        return Fault(branch, int(record), None if attempt == "always" else int(attempt), int(checkpoints))


class FailAt(MapFunction, CheckpointListener):
    """Passes every record on, except the one at which it fails. Each subtask counts its own, from 1 in each attempt."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self._faults = faults

    def open(self, runtime_context: RuntimeContext) -> None:
        attempt = runtime_context.get_attempt_number()
        self._due = next((fault for fault in self._faults if fault.attempt in (None, attempt)), None)
        self._completed = 0
        self._seen = 0

    def map(self, value: Any) -> Any:
        if self._due is not None and self._completed >= self._due.checkpoints:
            self._seen += 1
            if self._seen == self._due.record:
                raise SimulatedError(f"Simulated failure at record {self._seen}")
        return value

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._completed += 1
