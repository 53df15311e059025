"""Coalesces the mutations of a flush: of each row, what is deleted, and the columns that were put after that.

HBase applies a batch with one timestamp for all its mutations, and a delete hides every put of its own timestamp. So a
flush sends the deletes first, then the puts, with a higher timestamp. That is right only if a put that is followed by a
delete of its column is not sent at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rekindle.datastream.connectors.hbase.mutations import Mutation, Put, family_of

#: The bytes of a cell in a message beside its value, roughly.
_CELL_BYTES = 32


class RowChange:
    """The changes that a flush makes to one row: first the deletes, then the puts.

    >>> change = RowChange()
    >>> change.put({b"f:a": b"1", b"f:b": b"1"})
    >>> change.delete([b"f:a"])
    >>> change.put({b"f:c": b"2"})
    >>> change.deleted_columns, change.puts
    ({b'f:a': None}, {b'f:b': b'1', b'f:c': b'2'})
    """

    __slots__ = ("deleted_columns", "deletes_row", "puts")

    def __init__(self) -> None:
        self.deletes_row = False
        self.deleted_columns: dict[bytes, None] = {}  # in their order
        self.puts: dict[bytes, bytes] = {}

    def put(self, columns: Mapping[bytes, bytes]) -> None:
        """Set columns."""
        self.puts.update(columns)

    def delete(self, columns: Iterable[bytes] | None) -> None:
        """Remove columns, or the row; values that were put there before are not sent."""
        if columns is None:
            self.deletes_row = True
            self.deleted_columns = {}
            self.puts = {}
            return
        for column in columns:
            if not self.deletes_row:
                self.deleted_columns[column] = None
            if b":" in column:
                self.puts.pop(column, None)
            else:
                self.puts = {each: value for each, value in self.puts.items() if family_of(each) != column}

    @property
    def has_deletes(self) -> bool:
        """Whether anything is deleted."""
        return self.deletes_row or bool(self.deleted_columns)


#: The changes of one call: by table, then by row.
Changes = dict[str, dict[bytes, RowChange]]


class RowBuffer:
    """The mutations since the last flush, coalesced by row; in event time by row and timestamp.

    >>> from rekindle.datastream.connectors.hbase import Delete
    >>> buffer = RowBuffer()
    >>> buffer.add(Put(b"1", {b"f:a": b"x"}), "orders", None)
    >>> buffer.add(Delete(b"1"), "orders", None)
    >>> change = buffer.changes[None]["orders"][b"1"]
    >>> change.deletes_row, change.puts, len(buffer)
    (True, {}, 2)
    """

    def __init__(self) -> None:
        #: By timestamp; None where the flush gives it, or the server.
        self.changes: dict[int | None, Changes] = {}
        self.size_bytes = 0
        self.mutations = 0
        self._table = ""  # of the last mutation, and its timestamp and rows: the next one most likely has the same
        self._timestamp: int | None = None
        self._rows: dict[bytes, RowChange] = {}

    def __len__(self) -> int:
        return self.mutations

    def add(self, mutation: Mutation, table: str, timestamp: int | None) -> None:
        """Add a checked mutation, for the sink's table unless it names another."""
        table = mutation.table or table
        if table != self._table or timestamp != self._timestamp:
            self._rows = self.changes.setdefault(timestamp, {}).setdefault(table, {})
            self._table, self._timestamp = table, timestamp
        self.mutations += 1
        row = mutation.row
        change = self._rows.get(row)
        if change is None:
            change = self._rows[row] = RowChange()
        if type(mutation) is Put:
            columns = mutation.columns
            change.puts.update(columns)
            size = (len(row) + _CELL_BYTES) * len(columns)
            for column, value in columns.items():
                size += len(column) + len(value)
            self.size_bytes += size
        else:
            change.delete(mutation.columns)
            self.size_bytes += len(row) + _CELL_BYTES
