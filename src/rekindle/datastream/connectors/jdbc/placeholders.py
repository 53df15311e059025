"""JDBC's `?` placeholders, found outside of quotes and comments, in the client's own spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Parts that are copied as they are: strings, quoted names, dollar quotes, comments to the end of the line.
_OPAQUE = re.compile(
    r"""
      [eE]'(?:[^'\\]|\\.|'')*'      # a string with backslashes
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$) .*? (?P=dollar)
    | --[^\n]*
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_WORD = re.compile(r"\w+|[^\w]", re.DOTALL)


def count_placeholders(sql: str) -> int:
    """Return the number of placeholders.

    >>> count_placeholders("INSERT INTO t VALUES (?, '?', ?) -- why?")
    2
    """
    return sum(1 for piece in _pieces(sql) if piece == "?")


def numbered(sql: str) -> str:
    """Return the statement with $1, $2, ..., as PostgreSQL's PREPARE takes it.

    >>> numbered("UPDATE t SET a = ? WHERE b = ?")
    'UPDATE t SET a = $1 WHERE b = $2'
    """
    number = 0
    result = []
    for piece in _pieces(sql):
        number += piece == "?"
        result.append(f"${number}" if piece == "?" else "?" if piece == "??" else piece)
    return "".join(result)


def for_psycopg(sql: str) -> str:
    """Return the statement as psycopg takes it: `%s` for a placeholder, `?` for the operator that JDBC writes `??`.

    >>> for_psycopg("UPDATE t SET a = ? WHERE tags ?? 'x' AND b LIKE '5%?'")
    "UPDATE t SET a = %s WHERE tags ? 'x' AND b LIKE '5%%?'"
    """
    spelled = {"?": "%s", "??": "?"}
    return "".join(spelled.get(piece) or piece.replace("%", "%%") for piece in _pieces(sql))


def for_sqlite(sql: str) -> str:
    """Return the statement as sqlite3 takes it, which is as it was, but for JDBC's `??`.

    >>> for_sqlite("SELECT ?, '??'")
    "SELECT ?, '??'"
    """
    return "".join("?" if piece == "??" else piece for piece in _pieces(sql))


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
