"""The inbox of an attempt: reader threads put in the messages of its slots, the attempt's thread waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rekindle.clock import WaitingClock
from rekindle.coordinator.checkpoints.types import CheckpointMessage
from rekindle.coordinator.console import write_log_line
from rekindle.coordinator.failure_messages import close_failed, output_closed, slot_lost, task_failed
from rekindle.coordinator.job_events import JobEvent, LinePrinted, SlotAlive
from rekindle.errors import ClusterError, JobCancelledError, RekindleError
from rekindle.protocol import (
    CheckpointAcknowledged,
    CheckpointDeclined,
    Closed,
    Committed,
    Deployed,
    LogLine,
    Ready,
    SinksCommitted,
    SlotHeartbeat,
    SlotHello,
    SlotMessage,
    StageReport,
    TaskFailed,
)

#: How often `await_closed` looks for slots that have gone.
_LOOK_EVERY_S = 0.2


class SlotInbox:
    """The messages of an attempt's slots, and the attempt's first failure. Safe from any thread.

    `on_failure` is called once, on a reader's thread, as soon as there is a failure; it must not block.
    """

    def __init__(
        self,
        job_name: str,
        clock: WaitingClock,
        on_failure: Callable[[], None],
        emit: Callable[[JobEvent], None] = lambda event: None,
    ) -> None:
        self._job_name, self._clock = job_name, clock
        self._emit = emit
        self._on_failure = on_failure
        self._changed = threading.Condition()  # guards everything below
        self._changes = 0
        self._hellos: dict[int, SlotHello] = {}
        self._deployed: set[int] = set()
        self._closed: dict[int, Closed] = {}
        self._epoch = 0
        self._reports: dict[tuple[int, int], StageReport] = {}  # of the current epoch, by (slot, stage)
        self._ready = False
        self._checkpoint_messages: list[CheckpointMessage] = []
        self._closing = False
        self._cancelled = False
        self._failure: RekindleError | None = None

    # -- reader threads -----------------------------------------------------------------------------------------------

    def on_message(self, slot: int, message: SlotMessage) -> None:
        """Put in a slot's message."""
        if isinstance(message, LogLine):
            self._emit(LinePrinted(slot, message))
            self._write(message)
            return
        if isinstance(message, SlotHeartbeat):
            self._emit(SlotAlive(slot, message))
            return
        with self._changed:
            match message:
                case SlotHello():
                    self._hellos[slot] = message
                case Deployed():
                    self._deployed.add(slot)
                case Ready():
                    self._ready = True
                case StageReport() if message.epoch == self._epoch:
                    self._reports[slot, message.stage] = message
                case Closed():
                    self._closed[slot] = message
                case CheckpointAcknowledged() | CheckpointDeclined() | SinksCommitted() | Committed():
                    self._checkpoint_messages.append(message)
                case TaskFailed():
                    self._fail(task_failed(self._job_name, message))
            self._notify()

    def on_gone(self, slot: int, why: str) -> None:
        """Record that a slot's connection has ended: a failure, unless the attempt is closing."""
        with self._changed:
            self._fail(slot_lost(self._job_name, slot, self._hellos.get(slot), why))
            self._notify()

    def fail(self, error: RekindleError) -> None:
        """Record a failure of the attempt that no slot has reported."""
        with self._changed:
            self._fail(error)
            self._notify()

    def _write(self, line: LogLine) -> None:
        try:
            write_log_line(line)
        except (OSError, ValueError) as error:  # a broken pipe (`| head`), a full disk, a closed stream
            with self._changed:
                self._fail(output_closed(self._job_name, line.stream, error))
                self._notify()

    def _fail(self, error: RekindleError) -> None:
        if self._failure is None and not self._closing:
            self._failure = error
            self._on_failure()

    def _notify(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    # -- start --------------------------------------------------------------------------------------------------------

    def await_hellos(self, count: int, timeout_s: float, trouble: Callable[[], str | None]) -> list[SlotHello]:
        """Wait until slots 0 to `count` - 1 have connected. Returns their hellos, in this order.

        Raises as `check` does, or ClusterError after `timeout_s`, with the server's `trouble` if it had any.
        """

        def complaint() -> str:
            missing = sorted(set(range(count)) - set(self._hellos))
            why = trouble()
            return f"slots {missing} did not report" + (f": {why}" if why is not None else "")

        self._wait(lambda: len(self._hellos) == count, timeout_s, complaint)
        return [self._hellos[slot] for slot in range(count)]

    def await_deployed(self, count: int) -> None:
        """Wait until `count` slots have restored their state and opened their functions. Raises as `check` does."""
        self._wait(lambda: len(self._deployed) == count, None, str)

    # -- epochs -------------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether a task has had something to do since the last call of `next_epoch`."""
        return self._ready

    def next_epoch(self) -> int:
        """Begin the next epoch: only its reports are kept. Returns its number."""
        with self._changed:
            self._epoch += 1
            self._ready = False
            self._reports.clear()
            return self._epoch

    def await_reports(self, count: int, timeout_s: float) -> list[StageReport]:
        """Wait for the current epoch's stage reports. Raises as `check` does, or ClusterError after `timeout_s`."""
        self._wait(
            lambda: len(self._reports) == count,
            timeout_s,
            lambda: f"only {len(self._reports)} of {count} stage reports of epoch {self._epoch} had come",
        )
        return list(self._reports.values())

    def take_checkpoint_messages(self) -> list[CheckpointMessage]:
        """The messages about checkpoints since the last call."""
        with self._changed:
            messages, self._checkpoint_messages = self._checkpoint_messages, []
        return messages

    def checkpoints_with_messages(self) -> set[int]:
        """The ids of the checkpoints that `take_checkpoint_messages` would return messages about."""
        with self._changed:
            return {message.checkpoint for message in self._checkpoint_messages}

    # -- waiting ------------------------------------------------------------------------------------------------------

    def changes(self) -> int:
        """The number of changes so far: messages, failures, cancellations and calls of `wake`."""
        with self._changed:
            return self._changes

    def wait_for_change(self, seen: int, timeout_s: float | None) -> None:
        """Wait until there are other changes than the `seen` ones, at most `timeout_s`."""
        with self._changed:
            self._clock.wait_for(self._changed, lambda: self._changes != seen, timeout_s)

    def await_failure(self, timeout_s: float) -> RekindleError | None:
        """Wait a while for a failure that a slot reports. Raises JobCancelledError if the attempt is cancelled."""
        with self._changed:
            self._clock.wait_for(self._changed, self._has_stopped, timeout_s)
            if self._failure is None:
                self.check()
            return self._failure

    def check(self) -> None:
        """Raise the attempt's failure, or JobCancelledError if the attempt is cancelled."""
        if self._failure is not None:
            raise self._failure
        if self._cancelled:
            raise JobCancelledError(f"Job '{self._job_name}' was cancelled.")

    def _wait(self, done: Callable[[], bool], timeout_s: float | None, complaint: Callable[[], str]) -> None:
        """Wait until `done`. Raises as `check` does, or ClusterError with the complaint after `timeout_s`."""
        with self._changed:
            self._clock.wait_for(self._changed, lambda: done() or self._has_stopped(), timeout_s)
            if not done():
                self.check()
                raise ClusterError(f"After {timeout_s:.0f} s {complaint()}.")

    def _has_stopped(self) -> bool:
        return self._failure is not None or self._cancelled

    # -- end ----------------------------------------------------------------------------------------------------------

    def begin_close(self, *, forget_failure: bool = False) -> None:
        """Begin to close the slots: from now on a slot that goes is no failure."""
        with self._changed:
            self._closing = True
            if forget_failure:
                self._failure = None

    def await_closed(
        self, timeout_s: float, connected: Callable[[], set[int]], *, even_if_cancelled: bool
    ) -> dict[int, Closed]:
        """Wait until every slot has closed its functions; also ends when no other slot is connected, after a failure
        or, unless `even_if_cancelled`, a cancellation, and after `timeout_s`. Returns the messages of closed slots.
        """
        deadline = self._clock.monotonic() + timeout_s
        with self._changed:
            while len(self._closed) < len(self._hellos) and self._failure is None:
                left = deadline - self._clock.monotonic()
                if left <= 0 or not (connected() - set(self._closed)) or (self._cancelled and not even_if_cancelled):
                    break
                self.wait_for_change(self._changes, min(left, _LOOK_EVERY_S))
            return dict(self._closed)

    def check_closed(self) -> None:
        """Raise unless every function was closed without an error: a sink may write its last records there."""
        self.check()
        if errors := self.close_errors():
            raise close_failed(self._job_name, errors)
        for slot in sorted(self._hellos.keys() - self._closed.keys()):
            raise slot_lost(self._job_name, slot, self._hellos[slot], "it ended before its functions were closed")

    def close_errors(self) -> list[str]:
        """The errors of functions that failed to close."""
        return [error for _, closed in sorted(self._closed.items()) for error in closed.errors]

    # -- any thread ---------------------------------------------------------------------------------------------------

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancel the attempt: `check` raises from now on."""
        with self._changed:
            self._cancelled = True
            self._notify()

    def wake(self) -> None:
        """Count a change, so that `wait_for_change` returns."""
        with self._changed:
            self._notify()
