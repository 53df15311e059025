"""Backends are captured, written, published and restored at another parallelism, without a job."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from rekindle.checkpoint.latest_checkpoint import latest
from rekindle.checkpoint.load_checkpoint import load
from rekindle.checkpoint.manifest import KeyedPart, Manifest, OperatorState, PartKind
from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.parts import CapturedOperator, write_subtask
from rekindle.checkpoint.publish import publish
from rekindle.checkpoint.read_state import read_parts, read_subtask
from rekindle.checkpoint.rescale import OperatorTarget, assign
from rekindle.checkpoint.retention import delete_files, discarded_files
from rekindle.checkpoint.statefile import InlineWriter
from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.port import Store
from rekindle.common.typeinfo import Types
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.key_groups import key_group_range
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.timers import InternalTimers
from tests.unit.checkpoint.samples import manifest_of, take_over, written

GROUPS = 16
COUNT = ValueStateDescriptor("count", Types.LONG())
SEEN = ListStateDescriptor("seen", Types.STRING())


class Subtask:
    """An operator's subtask as a slot has it: keyed state, timers, operator state."""

    def __init__(self, parallelism: int, subtask: int) -> None:
        self.subtask = subtask
        groups = key_group_range(GROUPS, parallelism, subtask)
        self.keyed = HashMapKeyedBackend(GROUPS, groups)
        self.timers = InternalTimers(GROUPS, groups)
        self.operator = OperatorStateBackend(subtask)

    def open(self) -> Subtask:
        self.counts = keyed_state(self.keyed, COUNT)
        self.seen = self.operator.get_list_state(SEEN)
        return self

    def process(self, key: str) -> None:
        self.keyed.set_current_key(key)
        self.counts.update((self.counts.value() or 0) + 1)
        self.timers.register_event_time(len(key), key)
        self.seen.add(key)

    def snapshot(self, checkpoint_id: int, since: int | None) -> CapturedOperator:
        captured = CapturedOperator(self.subtask, checkpoint_id)
        captured.add_groups("keyed", self.keyed.snapshot_delta(checkpoint_id, since).encode(), PartKind.DELTA)
        captured.add_groups("timers", self.timers.snapshot().encode())
        captured.add("operator_state", self.operator.snapshot())
        return captured

    def contents(self) -> dict[str, int]:
        result = {}
        for key in list(self.keyed.keys()):
            self.keyed.set_current_key(key)
            result[key] = cast(int, self.counts.value())
        return result


class Job:
    """Processes words in its subtasks, makes checkpoints, and restores them."""

    def __init__(self, store: Store, claim: Claim, parallelism: int, restored: str | None = None) -> None:
        self.store, self.claim, self.parallelism = store, claim, parallelism
        self.subtasks = [Subtask(parallelism, subtask) for subtask in range(parallelism)]
        self.completed: list[Manifest] = []
        if restored is not None:
            self._restore(restored)
        for subtask in self.subtasks:
            subtask.open()

    def _restore(self, path: str) -> None:
        loaded = load(self.store, path)
        target = OperatorTarget("op", "count", self.parallelism, GROUPS)
        for subtask, restore in zip(self.subtasks, assign(loaded.manifest, [target])["op"], strict=True):
            subtask.keyed.restore(read_parts(self.store, loaded.root, restore.own.keyed))
            subtask.timers.restore(read_parts(self.store, loaded.root, restore.own.timers))
            rest = read_subtask(self.store, loaded.root, restore, "count")
            if rest.operator_state is not None:
                subtask.operator.restore(rest.operator_state)

    def process(self, words: str) -> None:
        for word in words.split():
            group = key_group(word, GROUPS)
            self.subtasks[group * self.parallelism // GROUPS].process(word)

    def checkpoint(self, checkpoint_id: int) -> Manifest:
        base = self.completed[-1] if self.completed else None
        states = [
            written(
                self.store,
                self.claim,
                subtask.snapshot(checkpoint_id, base.checkpoint_id if base else None),
                base=base.operators[0].subtasks[subtask.subtask] if base else None,
            )
            for subtask in self.subtasks
        ]
        manifest = manifest_of(
            self.claim, checkpoint_id, [OperatorState("op", "count", self.parallelism, GROUPS, states)]
        )
        publish(self.store, self.claim, manifest)
        for subtask in self.subtasks:
            subtask.keyed.snapshot_completed(checkpoint_id)
        self.completed.append(manifest)
        deletion = discarded_files(self.completed, self.claim.timeline, {self.completed[-1].checkpoint_id})
        delete_files(self.store, self.claim, deletion)
        self.completed = self.completed[-1:]
        return manifest

    def contents(self) -> dict[str, int]:
        result: dict[str, int] = {}
        for subtask in self.subtasks:
            assert not result.keys() & subtask.contents().keys()
            result |= subtask.contents()
        return result


@pytest.mark.parametrize("after", [1, 2, 3, 16])
def test_counts_timers_and_lists_come_back(tmp_path: Path, after: int) -> None:
    store = LocalStore(tmp_path)
    job = Job(store, take_over(store, "words"), 2)
    first, second = "the quick brown fox jumps over the lazy dog", "the dog sleeps"
    job.process(first)
    job.checkpoint(1)
    job.process(second)
    job.checkpoint(2)
    job.process("lost at the crash")
    again = Job(store, take_over(store, "words"), after, latest(store, "words"))
    expected = {"the": 3, "quick": 1, "brown": 1, "fox": 1, "jumps": 1, "over": 1, "lazy": 1, "dog": 2, "sleeps": 1}
    assert again.contents() == expected
    seen = [word for subtask in again.subtasks for word in subtask.seen.get()]
    assert sorted(seen) == sorted([*first.split(), *second.split()])
    due = sorted(timer[:2] for subtask in again.subtasks for timer in subtask.timers.advance_watermark(100))
    assert due == sorted((len(word), word) for word in expected)
    again.process("the end")
    assert again.contents()["the"] == 4


def test_an_increment_is_small_and_older_files_stay_as_long_as_they_are_needed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    job = Job(store, take_over(store, "words"), 1)
    job.process(" ".join(f"word{n}" for n in range(500)))
    full = job.checkpoint(1)
    job.subtasks[0].timers = InternalTimers(GROUPS, range(GROUPS))
    job.subtasks[0].seen.clear()
    for number in range(2, 6):
        job.process("word1 word2")
        last = job.checkpoint(number)
    assert last.new_bytes() < full.new_bytes() / 10
    assert last.full_bytes() > full.full_bytes() / 4
    names = sorted(path.name.partition("-")[0] for path in tmp_path.rglob("*.state"))
    assert names == ["1", "2", "3", "4", "5"]
    again = Job(store, take_over(store, "words"), 1, latest(store, "words"))
    assert again.contents()["word1"] == 5
    assert len(again.contents()) == 500


def test_memory_storage_needs_no_files() -> None:
    subtask = Subtask(1, 0).open()
    subtask.process("word")
    state = write_subtask(InlineWriter("'count' (1/1)", 5_000_000), subtask.snapshot(1, None))
    assert all(isinstance(blob, bytes) for blob in state.blobs())
    assert state.keyed == [KeyedPart(key_group("word", GROUPS), PartKind.DELTA, 1, state.keyed[0].blob)]
    assert state.new_bytes == state.full_bytes > 0
