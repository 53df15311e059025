"""A cluster without slots."""

from __future__ import annotations

from rekindle.checkpoint.store.local import LocalStore
from rekindle.common.job_id import JobID
from rekindle.coordinator.attempt_spec import SlotEnvironment
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.job import JobSpec
from rekindle.coordinator.restart import FixedDelay
from rekindle.errors import ClusterError
from rekindle.testing import ManualClock
from tests.unit.coordinator.checkpoints.driver_harness import plan_of

#: Settings with which an attempt waits a moment only.
SHORT_WAITS = {
    "heartbeat.interval": "1 s",
    "heartbeat.timeout": "1 s",
    "rekindle.slot.start-timeout": "100 ms",
    "task.cancellation.timeout": "100 ms",
}


class Nowhere:
    """A cluster without slots."""

    def prepare(self, cancelled):
        """There is nothing to prepare."""

    def driver_host(self):
        return "127.0.0.1"

    def start_slots(self, launches):
        raise ClusterError("There are no slots here.")

    def run_epoch(self, run):
        raise AssertionError("no slots, no epochs")

    def cancel_epoch(self):
        """Nothing runs."""

    def close(self):
        """Nothing was taken."""


def spec_of(checkpointing: CheckpointDriver, restarts: int) -> JobSpec:
    return JobSpec(
        job_id=JobID(),
        plan=checkpointing.plan,
        program=b"",
        environment=SlotEnvironment(True, ()),
        checkpointing=checkpointing,
        restart=FixedDelay(restarts, 0),
        dataframes=list,
        decode_chunks=list,
    )


def checkpointing_in(directory, recover=lambda: None) -> CheckpointDriver:
    return CheckpointDriver(
        plan_of(**SHORT_WAITS), "0" * 32, LocalStore(directory), ManualClock(1), in_memory=False, recover=recover
    )
