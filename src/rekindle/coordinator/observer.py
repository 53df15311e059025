"""The port of those who watch a job: the progress line, the read model of the REST API, benchmarks, tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.common.checkpoint_statistics import CheckpointStatistics
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.epoch_rules import EpochSummary
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.metrics import MetricReading
from rekindle.protocol import LogLine, SlotHeartbeat, SlotHello


class JobObserver:
    """Hears of a job's life. Every method is called on one of the driver's threads and must return at once."""

    def on_status(self, status: JobStatus) -> None:
        """The job has entered a status."""

    def on_attempt(self, number: int, state: AttemptState) -> None:
        """An attempt has entered a state; attempts are counted over all drivers."""

    def on_slots(self, slots: Sequence[SlotHello]) -> None:
        """The slots of an attempt have connected."""

    def on_started(self) -> None:
        """Every function of an attempt is open; the first epoch follows."""

    def on_epoch(self, summary: EpochSummary) -> None:
        """An epoch counted."""

    def on_log(self, slot: int, line: LogLine) -> None:
        """A slot has printed or logged a line."""

    def on_heartbeat(self, slot: int, heartbeat: SlotHeartbeat) -> None:
        """A slot is alive."""

    def on_checkpoint(self, checkpoint: CheckpointStatistics) -> None:
        """A checkpoint was triggered, has completed or has failed."""

    def on_failure(self, error: BaseException, restart_in_ms: int | None) -> None:
        """An attempt has failed; None: it is not restarted."""

    def on_results(self, accumulators: dict[str, Any], metrics: Sequence[MetricReading]) -> None:
        """The slots of an attempt have closed: its accumulators, and the last readings of its metrics."""

    def on_ended(self) -> None:
        """The job has reached its last status; its checkpoints and slots are still to be cleaned up."""

    def on_over(self) -> None:
        """Everything is cleaned up; the job's future is completed next."""


class Observers(JobObserver):
    """Tells several observers, in order."""

    def __init__(self, *observers: JobObserver) -> None:
        self._all = list(observers)

    def add(self, observer: JobObserver) -> None:
        """Tell one more, before the job starts."""
        self._all.append(observer)

    def on_status(self, status: JobStatus) -> None:
        for each in self._all:
            each.on_status(status)

    def on_attempt(self, number: int, state: AttemptState) -> None:
        for each in self._all:
            each.on_attempt(number, state)

    def on_slots(self, slots: Sequence[SlotHello]) -> None:
        for each in self._all:
            each.on_slots(slots)

    def on_started(self) -> None:
        for each in self._all:
            each.on_started()

    def on_epoch(self, summary: EpochSummary) -> None:
        for each in self._all:
            each.on_epoch(summary)

    def on_log(self, slot: int, line: LogLine) -> None:
        for each in self._all:
            each.on_log(slot, line)

    def on_heartbeat(self, slot: int, heartbeat: SlotHeartbeat) -> None:
        for each in self._all:
            each.on_heartbeat(slot, heartbeat)

    def on_checkpoint(self, checkpoint: CheckpointStatistics) -> None:
        for each in self._all:
            each.on_checkpoint(checkpoint)

    def on_failure(self, error: BaseException, restart_in_ms: int | None) -> None:
        for each in self._all:
            each.on_failure(error, restart_in_ms)

    def on_results(self, accumulators: dict[str, Any], metrics: Sequence[MetricReading]) -> None:
        for each in self._all:
            each.on_results(accumulators, metrics)

    def on_ended(self) -> None:
        for each in self._all:
            each.on_ended()

    def on_over(self) -> None:
        for each in self._all:
            each.on_over()
