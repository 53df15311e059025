"""I12: only completed snapshots decide what the next one writes whole."""

from __future__ import annotations

from rekindle.checkpoint.compaction import RewriteRules
from rekindle.checkpoint.manifest import KeyedPart, PartKind, SubtaskState
from rekindle.runtime.state.inventory import Inventories

FULL, DELTA = PartKind.FULL, PartKind.DELTA
RULES = RewriteRules(pressing_deltas=2, most_deltas=4, cycle=80, part_bytes=0, small_bytes=0)
KEYS = {0: 1, 1: 1}


def part(group: int, kind: PartKind, order: int, size: int = 100) -> KeyedPart:
    return KeyedPart(group, kind, order, b"x" * size)


def write(stored: Inventories, number: int, base: int | None, *parts: KeyedPart) -> None:
    stored.recorder(number, base, KEYS)(SubtaskState(0, keyed=list(parts)))


def started() -> Inventories:
    stored = Inventories(RULES)
    write(stored, 1, None, part(0, FULL, 1), part(1, FULL, 1))
    stored.completed(1)
    return stored


def groups(stored: Inventories, base: int) -> list[int]:
    plan = stored.rewrites(base, KEYS)
    assert plan is not None
    return plan.key_groups


def test_deltas_of_completed_snapshots_count() -> None:
    stored = started()
    write(stored, 2, 1, part(0, DELTA, 2, 1))
    stored.completed(2)
    assert groups(stored, 2) == []
    write(stored, 3, 2, part(0, DELTA, 3, 1))
    stored.completed(3)
    assert groups(stored, 3) == [0]


def test_what_an_aborted_snapshot_wrote_does_not_count() -> None:
    stored = started()
    for number in range(2, 20):
        write(stored, number, 1, part(0, DELTA, number), part(1, FULL, number))
        assert groups(stored, 1) == []
        stored.aborted(number)
    assert stored.rewrites(1, KEYS) is not None
    assert len(stored._inventories) == 1


def test_a_snapshot_stands_on_the_one_that_its_trigger_named() -> None:
    """Two snapshots are under way at once, both on top of the first."""
    stored = started()
    write(stored, 2, 1, part(0, DELTA, 2, 1))
    write(stored, 3, 1, part(0, DELTA, 3, 1))
    stored.completed(2)
    stored.completed(3)
    assert groups(stored, 3) == []


def test_what_was_restored_counts() -> None:
    stored = Inventories(RULES)
    stored.restored(SubtaskState(0, keyed=[part(0, FULL, 1), part(0, DELTA, 5, 1), part(0, DELTA, 6, 1)]))
    assert groups(stored, 6) == [0]
    write(stored, 7, 6, part(0, FULL, 7))
    stored.aborted(7)
    assert groups(stored, 6) == [0]
    write(stored, 8, 6, part(0, FULL, 8))
    stored.completed(8)
    assert groups(stored, 8) == []


def test_of_an_unknown_base_nothing_is_known() -> None:
    assert Inventories(RULES).rewrites(5, KEYS) is None


def test_completed_snapshots_are_forgotten_when_a_later_one_completes() -> None:
    stored = started()
    for number in range(2, 50):
        write(stored, number, number - 1, part(0, FULL, number))
        stored.completed(number)
    assert len(stored._inventories) == 1
