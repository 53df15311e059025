"""The cluster port: starts slots and runs epochs for the coordinator. `spark.spark_cluster` implements it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rekindle.protocol import CheckpointOrder, EpochTime, SlotLaunch
from rekindle.wire import TlsFiles


@dataclass(frozen=True)
class SlotAddress:
    """The address of a slot's pump socket."""

    host: str
    boot_id: str
    unix_path: str
    tcp_port: int


@dataclass(frozen=True)
class EpochRun:
    """One epoch to run: one Spark job with a stage per exchange."""

    job_id: str
    job_name: str
    attempt: int
    epoch: int
    stage_names: tuple[str, ...]
    slots: tuple[SlotAddress, ...]
    secret: bytes
    max_records: int
    target_ms: float
    checkpoint: CheckpointOrder | None = None
    leave: EpochTime | None = None
    dataframe_partitions: tuple[tuple[int, tuple[int, ...]], ...] = ()  # (source node id, partitions to read)
    tls: TlsFiles | None = None
    #: The lowest watermark of each alignment group.
    aligned: Mapping[str, int] = field(default_factory=dict)
    #: The nodes at the heads of chains that had input left after the epoch before, and sources that are not read yet.
    backlogged: tuple[int, ...] = ()
    #: The stage that all readers of a source have reached, by the source's node.
    source_stages: Mapping[int, int] = field(default_factory=dict)


class Cluster(Protocol):
    """Starts slots and runs epochs."""

    def prepare(self, cancelled: threading.Event) -> None:
        """Make the cluster usable before an attempt. Raises ClusterGoneError if it has gone for good, and
        JobCancelledError soon after the job was cancelled.
        """

    def driver_host(self) -> str:
        """The address at which slots reach the driver."""

    def start_slots(self, launches: Sequence[SlotLaunch]) -> object:
        """Start the slot processes; they connect to the driver on their own."""

    def run_epoch(self, run: EpochRun) -> list[bytes]:
        """Run one epoch to its end. Returns the chunks that go to the driver."""

    def cancel_epoch(self) -> None:
        """Cancel a running epoch, from another thread."""

    def close(self) -> None:
        """Release the cluster's resources: the job has ended."""
