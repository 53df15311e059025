"""Mutations of HBase's rows, which a converter makes of a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from rekindle.errors import ConnectorError, GraphError

#: HBase's limit for the length of a row's key (a Java short).
_LONGEST_ROW_BYTES = 32_767
#: Columns that were seen to be well formed are remembered; a table with more columns than this forgets them.
_REMEMBERED_COLUMNS = 10_000


class Put(msgspec.Struct, frozen=True):
    """Sets columns of a row: `{b"family:qualifier": b"value"}`. Other columns of the row stay as they are.

    >>> Put(b"order-7", {b"f:state": b"paid"}).row
    b'order-7'
    """

    row: bytes
    columns: Mapping[bytes, bytes]
    #: The table, if it is not the sink's.
    table: str | None = None


class Delete(msgspec.Struct, frozen=True):
    """Removes columns of a row, or the whole row. `b"family"`, without a colon, stands for all its columns.

    >>> Delete(b"order-7"), Delete(b"order-7", [b"f:state"]).columns
    (Delete(row=b'order-7', columns=None, table=None), [b'f:state'])
    """

    row: bytes
    columns: Collection[bytes] | None = None
    #: The table, if it is not the sink's.
    table: str | None = None


Mutation = Put | Delete


class HBaseMutationConverter(ABC):
    """Turns records into mutations. A function of the record does as well.

    >>> class Upsert(HBaseMutationConverter):
    ...     def convert(self, value):
    ...         return Put(value["id"].encode(), {b"f:state": value["state"].encode()})
    >>> Upsert().convert({"id": "7", "state": "paid"})
    Put(row=b'7', columns={b'f:state': b'paid'}, table=None)
    """

    def open(self) -> None:
        """Prepare for the first record, on the worker."""

    @abstractmethod
    def convert(self, value: Any) -> Mutation | list[Mutation] | None:
        """Return the record's mutation, several in their order, or None if there is none."""


def converting(converter: Any) -> Callable[[Any], Any]:
    """Return a converter's function; converters are objects with `convert`, or functions."""
    convert = getattr(converter, "convert", None)
    if callable(convert):
        return convert  # type: ignore[no-any-return]
    if callable(converter):
        return converter  # type: ignore[no-any-return]
    raise GraphError(
        f"set_converter() takes a function of the record or an object with convert(value), not {converter!r}."
    )


def family_of(column: bytes) -> bytes:
    """Return the family of a column.

    >>> family_of(b"f:state"), family_of(b"f:"), family_of(b"f")
    (b'f', b'f', b'f')
    """
    return column.partition(b":")[0]


class MutationCheck:
    """Refuses what HBase could not store, before it is buffered: it names the table, the row and the column.

    `check_family` is called with the table, a column that was not seen before, and the row.
    """

    def __init__(self, check_family: Callable[[str, bytes, bytes], None]) -> None:
        self._check_family = check_family
        self._known: dict[str, set[bytes]] = {}  # well-formed columns, by table

    def __call__(self, mutation: Any, table: str) -> None:
        """Raise a `ConnectorError` unless this is a mutation of bytes, for the sink's table or the one it names."""
        if not isinstance(mutation, Put | Delete):
            raise ConnectorError(
                f"The converter of HBase table '{table}' returned {_shown(mutation)}: return a Put, a Delete, a list "
                "of them, or None."
            )
        table, row = mutation.table or table, mutation.row
        if type(row) is not bytes or not 0 < len(row) <= _LONGEST_ROW_BYTES:
            raise ConnectorError(
                f"A row of HBase table '{table}' has the key {_shown(row)}: HBase takes 1 to {_LONGEST_ROW_BYTES} "
                "bytes; encode the key in the converter."
            )
        if type(mutation) is Put:
            self._check_cells(mutation, table)
        else:
            for column in mutation.columns or ():
                self._check_column(column, row, table, may_be_family=True)

    def _check_cells(self, put: Put, table: str) -> None:
        if not put.columns:
            raise ConnectorError(
                f"A Put of row {put.row!r} of HBase table '{table}' has no columns: HBase stores cells, not rows; "
                "return None for a record without cells."
            )
        known = self._known.get(table, ())
        for column, value in put.columns.items():
            if type(value) is not bytes:
                raise ConnectorError(
                    f"Column {column!r} of row {put.row!r} of HBase table '{table}' has the value {_shown(value)}: "
                    "HBase stores bytes; encode the value in the converter."
                )
            if column not in known:
                self._check_column(column, put.row, table)

    def _check_column(self, column: Any, row: bytes, table: str, *, may_be_family: bool = False) -> None:
        if type(column) is not bytes or not family_of(column) or not (may_be_family or b":" in column):
            raise ConnectorError(
                f"A mutation of row {row!r} of HBase table '{table}' names the column {_shown(column)}: name family "
                "and qualifier as bytes, such as b'f:state'."
            )
        self._check_family(table, column, row)
        if not may_be_family:
            known = self._known.setdefault(table, set())
            if len(known) >= _REMEMBERED_COLUMNS:
                known.clear()
            known.add(column)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
