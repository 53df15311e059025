"""The events of a job's life, frozen values: recorder, history, spans, progress line and results are folds of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rekindle.common.checkpoint_statistics import CheckpointStatistics
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.epoch_rules import EpochSummary
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.metrics import MetricReading
from rekindle.protocol import LogLine, SlotHeartbeat, SlotHello


@dataclass(frozen=True)
class JobShown:
    """The job can be looked at under a link."""

    link: str


@dataclass(frozen=True)
class StatusEntered:
    """The job has entered a status."""

    status: JobStatus


@dataclass(frozen=True)
class AttemptEntered:
    """An attempt has entered a state; attempts are counted over all drivers."""

    number: int
    state: AttemptState


@dataclass(frozen=True)
class SlotsConnected:
    """The slots of an attempt have connected."""

    slots: Sequence[SlotHello]


@dataclass(frozen=True)
class FunctionsOpened:
    """Every function of an attempt is open; the first epoch follows."""


@dataclass(frozen=True)
class EpochCounted:
    """An epoch counted."""

    summary: EpochSummary


@dataclass(frozen=True)
class LinePrinted:
    """A slot has printed or logged a line."""

    slot: int
    line: LogLine


@dataclass(frozen=True)
class SlotAlive:
    """A slot has sent a heartbeat."""

    slot: int
    heartbeat: SlotHeartbeat


@dataclass(frozen=True)
class CheckpointRequested:
    """A user has asked for a checkpoint or savepoint; emitted on the user's thread."""


@dataclass(frozen=True)
class CutMade:
    """The cut of a checkpoint stands: results since the last cut belong to it."""

    checkpoint_id: int


@dataclass(frozen=True)
class CutCovered:
    """A checkpoint in line is complete: a restart produces no results again that came before its cut."""

    checkpoint_id: int


@dataclass(frozen=True)
class CheckpointChanged:
    """A checkpoint was triggered, has completed or has failed."""

    checkpoint: CheckpointStatistics


@dataclass(frozen=True)
class AttemptFailed:
    """An attempt has failed; without `restart_in_ms` the job ends."""

    error: BaseException
    restart_in_ms: int | None


@dataclass(frozen=True)
class SlotsClosed:
    """The slots of an attempt have closed: its accumulators, and the last readings of its metrics."""

    accumulators: Mapping[str, Any]
    metrics: Sequence[MetricReading]


@dataclass(frozen=True)
class JobEnded:
    """The job has reached its last status; its checkpoints and slots are still to be cleaned up."""


@dataclass(frozen=True)
class JobOver:
    """Everything is cleaned up; the job's future is completed next."""


JobEvent = (
    JobShown
    | StatusEntered
    | AttemptEntered
    | SlotsConnected
    | FunctionsOpened
    | EpochCounted
    | LinePrinted
    | SlotAlive
    | CheckpointRequested
    | CutMade
    | CutCovered
    | CheckpointChanged
    | AttemptFailed
    | SlotsClosed
    | JobEnded
    | JobOver
)
