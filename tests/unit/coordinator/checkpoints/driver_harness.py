"""A `CheckpointDriver` whose one task is played by the test, without Spark or slots."""

from __future__ import annotations

import msgspec

from rekindle.checkpoint.parts import CapturedOperator, write_subtask
from rekindle.checkpoint.paths import BEGUN, COMPLETED, StateFileName, shared_reference
from rekindle.checkpoint.statefile import StateFileWriter
from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.open_store import open_store
from rekindle.common import Configuration, JobStatus, Types
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.graph.build import build_plan
from rekindle.protocol import (
    CheckpointAcknowledged,
    Committed,
    WrittenOperator,
)
from rekindle.spark.storage import JobStorage
from rekindle.testing import ManualClock

NOTES = (BEGUN, COMPLETED)


def plan_of(**settings: str):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(1).enable_checkpointing(10)
    stream = env.from_collection([1, 2], Types.LONG()).map(lambda n: n, Types.LONG())
    return build_plan(env._program("shell", stream._collect()))


class Driver:
    """A `CheckpointDriver` and the one task of its job, played by the test."""

    def __init__(self, directory, recover=None, **settings: str) -> None:
        self.plan = plan_of(**settings)
        self.store = LocalStore(directory)
        keys = Configuration.from_dict({**settings, "execution.checkpointing.dir": str(directory)})
        recover = recover or JobStorage.of(plan_of(**keys.to_dict()), keys).recover
        self.sent: list = []
        self.clock = ManualClock(1)
        self.checkpointing = CheckpointDriver(
            self.plan, "0" * 32, self.store, self.clock, in_memory=False, recover=recover
        )
        self.begin()

    def begin(self) -> None:
        self.basis = self.checkpointing.begin_attempt()
        self.checkpointing.started(self.sent.append)

    def cut(self):
        """The next barrier, whose epoch counts."""
        order = None
        while order is None:
            self.checkpointing.take_requests()
            order = self.checkpointing.next_order({})
            if order is None:
                self.clock.advance(1)
        self.checkpointing.cut_stands(order, {})
        return order

    def snapshot(self, order, data: bytes = b"state") -> CheckpointAcknowledged:
        """The task's snapshot, in the store."""
        (chain,) = self.plan.chains
        operators = []
        for node in chain.nodes:
            uid = self.plan.nodes[node].uid
            name = StateFileName.of(order.id, self.basis.attempt, uid, 0)
            if order.storage is None:
                writer = StateFileWriter(self.store, self.basis.storage.root, shared_reference(name))
            else:
                place = open_store(order.storage.url)
                writer = StateFileWriter(place, order.storage.root, str(name))
            captured = CapturedOperator(0, order.id)
            captured.add_list("raw_operator", [data])
            state = write_subtask(writer, captured)
            operators.append(WrittenOperator(uid, msgspec.msgpack.encode(state), 1.0, 2.0))
        return CheckpointAcknowledged(order.id, chain.id, 0, operators, 0.0, 1.0, 2.0)

    def files(self) -> list[str]:
        """Without the notes, which outlive the checkpoints (I21)."""
        root = self.basis.storage.root
        return [entry.path for entry in self.store.list(root) if entry.path.removeprefix(f"{root}/") not in NOTES]


def finish(driver, order) -> None:
    """Complete and commit the last checkpoint, and end the job."""
    driver.checkpointing.on_message(driver.snapshot(order, b"x" * 5000))
    (chain,) = driver.plan.chains
    driver.checkpointing.on_message(Committed(order.id, chain.id, 0))
    assert driver.checkpointing.ended
    driver.checkpointing.job_ended(JobStatus.FINISHED)


def stopped(driver) -> str:
    """Stop the job with a savepoint. Returns the savepoint's URL."""
    asked = driver.checkpointing.requests.ask(CheckpointKind.STOP)
    finish(driver, driver.cut())
    return asked.result(0).location


def resumed(directory, **settings: str) -> Driver:
    """The driver of the same program, started again with `latest`."""
    return Driver(directory, **settings, **{"execution.state-recovery.path": "latest"})
