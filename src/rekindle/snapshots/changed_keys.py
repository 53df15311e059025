"""Compare the keyed state of an operator in two checkpoints without Spark, one key group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Literal

from rekindle.snapshots.key_columns import KEY, KEY_GROUP, WINDOW
from rekindle.snapshots.keyed_table import DIGESTS, KEY_BYTES, KeyedTable
from rekindle.snapshots.table import TableColumn

_FIXED: Final = frozenset({KEY_GROUP, KEY, WINDOW, KEY_BYTES, DIGESTS})
Change = Literal["added", "removed", "changed"]
_Rows = dict[bytes, dict[str, Any]]


@dataclass(frozen=True)
class ChangedKey:
    """A key whose state differs: the rows before and after, by column, and the states that differ."""

    change: Change
    states: tuple[str, ...]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


def state_columns(table: KeyedTable) -> list[TableColumn]:
    """The columns of states."""
    return [column for column in table.columns if column.name not in _FIXED]


def changed_keys(before: KeyedTable, after: KeyedTable) -> Iterator[ChangedKey]:
    """The keys that were added, removed or changed; both tables have digests. Times of last access do not count.

    Checkpoints with different numbers of key groups are compared as a whole, in memory.
    """
    aligned = before.key_groups == after.key_groups
    old, new = (_by_group(table, whole=not aligned) for table in (before, after))
    names = [column.name for column in state_columns(before)], [column.name for column in state_columns(after)]
    for old_rows, new_rows in _paired(old, new):
        for key in old_rows.keys() | new_rows.keys():
            yield from _changed(old_rows.get(key), new_rows.get(key), *names)


def _by_group(table: KeyedTable, *, whole: bool) -> Iterator[tuple[int, _Rows]]:
    names = [column.name for column in table.columns]
    rows = (dict(zip(names, row, strict=True)) for split in table.splits() for row in table.rows(split))
    for group, own in groupby(rows, key=lambda row: 0 if whole else int(row[KEY_GROUP])):
        yield group, {row[KEY_BYTES]: row for row in own}


def _paired(old: Iterator[tuple[int, _Rows]], new: Iterator[tuple[int, _Rows]]) -> Iterator[tuple[_Rows, _Rows]]:
    """The rows of each key group on both sides; groups come in ascending order."""
    left, right = next(old, None), next(new, None)
    while left is not None or right is not None:
        group = min(side[0] for side in (left, right) if side is not None)
        has_left, has_right = left is not None and left[0] == group, right is not None and right[0] == group
        yield left[1] if has_left and left else {}, right[1] if has_right and right else {}
        left = next(old, None) if has_left else left
        right = next(new, None) if has_right else right


def _changed(
    old: dict[str, Any] | None, new: dict[str, Any] | None, old_names: Sequence[str], new_names: Sequence[str]
) -> Iterator[ChangedKey]:
    old_digests = dict(zip(old_names, old[DIGESTS], strict=True)) if old is not None else {}
    new_digests = dict(zip(new_names, new[DIGESTS], strict=True)) if new is not None else {}
    differing = [
        name for name in dict.fromkeys([*old_names, *new_names]) if old_digests.get(name) != new_digests.get(name)
    ]
    if differing:
        change: Change = "added" if old is None else "removed" if new is None else "changed"
        yield ChangedKey(change, tuple(differing), old, new)
