"""What an attempt's thread does while the reader of the results is far behind."""

from __future__ import annotations

import threading

import pytest

from rekindle.checkpoint.store.local import LocalStore
from rekindle.coordinator.attempt import Attempt, AttemptSettings, LastEpoch
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.coordinator.epochs import EpochLimits, Pace
from rekindle.coordinator.results import _WAITING_BATCHES, ResultQueue
from rekindle.testing import ManualClock
from tests.unit.coordinator.checkpoints.test_driver import plan_of
from tests.unit.coordinator.test_final_errors import Nowhere, Silent

LIMITS = EpochLimits(1, 1, 1, 1)


class Waiting:
    """An attempt that has a backlog, and a thread that waits for what its next epoch is for."""

    def __init__(self, directory) -> None:
        self.results = ResultQueue()
        self.checkpointing = CheckpointDriver(
            plan_of(), "0" * 32, LocalStore(directory / "own"), ManualClock(1), in_memory=False
        )
        settings = AttemptSettings(LIMITS, 1000, 1000, 0.1, 0.1, True, ())
        self.attempt = Attempt(self.checkpointing.plan, self.checkpointing, b"", Nowhere(), settings, Silent(), self)
        self.checkpointing.started(lambda message: None)
        self.results.on_room = self.checkpointing.requests.on_request = self.attempt.wake
        self.found = threading.Event()
        self.work = None

    def deliver(self, rows):
        """No epoch runs here."""

    def has_room(self):
        return self.results.has_room()

    def begin(self):
        for number in range(_WAITING_BATCHES):
            self.results.put([number])
        threading.Thread(target=self._wait, daemon=True).start()
        return self

    def _wait(self):
        self.work = self.attempt._await_work(Pace.start(LIMITS), backlog=True, last=LastEpoch(0.0, 0.0))
        self.found.set()


@pytest.fixture
def waiting(tmp_path):
    waiting = Waiting(tmp_path)
    yield waiting.begin()
    waiting.attempt._server.close()


def test_no_epoch_begins_before_there_is_room(waiting):
    """Not even for a checkpoint that is due by its timer, every 10 ms here."""
    assert not waiting.found.wait(0.3)
    next(waiting.results.batches())
    assert waiting.found.wait(10)


def test_a_savepoint_need_not_wait_for_the_reader(waiting, tmp_path):
    waiting.checkpointing.requests.ask(CheckpointKind.STOP, str(tmp_path / "savepoints"))
    assert waiting.found.wait(10)
    assert waiting.work.order.savepoint
    assert not waiting.has_room()
