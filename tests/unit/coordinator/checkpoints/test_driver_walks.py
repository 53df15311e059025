"""Random runs of a job's checkpoints on a real store: kept ones can be restored, files of others are deleted."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from rekindle.checkpoint import load_checkpoint
from rekindle.checkpoint.manifest import PartKind
from rekindle.checkpoint.parts import write_subtask
from rekindle.checkpoint.paths import (
    BEGUN,
    COMPLETED,
    StateFileName,
    below,
    metadata_path,
    savepoint_reference,
    shared_reference,
)
from rekindle.checkpoint.statefile import StateFileWriter
from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.open_store import open_store
from rekindle.checkpoint.store.port import Store
from rekindle.common import Configuration, JobStatus, Types
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import CheckpointError
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import JobPlan
from rekindle.key_groups import key_group_range
from rekindle.protocol import CheckpointAcknowledged, CheckpointDeclined, CheckpointOrder, Committed, WrittenOperator
from rekindle.testing import ManualClock
from tests.support.listed_checkpoints import list_checkpoints
from tests.unit.checkpoint.samples import captured_groups

NAME = "walk"
GROUPS = 8
HOURS_MS = 10**7
RETENTION = "execution.checkpointing.externalized-checkpoint-retention"


def plan_of(chance: random.Random, savepoints: Path) -> JobPlan:
    settings = {
        "execution.checkpointing.max-concurrent-checkpoints": str(chance.randint(1, 3)),
        "execution.checkpointing.num-retained": str(chance.randint(1, 3)),
        "execution.checkpointing.tolerable-failed-checkpoints": str(chance.randint(0, 2)),
        "execution.checkpointing.savepoint-dir": str(savepoints),
        RETENTION: chance.choice(["NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"]),
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2).set_max_parallelism(GROUPS).enable_checkpointing(HOURS_MS)
    keyed = env.from_collection([1, 2], Types.LONG()).rebalance().map(lambda n: n, Types.LONG())
    return build_plan(env._program(NAME, keyed._collect()))


class Life:
    """A driver with random slots: snapshots come, fail, come late or never, and attempts fail."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.chance = random.Random(seed)
        self.savepoints = LocalStore(directory / "savepoints")
        self.plan = plan_of(self.chance, directory / "savepoints")
        self.store = LocalStore(directory / "checkpoints")
        self.checkpointing = CheckpointDriver(
            self.plan, "0" * 32, self.store, ManualClock(1), in_memory=False, recover=lambda: None
        )
        self.subtasks = [(chain.id, subtask) for chain in self.plan.chains for subtask in range(chain.parallelism)]
        self.begin()

    def begin(self) -> None:
        self.basis = self.checkpointing.begin_attempt()
        self.awaited: list[tuple[CheckpointOrder, int, int]] = []
        self.checkpointing.started(lambda message: None)

    # -- events -------------------------------------------------------------------------------------------------------

    def trigger(self) -> None:
        checkpointing = self.checkpointing
        checkpointing.requests.ask(self.chance.choice([CheckpointKind.CHECKPOINT] * 3 + [CheckpointKind.SAVEPOINT]))
        checkpointing.take_requests()
        order = checkpointing.next_order({})
        if order is not None:
            self.cut(order)

    def cut(self, order: CheckpointOrder) -> None:
        self.awaited += [(order, *subtask) for subtask in self.subtasks]
        self.checkpointing.cut_stands(order, {})

    def acknowledge(self) -> None:
        if self.awaited:
            first = self.chance.randrange(min(4, len(self.awaited)))
            self.checkpointing.on_message(self.snapshot(*self.awaited.pop(first)))

    def write_without_acknowledging(self) -> None:
        if self.awaited:
            self.snapshot(*self.awaited[-1])

    def decline(self) -> None:
        if self.awaited:
            order, chain, subtask = self.awaited.pop()
            self.checkpointing.on_message(CheckpointDeclined(order.id, chain, subtask, "on purpose", asynchronous=True))

    def die(self) -> None:
        self.checkpointing.failed("on purpose")
        self.begin()

    def snapshot(self, order: CheckpointOrder, chain: int, subtask: int) -> CheckpointAcknowledged:
        """A snapshot of the whole state, or of the changes since the base, in its own file."""
        operators = []
        for node in (self.plan.nodes[number] for number in self.plan.chains[chain].nodes):
            name = StateFileName.of(order.id, self.basis.attempt, node.uid, subtask)
            own = key_group_range(node.max_parallelism, node.parallelism, subtask)
            changed = own if order.base_id is None else self.chance.sample(own, self.chance.randint(0, len(own)))
            kind = PartKind.FULL if order.base_id is None or self.chance.random() < 0.3 else PartKind.DELTA
            parts = captured_groups(subtask, order.id, [(group, b"%d" % order.id) for group in changed], kind)
            store: Store
            if order.storage is None:
                store, root, reference = self.store, self.basis.storage.root, shared_reference(name)
            else:
                assert order.storage.url is not None
                store, root = open_store(order.storage.url), order.storage.root
                reference = savepoint_reference(name)
            state = write_subtask(StateFileWriter(store, root, reference, inline_bytes=0), parts)
            operators.append(WrittenOperator(node.uid, msgspec.msgpack.encode(state), 1.0, 2.0))
        return CheckpointAcknowledged(order.id, chain, subtask, operators, 0.0, 1.0, 2.0)

    def end(self) -> JobStatus:
        """Cancelled, failed, or finished with a final checkpoint while others are under way."""
        status = self.chance.choice([JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FINISHED, JobStatus.FINISHED])
        if status is JobStatus.FINISHED:
            self.checkpointing.input_ended()
            while not self.checkpointing.ended:
                order = self.checkpointing.next_order({})
                if order is not None:
                    self.cut(order)
                elif self.awaited:
                    self.acknowledge()
                else:
                    ending = self.checkpointing.ledger.ending
                    assert ending is not None
                    last = ending.checkpoint.id
                    for subtask in self.subtasks:
                        self.checkpointing.on_message(Committed(last, *subtask))
        self.checkpointing.job_ended(status)
        return status

    # -- invariants ---------------------------------------------------------------------------------------------------

    def listed(self) -> list[int]:
        """The checkpoints that a restore finds; each has every byte that it needs."""
        paths = list_checkpoints(self.store, NAME)
        return sorted(load_checkpoint.load(self.store, path, deep=True).manifest.checkpoint_id for path in paths)

    def kept(self) -> list[int]:
        return [each.id for each in self.checkpointing.ledger.completed]

    def check(self) -> None:
        bases = {each.base_id for each in self.checkpointing._under_way.values() if each.base_id is not None}
        assert set(self.listed()) == {*self.kept(), *bases}

    def check_after_the_end(self) -> None:
        assert self.listed() == self.kept()
        assert exactly_needed(self.store, list_checkpoints(self.store, NAME), f"{NAME}/0")
        assert exactly_needed(self.savepoints, savepoints_of(self.savepoints))


def savepoints_of(store: LocalStore) -> list[str]:
    return [entry.path.rpartition("/")[0] for entry in store.list() if entry.path.endswith("_metadata")]


def exactly_needed(store: LocalStore, folders: list[str], prefix: str = "") -> bool:
    """Whether the files below a prefix are those of these checkpoints and no other, notes of the run apart."""
    needed = set()
    for folder in folders:
        loaded = load_checkpoint.load(store, folder, deep=True)
        needed |= {metadata_path(folder), *(below(loaded.root, each) for each in loaded.manifest.files())}
    files = {entry.path for entry in store.list() if entry.path.startswith(prefix)}
    return {path for path in files if not path.endswith((BEGUN, COMPLETED))} == needed


STEPS = ["trigger"] * 6 + ["acknowledge"] * 14 + ["write_without_acknowledging", "decline", "die"]


@pytest.mark.parametrize("seed", range(40))
def test_kept_checkpoints_load_and_the_files_of_others_are_deleted(seed: int, tmp_path: Path):
    """I12, I16, I19, for files of checkpoints that overlap, share, fail, and die with their attempt."""
    life = Life(seed, tmp_path)
    for step in life.chance.choices(STEPS, k=40):
        try:
            getattr(life, step)()
        except CheckpointError as error:
            if "tolerable" not in str(error):
                raise
            life.die()
        life.check()
    life.end()
    life.check_after_the_end()
