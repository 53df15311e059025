"""Questions about the state of checkpoints, answered in this process, or with Spark where SQL is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from rekindle.cli.state_tables import first_rows, plain, read_table
from rekindle.errors import ConfigurationError
from rekindle.serde.class_free_decoding import frozen
from rekindle.snapshots.changed_keys import ChangedKey, changed_keys, state_columns
from rekindle.snapshots.find_snapshot import Snapshot, operator_of
from rekindle.snapshots.key_columns import KEY, WINDOW
from rekindle.snapshots.keyed_table import KeyedTable
from rekindle.snapshots.shapes import Plain, PlainShape
from rekindle.snapshots.table import ReadOptions, StateTable
from rekindle.snapshots.tables import TableName

if TYPE_CHECKING:
    from rekindle.common.configuration import Configuration

__all__ = ["SqlQuestion", "ask_spark", "asked_table", "change_counts", "changes_of", "first_rows"]

_VIEW = "state"


def asked_table(
    snapshot: Snapshot,
    operator: str | None,
    table: str | None,
    states: Sequence[str] | None,
    key: str | None,
    allow_pickle: bool,
) -> StateTable:
    """The table that a user names; without a name the keyed state of the operator, else the operators."""
    name = _table_name(table, operator)
    options = ReadOptions(states=tuple(states) if states else None, allow_pickle=allow_pickle)
    found = read_table(snapshot, name, operator, options)
    if key is None:
        return found
    if not isinstance(found, KeyedTable):
        raise ConfigurationError(f"--key chooses a row of keyed state, and the table {name} has none.")
    return read_table(snapshot, name, operator, replace(options, key=(_key(found, key),)))


def _table_name(table: str | None, operator: str | None) -> TableName:
    try:
        return TableName(table or (TableName.OPERATORS if operator is None else TableName.KEYED_STATE))
    except ValueError:
        raise ConfigurationError(f"There is no table '{table}': use one of {', '.join(TableName)}.") from None


def _key(table: KeyedTable, text: str) -> Any:
    """A key as the table has it: where keys are texts, the text as it stands; else JSON."""
    try:
        read = frozen(msgspec.json.decode(text))
    except msgspec.DecodeError:
        return text
    is_text = table.keys.key == PlainShape(Plain.STRING)
    return text if is_text and not isinstance(read, str) else read


# -- with Spark --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SqlQuestion:
    """A question in SQL about one table of a checkpoint."""

    sql: str
    operator: str | None
    table: str | None
    states: tuple[str, ...]
    allow_pickle: bool


def ask_spark(
    path: str, checkpoint_id: int | None, configuration: Configuration, question: SqlQuestion, limit: int
) -> tuple[list[dict[str, Any]], bool]:
    """The first rows of the answer, and whether there are more."""
    from rekindle import state

    snapshot = state.read(
        path, checkpoint_id=checkpoint_id, configuration=configuration, allow_pickle=question.allow_pickle
    )
    rows = _rows_in_spark(snapshot, question)
    rows.createOrReplaceTempView(_VIEW)
    answer = rows.sparkSession.sql(question.sql)
    found = (answer.limit(limit + 1) if limit else answer).collect()
    shown = [row.asDict(recursive=True) for row in found]
    return (shown[:limit], len(shown) > limit) if limit else (shown, False)


def _rows_in_spark(snapshot: Any, question: SqlQuestion) -> Any:
    name, operator, states = _table_name(question.table, question.operator), question.operator, question.states
    match name:
        case TableName.KEYED_STATE:
            return snapshot.keyed_state(operator, states or None)
        case TableName.LIST_STATE | TableName.BROADCAST_STATE:
            if len(states) != 1:
                raise ConfigurationError(f"The table {name} is about one state: name it with --state.")
            return getattr(snapshot, name)(operator, states[0])
        case TableName.METADATA | TableName.OPERATORS | TableName.STATES:
            return getattr(snapshot, name)()
    return getattr(snapshot, name)(operator)


# -- comparing ---------------------------------------------------------------------------------------------------------


def change_counts(before: Snapshot, after: Snapshot) -> list[dict[str, Any]]:
    """For each operator with keyed state the numbers of keys that were added, removed and changed."""
    sides = [{each.uid: each for each in side.manifest.operators if _has_keys(each)} for side in (before, after)]
    counted = []
    for uid in dict.fromkeys([*sides[0], *sides[1]]):
        name = next(side[uid].name for side in sides if uid in side)
        counts = _counts(before if uid in sides[0] else None, after if uid in sides[1] else None, uid)
        kinds = {kind: counts[kind] for kind in ("added", "removed", "changed")}
        counted.append({"operator_id": uid, "name": name, **kinds})
    return counted


def _has_keys(operator: Any) -> bool:
    return any(subtask.keyed for subtask in operator.subtasks)


def _counts(before: Snapshot | None, after: Snapshot | None, uid: str) -> Counter[str]:
    if before is not None and after is not None:
        return Counter(each.change for each in changed_keys(_digests(before, uid), _digests(after, uid)))
    only = before or after
    assert only is not None, "an operator of neither checkpoint"
    table = _digests(only, uid)
    rows = sum(1 for split in table.splits() for _ in table.rows(split))
    return Counter({"removed" if after is None else "added": rows})


def _digests(snapshot: Snapshot, operator: str, states: Sequence[str] | None = None) -> KeyedTable:
    options = ReadOptions(states=tuple(states) if states else None, digests=True)
    return KeyedTable(snapshot, operator_of(snapshot.manifest, operator), options)


def changes_of(
    before: Snapshot, after: Snapshot, operator: str, states: Sequence[str] | None, limit: int | None
) -> tuple[list[dict[str, Any]], bool]:
    """The first keys of an operator that differ, with their state before and after, and whether there are more."""
    old, new = _digests(before, operator, states), _digests(after, operator, states)
    found = list(islice(changed_keys(old, new), None if limit is None else limit + 1))
    shown = [_change(each, old, new) for each in found[:limit]]
    return shown, len(found) > len(shown)


def _change(each: ChangedKey, old: KeyedTable, new: KeyedTable) -> dict[str, Any]:
    row, table = (each.after, new) if each.after is not None else (each.before, old)
    assert row is not None, "a change of no key"
    keys = {
        column.name: plain(row[column.name], column.shape) for column in table.columns if column.name in (KEY, WINDOW)
    }
    before = None if each.before is None else _states(each.before, old)
    after = None if each.after is None else _states(each.after, new)
    return {"change": each.change, **keys, "states": list(each.states), "before": before, "after": after}


def _states(row: Any, table: KeyedTable) -> dict[str, Any]:
    return {column.name: plain(row[column.name], column.shape) for column in state_columns(table)}
