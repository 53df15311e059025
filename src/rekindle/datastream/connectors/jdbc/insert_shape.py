"""The shape of an INSERT statement: names for error messages, and whether its rows can be copied in bulk."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
_NAMES = rf"\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)"
_TABLE = re.compile(rf"\b(?:INTO|UPDATE|FROM)\s+(?:ONLY\s+)?({_NAME}(?:\.{_NAME})?)", re.IGNORECASE)
_INSERT = re.compile(
    rf"\s*INSERT\s+INTO\s+({_NAME}(?:\.{_NAME})?)\s*{_NAMES}\s*VALUES\s*\(\s*\?(?:\s*,\s*\?)*\s*\)(.*?)\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_NOTHING = re.compile(rf"\s*ON\s+CONFLICT\s*(?:{_NAMES})?\s*DO\s+NOTHING", re.IGNORECASE)
_REPLACE = re.compile(rf"\s*ON\s+CONFLICT\s*{_NAMES}\s*DO\s+UPDATE\s+SET\s+(.+)", re.IGNORECASE | re.DOTALL)
_ASSIGNMENT = re.compile(rf"\s*({_NAME})\s*=\s*EXCLUDED\s*\.\s*({_NAME})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class InsertShape:
    """An `INSERT INTO table (columns) VALUES (?, ...)`, alone or with an `ON CONFLICT` that keeps whole rows.

    Of such rows the last one with a key counts (the first one with DO NOTHING), so they can be inserted all at once.
    """

    table: str
    columns: tuple[str, ...]
    #: The columns of the key if the last row with a key replaces earlier ones, else empty.
    replaced_by: tuple[str, ...]
    #: The ON CONFLICT clause, or an empty text.
    on_conflict: str

    @property
    def bare_columns(self) -> tuple[str, ...]:
        """The columns as the database's catalogue has them."""
        return tuple(map(bare, self.columns))


def insert_shape(sql: str) -> InsertShape | None:
    """Return the shape of a statement, or None if it is another statement.

    >>> insert_shape("INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b").replaced_by
    ('a',)
    >>> insert_shape("INSERT INTO t (a, n) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET n = t.n + 1") is None
    True
    """
    found = _INSERT.fullmatch(sql)
    if found is None:
        return None
    table, columns, rest = found[1], _split(found[2]), found[3]
    if not rest.strip() or _NOTHING.fullmatch(rest):
        return InsertShape(table, columns, (), rest.strip())
    replaced = _REPLACE.fullmatch(rest)
    if replaced is None or not _replaces_all(replaced[2], columns, _split(replaced[1])):
        return None
    return InsertShape(table, columns, _split(replaced[1]), rest.strip())


def table_of(sql: str) -> str | None:
    """Return the name of the table that a statement is about, for messages.

    >>> table_of("UPDATE shop.orders SET a = ?")
    'shop.orders'
    """
    found = _TABLE.search(sql)
    return found[1] if found is not None else None


def bare(name: str) -> str:
    """Return a name as the catalogue has it: unquoted names are in small letters.

    >>> bare('"Order"'), bare("Order")
    ('Order', 'order')
    """
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _replaces_all(assignments: str, columns: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Whether every column that is not of the key gets the new row's value, so that nothing of older rows stays."""
    set_to = [_ASSIGNMENT.fullmatch(each) for each in assignments.split(",")]
    names = {bare(each[1]) for each in set_to if each is not None and bare(each[1]) == bare(each[2])}
    keys = set(map(bare, key))
    return len(names) == len(set_to) and keys <= set(map(bare, columns)) <= names | keys


def _split(names: str) -> tuple[str, ...]:
    return tuple(re.findall(_NAME, names))
