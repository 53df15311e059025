"""The environment and the collaborators of an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rekindle.clock import WaitingClock
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.cluster import Cluster
from rekindle.coordinator.job_lifelines import JobLifelines
from rekindle.coordinator.observer import JobEvents
from rekindle.coordinator.source_splits import StartingSplits
from rekindle.graph.nodes import JobPlan
from rekindle.wire import TlsFiles


@dataclass(frozen=True)
class SlotEnvironment:
    """Where the slots of a job run."""

    loopback_only: bool
    python_path: tuple[str, ...]
    #: The certificate and keys with which TCP connections are encrypted.
    tls: TlsFiles | None = None


class Receiver(Protocol):
    """Takes the chunks that epochs bring to the driver; must not block."""

    def deliver(self, chunks: list[bytes]) -> None: ...

    def has_room(self) -> bool:
        """Whether more chunks may come. While not, only a requested checkpoint or savepoint begins an epoch."""


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
    """The plan and the collaborators of an attempt."""

    plan: JobPlan
    program: bytes
    environment: SlotEnvironment
    checkpointing: CheckpointDriver
    cluster: Cluster
    receiver: Receiver
    starting_splits: StartingSplits
    #: The number of attempts before this one.
    restarts: int = 0
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
