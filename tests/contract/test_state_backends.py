"""Both state backends keep the contract, and the contract finds the defects of mutated ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.keyed_backends import KeyedOperatorShape
from rekindle.runtime.state.keyed_state_format import CapturedDelta, GroupCapture
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend
from rekindle.runtime.timers import InternalTimers
from rekindle.testing.state_contract import NewBackend, StateBackendContract
from rekindle.testing.timers_contract import NewTimers, TimersContract
from tests.support.keyed_backends import BACKENDS, TIMERS, place_of


def made_by(backend: Any, shape: KeyedOperatorShape, options: KeyedStateOptions, **more: Any) -> KeyedStateBackend:
    made: KeyedStateBackend = backend(
        shape.max_parallelism,
        shape.key_groups,
        options=options,
        key_codec=shape.key_codec,
        key_group_of=shape.key_group_of,
        **more,
    )
    return made


class TestHashMapBackend(StateBackendContract):
    @pytest.fixture
    def new_backend(self) -> NewBackend:
        return partial(made_by, HashMapKeyedBackend)


class TestRocksBackend(StateBackendContract):
    @pytest.fixture(params=["rocksdb", "rocksdb without cache"])
    def new_backend(self, request: pytest.FixtureRequest) -> NewBackend:
        return partial(made_by, BACKENDS[request.param])


class TestTimers(TimersContract):
    @pytest.fixture(params=list(TIMERS))
    def new_timers(self, request: pytest.FixtureRequest) -> NewTimers:
        return TIMERS[request.param]


# -- backends with one defect each -------------------------------------------------------------------------------------


class ForgetsRemovals(HashMapKeyedBackend):
    """Leaves removed values out of deltas."""

    def note_emptied(self, row: Row) -> None:
        for rows in (*self.generation.plain.values(), *self._changes._touched.values()):
            rows[:] = [each for each in rows if each is not row]
        super().note_emptied(row)


class LeaksBetweenKeys(HashMapKeyedBackend):
    """Takes keys that begin alike for the same key."""

    def load_row(self, key: Any) -> Row:
        return super().load_row(key[:5] if isinstance(key, str) else key)


class TakesForeignKeyGroups(HashMapKeyedBackend):
    """Restores the key groups of other subtasks, too."""

    def restore(self, parts: Iterable[tuple[int, bytes]]) -> None:
        listed = list(parts)
        for group, _ in listed:
            self._groups.setdefault(group, {})
        super().restore(listed)


class CallsEverySnapshotComplete(HashMapKeyedBackend):
    """Builds a delta on the last snapshot, complete or not."""

    def snapshot_delta(
        self, snapshot_id: int, since_completed_id: int | None, whole: Iterable[int] = ()
    ) -> CapturedDelta:
        return super().snapshot_delta(snapshot_id, snapshot_id - 1, whole)


class CapturesLate(HashMapKeyedBackend):
    """Reads rows when they are encoded, and not as they were at the cut."""

    def snapshot_whole(self, snapshot_id: int) -> list[GroupCapture]:
        super().snapshot_whole(snapshot_id)
        return [LateGroup(self, group) for group in self.key_groups]


class LateGroup:
    def __init__(self, backend: CapturesLate, group: int) -> None:
        self.key_group = group
        self._backend = backend

    def encode(self) -> Any:
        return self._backend._capture.group(self.key_group, None).encode()


class CountsSavepoints(RocksKeyedBackend):
    """Takes a savepoint for a base of deltas."""

    def snapshot_aside(self, snapshot_id: int) -> list[GroupCapture]:
        captured = super().snapshot_aside(snapshot_id)
        self.forget_changes()
        return captured


class ForgetsUnregistered(RocksKeyedBackend):
    """Does not carry states along that are not registered."""

    def _scanned(self, groups: list[int]) -> list[GroupCapture]:
        captured = super()._scanned(groups)
        for each in captured:
            each._carried = ()  # type: ignore[attr-defined]
        return captured


@pytest.mark.parametrize(
    ("backend", "found_by"),
    [
        (ForgetsRemovals, "test_deltas_hold_what_changed"),
        (LeaksBetweenKeys, "test_many_keys_do_not_touch_each_other"),
        (TakesForeignKeyGroups, "test_a_restore_takes_its_own_key_groups"),
        (CallsEverySnapshotComplete, "test_deltas_build_on_completed_snapshots"),
        (CapturesLate, "test_a_whole_snapshot_restores"),
        (partial(CountsSavepoints, place=place_of(16 << 20, 1 << 20)), "test_a_savepoint_changes_no_delta"),
        (partial(ForgetsUnregistered, place=place_of(16 << 20, 1 << 20)), "test_unregistered_state_is_carried_along"),
    ],
    ids=lambda each: getattr(each, "__name__", None) or getattr(getattr(each, "func", None), "__name__", None),
)
def test_a_defect_of_a_backend_is_found(backend: Any, found_by: str) -> None:
    def new_backend(shape: KeyedOperatorShape, options: KeyedStateOptions) -> KeyedStateBackend:
        return made_by(fresh(backend), shape, options)

    with pytest.raises(AssertionError):
        getattr(StateBackendContract(), found_by)(new_backend)


def fresh(backend: Any) -> Any:
    """The same class at a place of its own in the database."""
    return partial(backend.func, place=place_of(16 << 20, 1 << 20)) if isinstance(backend, partial) else backend


class ForgetsFired(InternalTimers):
    """Leaves timers that have fired out of deltas."""

    def advance_watermark(self, watermark: int) -> Any:
        changes = self.event.changes
        before = None if changes.open is None else dict(changes.open)
        fired = list(super().advance_watermark(watermark))
        changes.open = before
        return iter(fired)


def test_a_defect_of_timers_is_found() -> None:
    with pytest.raises(AssertionError):
        TimersContract().test_deltas_hold_what_changed(ForgetsFired)
