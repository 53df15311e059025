"""The whole coordinator by a manual clock: hours of timeouts, delays and heartbeats pass in no real time."""

from __future__ import annotations

from time import monotonic

from rekindle.checkpoint.store.local import LocalStore
from rekindle.common.checkpoint_statistics import CheckpointStatus
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.attempt_spec import SlotEnvironment
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.job import JobMaster, JobSpec
from rekindle.coordinator.job_events import AttemptFailed, CheckpointChanged, EpochCounted, FunctionsOpened, SlotAlive
from rekindle.coordinator.observer import JobObserver
from rekindle.coordinator.restart import FixedDelay
from rekindle.errors import ClusterError
from rekindle.testing import ManualClock
from tests.support.waiting import wait_until
from tests.unit.coordinator.checkpoints.driver_harness import plan_of
from tests.unit.coordinator.played_slots import PlayedCluster

DEADLINE_S = 20
HOUR_MS = 3_600_000
SETTINGS = {
    "execution.checkpointing.tolerable-failed-checkpoints": "1",
    "execution.buffer-timeout.interval": "1 ms",
    "rekindle.epoch.target-duration": "1 ms",
    "rekindle.epoch.initial-records": "1",
    "rekindle.epoch.max-records": "1",
    "heartbeat.interval": "60 s",
    "heartbeat.timeout": "150 s",
    "rekindle.slot.start-timeout": "60 s",
    "task.cancellation.timeout": "60 s",
}


class Notes(JobObserver):
    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.starts = self.epochs = self.heartbeats = 0
        self.aborted: list[tuple[float, int, str | None]] = []
        self.failures: list[tuple[float, BaseException]] = []

    def on_event(self, event) -> None:
        match event:
            case FunctionsOpened():
                self.starts += 1
            case EpochCounted():
                self.epochs += 1
            case SlotAlive():
                self.heartbeats += 1
            case CheckpointChanged(checkpoint) if checkpoint.status is CheckpointStatus.FAILED:
                self.aborted.append((self._clock.monotonic(), checkpoint.id, checkpoint.failure_message))
            case AttemptFailed(error):
                self.failures.append((self._clock.monotonic(), error))


class Driven:
    """A job whose time the test advances: from one time for which the coordinator waits to another."""

    def __init__(self, directory) -> None:
        self.clock = ManualClock(1)
        plan = plan_of(**SETTINGS)
        self.checkpointing = CheckpointDriver(plan, "0" * 32, LocalStore(directory), self.clock, in_memory=False)
        self.cluster, self.notes = PlayedCluster(plan), Notes(self.clock)
        spec = JobSpec(
            job_id=JobID(),
            plan=plan,
            program=b"",
            environment=SlotEnvironment(True, ()),
            checkpointing=self.checkpointing,
            restart=FixedDelay(5, HOUR_MS),
            dataframes=list,
            decode_chunks=list,
        )
        self.checkpointing.events.subscribe(self.notes)
        self.job = JobMaster(spec, self.cluster).start()

    def until(self, condition, what: str) -> None:
        wait_until(condition, what, DEADLINE_S, pause_s=0.002)

    def waits(self) -> list[float]:
        return [round(each, 3) for each in self.clock.waiting_until()]

    def advance_to(self, seconds: float, threads: int = 1) -> None:
        """Advance to a time for which threads of the coordinator wait."""
        self.until(lambda: self.waits().count(seconds) == threads, f"{threads} waits until {seconds} s")
        self.clock.advance(round((seconds - self.clock.monotonic()) * 1000))

    def passes(self, latest: float) -> None:
        """Advance past the next time for which a thread waits, unless it is later than `latest`."""
        soon = [each for each in self.clock.waiting_until() if each <= latest]
        self.clock.advance(max(0, round((soon[0] - self.clock.monotonic()) * 1000)) + 1 if soon else 0)


def test_a_checkpoint_times_out_a_heartbeat_is_missed_and_a_delay_passes_in_no_real_time(tmp_path):
    began = monotonic()
    driven = Driven(tmp_path)
    notes, cluster = driven.notes, driven.cluster
    driven.until(lambda: notes.starts == 1, "the first attempt")
    driven.until(lambda: driven.waits().count(60.0) == 2, "the first waits for a heartbeat and for a look at the claim")
    driven.advance_to(0.010)  # the interval of checkpoints
    driven.until(lambda: cluster.barriers == [1], "a barrier")

    for minute in range(1, 11):  # a heartbeat is due, and a look at the claim
        driven.advance_to(60.0 * minute, threads=2)
        driven.until(lambda minute=minute: notes.heartbeats == minute, "an answer to the driver's heartbeat")
    assert notes.aborted == []
    driven.until(lambda: driven.waits().count(660.0) == 2, "the next waits for a heartbeat and for a look at the claim")
    driven.advance_to(600.010)
    driven.until(lambda: cluster.barriers == [1, 2], "another checkpoint")
    assert notes.aborted == [(600.010, 1, "Checkpoint expired before completing.")]
    assert driven.job.status() is JobStatus.RUNNING

    driven.until(lambda: notes.epochs == 3, "the end of the epoch, the third after one without a barrier")
    cluster.slots[0].mute = True
    for minute in (11, 12, 13):
        assert notes.failures == []
        driven.advance_to(60.0 * minute, threads=2)
    driven.until(lambda: notes.failures or driven.passes(783.0), "the end of the first attempt")
    ((failed_at, lost),) = notes.failures
    assert isinstance(lost, ClusterError)
    assert "it sent no heartbeat for 150 s" in str(lost)
    assert 780.0 <= failed_at < 784.0, "at most three seconds wait for the slot's end"

    driven.advance_to(round(failed_at + 3600, 3))  # the restart delay
    driven.until(lambda: notes.starts == 2, "the second attempt")
    driven.job.cancel().result(DEADLINE_S)
    assert driven.job.status() is JobStatus.CANCELED
    assert monotonic() - began < DEADLINE_S, "more than an hour passed on the manual clock"
