"""Tables of a checkpoint, read in this process without Spark, as rows with names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rekindle.snapshots.find_snapshot import Snapshot
    from rekindle.snapshots.shapes import Shape
    from rekindle.snapshots.table import ReadOptions, StateTable
    from rekindle.snapshots.tables import TableName


def rows_of(table: StateTable) -> Iterator[dict[str, Any]]:
    """The rows of a table, one after the other."""
    columns = [(column.name, column.shape) for column in table.columns]
    for split in table.splits():
        for row in table.rows(split):
            yield {name: plain(value, shape) for (name, shape), value in zip(columns, row, strict=True)}


def plain(value: Any, shape: Shape) -> Any:
    """A value of a column as JSON has it: entries are objects if their keys are texts, bytes are hexadecimal."""
    from rekindle.snapshots.shapes import ElementsShape, EntriesShape, FieldsShape, JsonShape

    if value is None:
        return None
    match shape:
        case FieldsShape():
            return {name: plain(value[name], part) for name, part in shape.fields()}
        case ElementsShape():
            return [plain(each, shape.part) for each in value]
        case EntriesShape():
            entries = [(plain(key, shape.key), plain(each, shape.value)) for key, each in value]
            if all(isinstance(key, str) for key, _ in entries):
                return dict(entries)
            return [{"key": key, "value": each} for key, each in entries]
        case JsonShape():
            return msgspec.json.decode(value)
    return bytes(value).hex() if isinstance(value, bytes | bytearray | memoryview) else value


def read_table(snapshot: Snapshot, name: TableName, operator: str | None, options: ReadOptions) -> StateTable:
    """Plan a table; see `rekindle.snapshots.tables`."""
    from rekindle.snapshots.tables import table_of

    return table_of(snapshot, name, operator, options)


def overview(snapshot: Snapshot) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The metadata of a checkpoint, and its operators."""
    from rekindle.snapshots.table import ReadOptions
    from rekindle.snapshots.tables import TableName

    (metadata,) = rows_of(read_table(snapshot, TableName.METADATA, None, ReadOptions()))
    operators = rows_of(read_table(snapshot, TableName.OPERATORS, None, ReadOptions()))
    return metadata, list(operators)


def first_rows(table: StateTable, most: int | None) -> tuple[list[dict[str, Any]], bool]:
    """The first rows of a table, and whether there are more."""
    rows = rows_of(table)
    if most is None:
        return list(rows), False
    found = list(islice(rows, most + 1))
    return found[:most], len(found) > most
