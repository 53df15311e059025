"""An attempt acquires its claim, socket and threads in `run`, and releases them however `run` ends."""

from __future__ import annotations

import os
import threading
from time import monotonic, sleep

import pytest

from rekindle.checkpoint.store.local import LocalStore
from rekindle.clock import SystemClock
from rekindle.coordinator import control
from rekindle.coordinator.attempt import Attempt
from rekindle.coordinator.attempt_spec import AttemptSpec, SlotEnvironment
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.coordinator.results import ResultReceiver
from rekindle.coordinator.source_splits import StartingSplits
from rekindle.errors import ClusterError, JobCancelledError, StoreError
from tests.unit.coordinator.checkpoints.driver_harness import plan_of
from tests.unit.coordinator.fakes import SHORT_WAITS, Nowhere

DEADLINE_S = 20


class Acquired:
    """The sockets and threads of this process, compared with those before."""

    def __init__(self) -> None:
        self.sockets, self.threads = open_sockets(), set(threading.enumerate())

    def left_open(self) -> list[object]:
        """What was opened since and is not closed within a while: threads need a moment to end."""
        deadline = monotonic() + DEADLINE_S
        while (left := self.now()) and monotonic() < deadline:
            sleep(0.01)
        return left

    def now(self) -> list[object]:
        return [*(open_sockets() - self.sockets), *(set(threading.enumerate()) - self.threads)]


def open_sockets() -> set[str]:
    links = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            links.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:  # the descriptor of the listing itself
            continue
    return {link for link in links if link.startswith("socket:")}


class Watched(Nowhere):
    """A cluster without slots that counts the calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.acquired_at_start: list[object] = []
        self.before = Acquired()

    def driver_host(self):
        self.calls.append("driver_host")
        return super().driver_host()

    def start_slots(self, launches):
        self.calls.append("start_slots")
        self.acquired_at_start = self.before.now()
        super().start_slots(launches)

    def cancel_epoch(self):
        self.calls.append("cancel_epoch")


def attempt_in(directory, cluster) -> Attempt:
    checkpointing = CheckpointDriver(
        plan_of(**SHORT_WAITS), "0" * 32, LocalStore(directory), SystemClock(), in_memory=False
    )
    environment = SlotEnvironment(True, ())
    receiver = ResultReceiver(list, hold_back=True)
    plan = checkpointing.plan
    starting = StartingSplits(plan)
    return Attempt(AttemptSpec(plan, b"", environment, checkpointing, cluster, receiver, starting))


def claims(directory) -> list:
    return list(directory.rglob("owners/*"))


def test_an_attempt_that_never_runs_has_acquired_nothing(tmp_path):
    cluster = Watched()
    attempt = attempt_in(tmp_path, cluster)
    attempt.wake()
    assert cluster.before.now() == []
    assert claims(tmp_path) == []
    assert cluster.calls == []
    assert attempt.state is AttemptState.CREATED


def test_nothing_is_open_when_the_claim_fails(tmp_path, monkeypatch):
    cluster = Watched()
    attempt = attempt_in(tmp_path, cluster)

    def refuse(self):
        raise StoreError("the network is gone for a moment")

    monkeypatch.setattr(CheckpointDriver, "begin_attempt", refuse)
    with pytest.raises(StoreError, match="the network is gone"):
        attempt.run([])
    assert attempt.state is AttemptState.FAILED
    assert cluster.before.left_open() == []
    assert cluster.calls == []


def test_nothing_is_open_when_the_control_server_cannot_start(tmp_path, monkeypatch):
    """Its socket listens, and then there is no thread for it."""
    cluster = Watched()
    attempt = attempt_in(tmp_path, cluster)

    def refuse(*arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(control, "Reception", refuse)
    with pytest.raises(RuntimeError, match="can't start"):
        attempt.run([])
    assert cluster.before.left_open() == []
    assert cluster.calls == ["driver_host"]


def test_everything_is_closed_when_the_slots_cannot_be_started(tmp_path):
    cluster = Watched()
    attempt = attempt_in(tmp_path, cluster)
    with pytest.raises(ClusterError, match="There are no slots here"):
        attempt.run([])
    assert attempt.state is AttemptState.FAILED
    assert cluster.acquired_at_start, "the control server was open"
    assert cluster.before.left_open() == []
    assert len(claims(tmp_path)) == 1
    assert cluster.calls == ["driver_host", "start_slots", "cancel_epoch"]


class StartsNothing(Watched):
    """A cluster whose slots never connect."""

    def start_slots(self, launches):
        self.calls.append("start_slots")


def test_an_attempt_that_is_cancelled_before_it_runs_ends_as_cancelled(tmp_path):
    cluster = StartsNothing()
    attempt = attempt_in(tmp_path, cluster)
    attempt.cancel()
    with pytest.raises(JobCancelledError):
        attempt.run([])
    assert attempt.state is AttemptState.CANCELED
    assert cluster.before.left_open() == []


def test_slots_that_do_not_connect_in_time_are_named(tmp_path):
    with pytest.raises(ClusterError, match=r"After 0 s slots \[0\] did not report\."):
        attempt_in(tmp_path, StartsNothing()).run([])
