"""The settings and collaborators of an attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from rekindle.clock import WaitingClock
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.cluster import Cluster
from rekindle.coordinator.epoch_rules import EpochLimits
from rekindle.coordinator.job_lifelines import JobLifelines
from rekindle.coordinator.observer import JobEvents
from rekindle.coordinator.source_splits import StartingSplits
from rekindle.graph.nodes import JobPlan
from rekindle.wire import TlsFiles


@dataclass(frozen=True)
class AttemptSettings:
    """The times and limits of an attempt."""

    limits: EpochLimits
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    slot_start_timeout_s: float
    cancellation_timeout_s: float
    loopback_only: bool
    restarts: int = field(default=0, kw_only=True)
    python_path: tuple[str, ...]
    #: The time of an epoch after which records that wait in front of a task stay there and go into checkpoints; None:
    #: every epoch processes all of its records.
    leave_after_ms: float | None = field(default=None, kw_only=True)
    #: The certificate and keys with which TCP connections are encrypted.
    tls: TlsFiles | None = field(default=None, kw_only=True)


class Receiver(Protocol):
    """Takes the rows that epochs bring to the driver; must not block."""

    def deliver(self, rows: list[bytes]) -> None: ...

    def has_room(self) -> bool:
        """Whether more rows may come. While not, only a requested checkpoint or savepoint begins an epoch."""


@dataclass
class PartitionedInput:
    """The position of a DataFrame source: its partitions that are not read yet (I10)."""

    node: int
    remaining: list[int]

    def take(self, count: int) -> tuple[int, ...]:
        """Take the next partitions, each as a whole."""
        taken, self.remaining = self.remaining[:count], self.remaining[count:]
        return tuple(taken)


@dataclass(frozen=True)
class AttemptSpec:
    """The plan, the settings and the collaborators of an attempt."""

    plan: JobPlan
    program: bytes
    settings: AttemptSettings
    checkpointing: CheckpointDriver
    cluster: Cluster
    receiver: Receiver
    starting_splits: StartingSplits
    #: With local copies of state: connections that live as long as the job.
    lifelines: JobLifelines | None = None

    @property
    def clock(self) -> WaitingClock:
        """The job's clock."""
        return self.checkpointing.clock

    @property
    def events(self) -> JobEvents:
        """The events of the job."""
        return self.checkpointing.events
