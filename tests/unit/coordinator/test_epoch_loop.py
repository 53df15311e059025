"""The epoch loop waits while the reader of the results is far behind."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from rekindle.checkpoint.store.local import LocalStore
from rekindle.clock import SystemClock
from rekindle.coordinator.attempt_spec import AttemptSpec, SlotEnvironment
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.coordinator.control import ControlIdentity
from rekindle.coordinator.epoch_loop import ConnectedSlots, EpochLoop, LastEpoch
from rekindle.coordinator.epoch_rules import Pace
from rekindle.coordinator.job_events import CheckpointRequested
from rekindle.coordinator.results import _WAITING_BATCHES, ResultReceiver
from rekindle.coordinator.slot_inbox import SlotInbox
from rekindle.coordinator.source_splits import StartingSplits
from rekindle.errors import JobCancelledError
from rekindle.graph.settings import EpochLimits
from tests.unit.coordinator.checkpoints.driver_harness import plan_of
from tests.unit.coordinator.fakes import SHORT_WAITS, Nowhere

LIMITS = EpochLimits(1, 1, 1, 1)


class Waiting:
    """An epoch loop that has a backlog, and a thread in which it waits for work."""

    def __init__(self, directory) -> None:
        self.receiver = ResultReceiver(list, hold_back=True, on_room=self.wake)
        self.results = self.receiver.queue
        self.checkpointing = CheckpointDriver(
            plan_of(**SHORT_WAITS), "0" * 32, LocalStore(directory / "own"), SystemClock(), in_memory=False
        )
        environment = SlotEnvironment(True, ())
        plan = self.checkpointing.plan
        starting = StartingSplits(plan)
        spec = AttemptSpec(plan, b"", environment, self.checkpointing, Nowhere(), self.receiver, starting)
        inbox = SlotInbox(plan.job_name, SystemClock(), on_failure=lambda: None)
        slots = ConnectedSlots(ControlIdentity("0" * 32, 1, plan.slots, b""), (), inbox, alive=set)
        self.loop = EpochLoop(spec, slots, epoch_thread=None)  # type: ignore[arg-type]  # no epoch runs here
        self.checkpointing.begin_attempt()
        self.checkpointing.started(lambda message: None)
        self.checkpointing.events.subscribe(self)
        self.inbox = inbox
        self.found = threading.Event()
        self.work = None

    def wake(self):
        self.inbox.wake()

    def on_event(self, event):
        if isinstance(event, CheckpointRequested):
            self.wake()

    def begin(self):
        for number in range(_WAITING_BATCHES):
            self.results.put([number])
        threading.Thread(target=self._wait, daemon=True).start()
        return self

    def _wait(self):
        self.work = self.loop.await_work(Pace.start(LIMITS), backlog=True, last=LastEpoch(0.0, 0.0))
        self.found.set()


@pytest.fixture
def waiting(tmp_path):
    return Waiting(tmp_path).begin()


def test_no_epoch_begins_before_there_is_room(waiting):
    """Not even for a checkpoint that is due by its timer, every 10 ms here."""
    assert not waiting.found.wait(0.3)
    next(waiting.results.batches())
    assert waiting.found.wait(10)


def test_a_savepoint_need_not_wait_for_the_reader(waiting, tmp_path):
    waiting.checkpointing.requests.ask(CheckpointKind.STOP, str(tmp_path / "savepoints"))
    assert waiting.found.wait(10)
    assert waiting.work.order.savepoint
    assert not waiting.receiver.has_room()


def test_a_cancellation_is_told_without_what_it_did_to_spark(tmp_path, monkeypatch):
    loop = Waiting(tmp_path).loop

    def cancelled(*_):
        loop._inbox.cancel()
        raise JobCancelledError("The job was cancelled in Spark (its page, or cancelJobGroup).")

    monkeypatch.setattr(loop, "_await_epoch", cancelled)
    monkeypatch.setattr(loop, "_epoch_thread", SimpleNamespace(submit=lambda *_: Future()))
    with pytest.raises(JobCancelledError, match=r"^Job '\w+' was cancelled\.$") as told:
        loop._run_epoch(None)
    assert told.value.__context__ is None
