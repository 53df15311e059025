"""What the slots of an attempt have said: reader threads write it down, the attempt's thread waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from rekindle.coordinator.checkpoints.types import CheckpointMessage
from rekindle.coordinator.console import write_log_line
from rekindle.coordinator.failure_messages import output_closed, slot_lost, task_failed
from rekindle.errors import ClusterError, JobCancelledError, RekindleError
from rekindle.protocol import (
    Closed,
    Committed,
    Deployed,
    LogLine,
    Ready,
    SlotHello,
    SlotMessage,
    SnapshotDeclined,
    SnapshotTaken,
    StageReport,
    TaskFailed,
)


@dataclass
class SlotInbox:
    """Guarded by one condition, `changed`. The first failure is the story; `on_failure` hears of it at once."""

    job_name: str
    on_failure: Callable[[], None]
    changed: threading.Condition = field(default_factory=threading.Condition)
    hellos: dict[int, SlotHello] = field(default_factory=dict)
    deployed: set[int] = field(default_factory=set)
    closed: dict[int, Closed] = field(default_factory=dict)
    reports: dict[tuple[int, int], StageReport] = field(default_factory=dict)  # (slot, stage) of the current epoch
    epoch: int = 0
    ready: bool = False
    words: list[CheckpointMessage] = field(default_factory=list)  # about checkpoints
    closing: bool = False
    cancelled: bool = False
    failure: RekindleError | None = None

    # -- reader threads -----------------------------------------------------------------------------------------------

    def on_message(self, slot: int, message: SlotMessage) -> None:
        """A slot said something."""
        if isinstance(message, LogLine):
            self._write(message)
            return
        with self.changed:
            match message:
                case SlotHello():
                    self.hellos[slot] = message
                case Deployed():
                    self.deployed.add(slot)
                case Ready():
                    self.ready = True
                case StageReport() if message.epoch == self.epoch:
                    self.reports[slot, message.stage] = message
                case Closed():
                    self.closed[slot] = message
                case SnapshotTaken() | SnapshotDeclined() | Committed():
                    self.words.append(message)
                case TaskFailed():
                    self._fail(task_failed(self.job_name, message))
            self.changed.notify_all()

    def on_gone(self, slot: int, why: str) -> None:
        """A slot's connection has ended."""
        with self.changed:
            if not self.closing:
                self._fail(slot_lost(self.job_name, slot, self.hellos.get(slot), why))
            self.changed.notify_all()

    def _write(self, line: LogLine) -> None:
        try:
            write_log_line(line)
        except (OSError, ValueError) as error:  # a broken pipe (`| head`), a full disk, a closed stream
            with self.changed:
                self._fail(output_closed(self.job_name, line.stream, error))
                self.changed.notify_all()

    def _fail(self, error: RekindleError) -> None:
        if self.failure is None and not self.closing:
            self.failure = error
            self.on_failure()

    # -- the attempt's thread -----------------------------------------------------------------------------------------

    def next_epoch(self) -> int:
        """From here on reports are about the next epoch."""
        with self.changed:
            self.epoch += 1
            self.ready = False
            self.reports.clear()
            return self.epoch

    def take_words(self) -> list[CheckpointMessage]:
        """What was said about checkpoints since the last call."""
        with self.changed:
            words, self.words = self.words, []
        return words

    def words_about(self) -> set[int]:
        """The checkpoints about which something was said since the last call of `take_words`."""
        with self.changed:
            return {word.checkpoint for word in self.words}

    def wait(self, done: Callable[[], bool], timeout_s: float | None, complaint: Callable[[], str]) -> None:
        """Wait until `done`; raises what `check` raises, and a ClusterError with the complaint when time is up."""
        deadline = None if timeout_s is None else monotonic() + timeout_s
        with self.changed:
            while not done():
                self.check()
                left = None if deadline is None else deadline - monotonic()
                if left is not None and left <= 0:
                    raise ClusterError(f"After {timeout_s:.0f} s {complaint()}.")
                self.changed.wait(left)

    def check(self) -> None:
        """Raises the attempt's failure, or JobCancelledError."""
        if self.failure is not None:
            raise self.failure
        if self.cancelled:
            raise JobCancelledError(f"Job '{self.job_name}' was cancelled.")

    # -- any thread ---------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """The attempt is to end."""
        with self.changed:
            self.cancelled = True
            self.changed.notify_all()

    def wake(self) -> None:
        """Let the attempt's thread look around."""
        with self.changed:
            self.changed.notify_all()
