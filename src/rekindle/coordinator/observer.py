"""The port of those who watch a job: the progress line, the read model of the REST API, benchmarks, tests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from rekindle.common.checkpoint_statistics import CheckpointStatistics
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.epoch_rules import EpochSummary
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.metrics import MetricReading
from rekindle.protocol import LogLine, SlotHeartbeat, SlotHello

_LOG = logging.getLogger("rekindle.job")


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
    """Tells several observers, in order. An error of one that was added later is logged, and it is told no more."""

    def __init__(self, *observers: JobObserver) -> None:
        self._trusted = observers
        self._added: list[JobObserver] = []

    def add(self, observer: JobObserver) -> None:
        """Tell one more, before the job starts; whatever it does, the job goes on."""
        self._added.append(observer)

    def _tell(self, tell: Callable[[JobObserver], None]) -> None:
        for each in self._trusted:
            tell(each)
        for each in list(self._added):
            try:
                tell(each)
            except Exception:
                self._added.remove(each)
                _LOG.exception("%s failed and watches the job no more.", type(each).__name__)

    def on_status(self, status: JobStatus) -> None:
        self._tell(lambda each: each.on_status(status))

    def on_attempt(self, number: int, state: AttemptState) -> None:
        self._tell(lambda each: each.on_attempt(number, state))

    def on_slots(self, slots: Sequence[SlotHello]) -> None:
        self._tell(lambda each: each.on_slots(slots))

    def on_started(self) -> None:
        self._tell(lambda each: each.on_started())

    def on_epoch(self, summary: EpochSummary) -> None:
        self._tell(lambda each: each.on_epoch(summary))

    def on_log(self, slot: int, line: LogLine) -> None:
        self._tell(lambda each: each.on_log(slot, line))

    def on_heartbeat(self, slot: int, heartbeat: SlotHeartbeat) -> None:
        self._tell(lambda each: each.on_heartbeat(slot, heartbeat))

    def on_checkpoint(self, checkpoint: CheckpointStatistics) -> None:
        self._tell(lambda each: each.on_checkpoint(checkpoint))

    def on_failure(self, error: BaseException, restart_in_ms: int | None) -> None:
        self._tell(lambda each: each.on_failure(error, restart_in_ms))

    def on_results(self, accumulators: dict[str, Any], metrics: Sequence[MetricReading]) -> None:
        self._tell(lambda each: each.on_results(accumulators, metrics))

    def on_ended(self) -> None:
        self._tell(lambda each: each.on_ended())

    def on_over(self) -> None:
        self._tell(lambda each: each.on_over())
