"""After any writes, aborts, completions and losses, stored files restore the state at the cut, and stay bounded (I12).

One subtask with keyed state and timers, in memory or on disk, goes through real snapshots, files and manifests, with
bounds so small that a few dozen steps reach all of them.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rekindle.checkpoint.compaction import RewriteRules
from rekindle.checkpoint.manifest import FileRef, SubtaskState
from rekindle.checkpoint.parts import CapturedOperator, on_top_of, write_subtask
from rekindle.checkpoint.read_state import read_parts
from rekindle.checkpoint.statefile import StateFileWriter
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.common.typeinfo import Types
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.snapshot import CaptureInput, capture_operator
from rekindle.runtime.state import capture
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.inventory import Inventories
from rekindle.runtime.state.operator_state import OperatorStateBackend
from tests.support.keyed_backends import BACKENDS, TIMERS

GROUPS = 4
KEYS = ["a", "b", "c", "d", "e", 1, 2, 3]
RULES = RewriteRules(pressing_deltas=3, most_deltas=6, cycle=6, most_files=10, part_bytes=8, small_bytes=64)
# state -> key -> contents; "timers" -> (time, key)
Model = dict[str, dict[Any, Any]]

keys = st.sampled_from(KEYS)
times = st.integers(0, 20)


class Subtask:
    def __init__(self, kind: str) -> None:
        self.keyed = BACKENDS[kind](GROUPS, range(GROUPS), KeyedStateOptions(defer_reads=True))
        self.keyed.inventories = Inventories(RULES)
        self.timers = TIMERS[kind](GROUPS, range(GROUPS))
        self.context: Any = SimpleNamespace(
            keyed=self.keyed, timers=self.timers, operator_state=OperatorStateBackend(0), subtask=0
        )

    def restore(self, store: MemoryStore, stored: SubtaskState | None) -> Subtask:
        if stored is not None:
            self.keyed.restore(read_parts(store, "root", stored.keyed))
            self.keyed.inventories.restored(stored)
            self.timers.restore(read_parts(store, "root", stored.timers))
        self.value = keyed_state(self.keyed, ValueStateDescriptor("value", Types.STRING()))
        self.list = keyed_state(self.keyed, ListStateDescriptor("list", Types.LONG()))
        return self

    def take(self, order: CheckpointOrder) -> CapturedOperator:
        source = CaptureInput("op", "op", self.context, lambda context: None, committables=lambda number: ())
        return capture_operator(source, order)

    def content(self) -> Model:
        model: Model = {"value": {}, "list": {}, "timers": {}}
        for key in KEYS:
            self.keyed.set_current_key(key)
            if self.value.value() is not None:
                model["value"][key] = self.value.value()
            if self.list.get():
                model["list"][key] = list(self.list.get())
        for time, key, _ in self.timers.event.all():
            model["timers"][time, key] = None
        return model


class Chains(RuleBasedStateMachine):
    kind = "hashmap"

    def __init__(self) -> None:
        super().__init__()
        # Even a single row is read after the cut.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(capture, "WORTHWHILE_ROWS", 1)

    @initialize()
    def start(self) -> None:
        self.store = MemoryStore()
        self.subtask = Subtask(self.kind).restore(self.store, None)
        self.model: Model = {"value": {}, "list": {}, "timers": {}}
        self.last_id = 0
        self.completed: tuple[int, SubtaskState, Model] | None = None
        self.pending: list[tuple[int, SubtaskState, Model]] = []
        self.largest = 1

    # ------------------------------------------------------------------------------------------------------ writes

    @rule(key=keys, length=st.integers(1, 60))
    def update(self, key: Any, length: int) -> None:
        self.subtask.keyed.set_current_key(key)
        self.subtask.value.update("x" * length)
        self.model["value"][key] = "x" * length

    @rule(key=keys)
    def clear(self, key: Any) -> None:
        self.subtask.keyed.set_current_key(key)
        self.subtask.value.clear()
        self.subtask.list.clear()
        self.model["value"].pop(key, None)
        self.model["list"].pop(key, None)

    @rule(key=keys, number=st.integers(0, 9))
    def append(self, key: Any, number: int) -> None:
        self.subtask.keyed.set_current_key(key)
        self.subtask.list.add(number)
        self.model["list"].setdefault(key, []).append(number)

    @rule(key=keys, time=times)
    def set_timer(self, key: Any, time: int) -> None:
        self.subtask.timers.register_event_time(time, key)
        self.model["timers"][time, key] = None

    @rule(key=keys, time=times)
    def delete_timer(self, key: Any, time: int) -> None:
        self.subtask.timers.delete_event_time(time, key)
        self.model["timers"].pop((time, key), None)

    @rule(limit=times)
    def fire(self, limit: int) -> None:
        fired = {(time, key) for time, key, _ in self.subtask.timers.advance_watermark(limit)}
        due = {timer for timer in self.model["timers"] if timer[0] <= limit}
        assert fired == due
        for timer in due:
            del self.model["timers"][timer]

    # -------------------------------------------------------------------------------------------------- checkpoints

    def _order(self, savepoint: bool = False) -> CheckpointOrder:
        self.last_id += 1
        return CheckpointOrder(self.last_id, 0, self.completed[0] if self.completed else None, savepoint)

    def _written(self, order: CheckpointOrder, futures: CapturedOperator) -> SubtaskState:
        writer = StateFileWriter(self.store, "root", f"shared/{order.id}", inline_bytes=0)
        new = write_subtask(writer, futures)
        base = self.completed[1] if self.completed and not order.savepoint else None
        return on_top_of(base, new)

    @rule(key=keys, length=st.integers(1, 60), time=times)
    def checkpoint(self, key: Any, length: int, time: int) -> None:
        """Make a cut; processing goes on before the snapshot is written."""
        model, order = copy.deepcopy(self.model), self._order()
        futures = self.subtask.take(order)
        self.update(key, length)
        self.set_timer(key, time)
        self.pending.append((order.id, self._written(order, futures), model))

    @rule(key=keys)
    def checkpoint_that_completes(self, key: Any) -> None:
        self.checkpoint(key, 1, 1)
        self._complete(self.pending[-1], True)

    @rule(key=keys)
    def checkpoint_that_is_aborted(self, key: Any) -> None:
        """Abort a snapshot before or after it is written."""
        self.subtask.take(self._order()).cancel()
        self.append(key, 5)
        self.subtask.keyed.snapshot_aborted(self.last_id)
        self.subtask.timers.snapshot_aborted(self.last_id)

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 2), notified=st.booleans())
    def complete(self, place: int, notified: bool) -> None:
        self._complete(self.pending[place % len(self.pending)], notified)

    def _complete(self, checkpoint: tuple[int, SubtaskState, Model], notified: bool) -> None:
        self.completed = checkpoint
        self.pending = [each for each in self.pending if each[0] > checkpoint[0]]
        if notified:
            self.subtask.keyed.snapshot_completed(checkpoint[0])
            self.subtask.timers.snapshot_completed(checkpoint[0])
        assert Subtask(self.kind).restore(self.store, checkpoint[1]).content() == checkpoint[2]

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 2))
    def abort(self, place: int) -> None:
        number, _, _ = self.pending.pop(place % len(self.pending))
        self.subtask.keyed.snapshot_aborted(number)
        self.subtask.timers.snapshot_aborted(number)

    @rule()
    def savepoint(self) -> None:
        order = self._order(savepoint=True)
        stored = self._written(order, self.subtask.take(order))
        assert Subtask(self.kind).restore(self.store, stored).content() == self.model

    @rule()
    def crash(self) -> None:
        self.pending = []
        self.subtask = Subtask(self.kind).restore(self.store, self.completed[1] if self.completed else None)
        self.model = copy.deepcopy(self.completed[2]) if self.completed else {"value": {}, "list": {}, "timers": {}}
        assert self.subtask.content() == self.model

    # ------------------------------------------------------------------------------------------------------- bounds

    @invariant()
    def what_is_stored_is_bounded(self) -> None:
        if not self.completed:
            return
        stored = self.completed[1]
        for parts in (stored.keyed, stored.timers):
            chains: dict[int, int] = {}
            for part in parts:
                chains[part.key_group] = chains.get(part.key_group, 0) + 1
            assert max(chains.values(), default=0) <= RULES.most_deltas + 1
        files = {blob.path for blob in stored.blobs() if isinstance(blob, FileRef)}
        assert files == set(stored.file_bytes)
        assert len(files) <= RULES.most_files + 2 * GROUPS + 1
        self.largest = max(self.largest, sum(len(self.store.read(f"root/{path}")) for path in files))

    def teardown(self) -> None:
        self.patch.undo()
        # Of at most 60 characters, a list of 50 and 20 timers per key, all of it stored several times.
        assert getattr(self, "largest", 0) <= 8 * len(KEYS) * (60 + 50 + 21 * 4 + 40)


Chains.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestChains = Chains.TestCase


class ChainsOnDisk(Chains):
    kind = "rocksdb without cache"


ChainsOnDisk.TestCase.settings = settings(max_examples=25, stateful_step_count=50, deadline=None)
TestChainsOnDisk = ChainsOnDisk.TestCase
