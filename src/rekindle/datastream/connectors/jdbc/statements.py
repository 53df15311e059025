"""The text of a statement: JDBC's `?` placeholders in the driver's spelling, its table, and the shape of an INSERT."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy.engine import Dialect

#: Parts that are copied as they are: strings, quoted names, dollar quotes, comments to the end of the line.
_OPAQUE = re.compile(
    r"""
      [eE]'(?:[^'\\]|\\.|'')*'      # a string with backslashes
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | `(?:[^`]|``)*`
    | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$) .*? (?P=dollar)
    | --[^\n]*
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_WORD = re.compile(r"\w+|[^\w]", re.DOTALL)
#: The placeholder with a number in each style of PEP 249 and of SQLAlchemy.
_PLACEHOLDERS: dict[str, Callable[[int], str]] = {
    "qmark": lambda number: "?",
    "format": lambda number: "%s",
    "pyformat": lambda number: "%s",
    "numeric": ":{}".format,
    "named": ":{}".format,
    "numeric_dollar": "${}".format,
}

_NAME = r'(?:"(?:[^"]|"")+"|`[^`]+`|[A-Za-z_][\w$]*)'
_NAMES = rf"\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)"
_TABLE = re.compile(rf"\b(?:INTO|UPDATE|FROM)\s+(?:ONLY\s+)?({_NAME}(?:\.{_NAME})?)", re.IGNORECASE)
_INSERT = re.compile(
    rf"\s*INSERT\s+INTO\s+({_NAME}(?:\.{_NAME})?)\s*{_NAMES}\s*VALUES\s*\(\s*\?(?:\s*,\s*\?)*\s*\)(.*?)\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_NOTHING = re.compile(rf"\s*ON\s+CONFLICT\s*(?:{_NAMES})?\s*DO\s+NOTHING", re.IGNORECASE)
_REPLACE = re.compile(rf"\s*ON\s+CONFLICT\s*{_NAMES}\s*DO\s+UPDATE\s+SET\s+(.+)", re.IGNORECASE | re.DOTALL)
_ASSIGNMENT = re.compile(rf"\s*({_NAME})\s*=\s*EXCLUDED\s*\.\s*({_NAME})\s*", re.IGNORECASE)


def count_placeholders(sql: str) -> int:
    """Return the number of placeholders.

    >>> count_placeholders("INSERT INTO t VALUES (?, '?', ?) -- why?")
    2
    """
    return sum(1 for piece in _pieces(sql) if piece == "?")


def spelled_for(dialect: Dialect, sql: str) -> str:
    """Return a statement as the driver of a dialect takes it; JDBC's `??` is the operator `?`.

    >>> from sqlalchemy.dialects import postgresql, sqlite
    >>> spelled_for(postgresql.dialect(paramstyle="format"), "UPDATE t SET a = ? WHERE tags ?? 'x' AND b LIKE '5%?'")
    "UPDATE t SET a = %s WHERE tags ? 'x' AND b LIKE '5%%?'"
    >>> spelled_for(sqlite.dialect(), "SELECT ?, '??'")
    "SELECT ?, '??'"
    """
    doubled = dialect.paramstyle in ("format", "pyformat")
    return _spelled(
        sql, _PLACEHOLDERS[dialect.paramstyle], lambda piece: piece.replace("%", "%%") if doubled else piece
    )


def numbered(sql: str) -> str:
    """Return the statement with $1, $2, ..., as PostgreSQL's PREPARE takes it.

    >>> numbered("UPDATE t SET a = ? WHERE b = ?")
    'UPDATE t SET a = $1 WHERE b = $2'
    """
    return _spelled(sql, _PLACEHOLDERS["numeric_dollar"], lambda piece: piece)


def _spelled(sql: str, placeholder: Callable[[int], str], other: Callable[[str], str]) -> str:
    number = 0
    result = []
    for piece in _pieces(sql):
        number += piece == "?"
        result.append(placeholder(number) if piece == "?" else "?" if piece == "??" else other(piece))
    return "".join(result)


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


def _pieces(sql: str) -> Iterator[str]:
    """Yield the statement in pieces; a placeholder is the piece `?`, its escape the piece `??`."""
    at = 0
    while at < len(sql):
        if sql.startswith("/*", at):
            end = _comment_end(sql, at)
        elif (opaque := _OPAQUE.match(sql, at)) is not None:
            end = opaque.end()
        elif sql.startswith("??", at):
            end = at + 2
        else:
            word = _WORD.match(sql, at)
            assert word is not None
            end = word.end()
        yield sql[at:end]
        at = end


def _comment_end(sql: str, begin: int) -> int:
    """The end of a comment; comments may be inside each other."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, begin):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(sql)
