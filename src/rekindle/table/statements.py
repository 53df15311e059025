"""The statements of `execute_sql`: which kind one is, and the parts of those that Spark does not get."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rekindle.errors import GraphError
from rekindle.table.schema import Schema
from rekindle.table.sql_calls import time_type
from rekindle.table.sql_types import split_top_level
from rekindle.table.table_descriptor import TableDescriptor

_NAME = r"(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))"
_CREATE_TABLE = re.compile(
    rf"CREATE\s+(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}\s*\((?P<columns>.*)\)\s*"
    r"(?:COMMENT\s+'[^']*'\s*)?WITH\s*\((?P<options>.*)\)",
    re.IGNORECASE | re.DOTALL,
)
_CREATE_VIEW = re.compile(
    rf"CREATE\s+(?:TEMPORARY\s+)?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}\s*(?:\((?P<columns>[^)]*)\)\s*)?AS\s+(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
_INSERT = re.compile(rf"INSERT\s+INTO\s+(?:TABLE\s+)?{_NAME}\s+(?P<query>.*)", re.IGNORECASE | re.DOTALL)
_DROP = re.compile(rf"DROP\s+(?:TEMPORARY\s+)?(?:TABLE|VIEW)\s+(?P<if_exists>IF\s+EXISTS\s+)?{_NAME}", re.IGNORECASE)
_DESCRIBE = re.compile(rf"(?:DESCRIBE|DESC)\s+{_NAME}", re.IGNORECASE)
_EXPLAIN = re.compile(r"EXPLAIN\s+(?:PLAN\s+FOR\s+)?(?P<query>(?:SELECT|WITH|VALUES)\b.*)", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"(?:SELECT|WITH|VALUES|\()", re.IGNORECASE)
_SHOW = re.compile(r"SHOW\s+(?:TABLES|VIEWS)", re.IGNORECASE)
_OPTION = re.compile(r"'(?P<key>(?:[^']|'')*)'\s*=\s*'(?P<value>(?:[^']|'')*)'", re.DOTALL)
_COLUMN = re.compile(rf"{_NAME}\s+(?P<type>.+?)(?:\s+COMMENT\s+'[^']*')?", re.IGNORECASE | re.DOTALL)
_COMPUTED = re.compile(r"\s(AS\s|METADATA\b)", re.IGNORECASE)
_COMMENT_OR_QUOTED = re.compile(r"(?P<comment>--[^\n]*|/\*.*?\*/)|'(?:[^']|'')*'|`[^`]*`", re.DOTALL)
_STRING_OR_TYPE = re.compile(
    r"'(?P<string>(?:[^']|'')*)'|`[^`]*`|"
    r"\bAS\s+(?:(?P<bytes>BYTES)|TIMESTAMP(?P<local>_LTZ)?(?:\s*\(\s*(?P<digits>\d+)\s*\))?"
    r"(?P<zone>\s+WITH(?:OUT)?(?:\s+LOCAL)?\s+TIME\s+ZONE)?)\s*(?=\))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE with a connector."""

    name: str
    descriptor: TableDescriptor


@dataclass(frozen=True)
class CreateView:
    """CREATE VIEW."""

    name: str
    query: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class InsertInto:
    """INSERT INTO with a query or values."""

    name: str
    query: str


@dataclass(frozen=True)
class Drop:
    """DROP TABLE or DROP VIEW."""

    name: str
    if_exists: bool


@dataclass(frozen=True)
class Describe:
    """DESCRIBE of a table."""

    name: str


@dataclass(frozen=True)
class Explain:
    """EXPLAIN of a query."""

    query: str


@dataclass(frozen=True)
class ShowTables:
    """SHOW TABLES."""


@dataclass(frozen=True)
class Select:
    """A query."""

    query: str


Statement = CreateTable | CreateView | InsertInto | Drop | Describe | Explain | ShowTables | Select


def parse_statement(text: str) -> Statement:
    """Return the statement of a text.

    >>> parse_statement("CREATE VIEW v AS SELECT 1;")
    CreateView(name='v', query='SELECT 1', columns=())
    """
    bare = _COMMENT_OR_QUOTED.sub(_without_comment, text).strip().rstrip(";").strip()
    if found := _CREATE_TABLE.fullmatch(bare):
        return CreateTable(_name(found), TableDescriptor(_options(found["options"]), _schema(found["columns"])))
    if found := _CREATE_VIEW.fullmatch(bare):
        columns = tuple(part.strip("` ") for part in split_top_level(found["columns"] or ""))
        return CreateView(_name(found), found["query"], columns)
    if found := _INSERT.fullmatch(bare):
        return InsertInto(_name(found), found["query"])
    if found := _DROP.fullmatch(bare):
        return Drop(_name(found), found["if_exists"] is not None)
    if _SHOW.fullmatch(bare):
        return ShowTables()
    if found := _EXPLAIN.fullmatch(bare):
        return Explain(found["query"])
    if found := _DESCRIBE.fullmatch(bare):
        return Describe(_name(found))
    if _QUERY.match(bare):
        return Select(bare)
    raise GraphError(
        f"The statement '{' '.join(bare.split()[:4])} ...' is not here. There are SELECT, WITH, VALUES, CREATE TABLE "
        "(...) WITH (...), CREATE VIEW, INSERT INTO, DROP, DESCRIBE, EXPLAIN and SHOW TABLES."
    )


def spark_text(sql: str) -> str:
    r"""Return a query of Flink in which Spark's parser finds its own strings and types.

    A backslash stands for itself in Flink's strings. Times have digits in Flink's casts.

    >>> print(spark_text(r"SELECT 'it''s', 'C:\new', CAST(day AS TIMESTAMP(3))"))
    SELECT 'it\'s', 'C:\\new', CAST(day AS TIMESTAMP_NTZ/*(3)*/)
    """
    return _STRING_OR_TYPE.sub(_spark_part, sql)


def _spark_part(found: re.Match[str]) -> str:
    if found["string"] is not None:
        return "'" + found["string"].replace("\\", "\\\\").replace("''", "\\'") + "'"
    if found[0].startswith("`"):
        return found[0]
    if found["bytes"]:
        return "AS BINARY/*BYTES*/"
    digits = None if found["digits"] is None else int(found["digits"])
    is_local = found["local"] is not None or "LOCAL" in (found["zone"] or "").upper()
    return f"AS {time_type(is_local, digits)}"


def _without_comment(found: re.Match[str]) -> str:
    return found[0] if found["comment"] is None else " "


def _name(found: re.Match[str]) -> str:
    return found["quoted"] or found["name"]


def _options(text: str) -> dict[str, str]:
    options = {}
    for part in split_top_level(text):
        found = _OPTION.fullmatch(part)
        if found is None:
            raise GraphError(f"An option of a table is 'key' = 'value', not {part}.")
        options[found["key"].replace("''", "'")] = found["value"].replace("''", "'")
    return options


def _schema(text: str) -> Schema:
    builder = Schema.new_builder()
    for part in split_top_level(text):
        first = part.split(None, 1)[0].upper()
        if first in ("WATERMARK", "PRIMARY", "CONSTRAINT", "PERIOD") or _COMPUTED.search(part):
            raise GraphError(f"'{part}' is not here: a table has columns with types only.")
        found = _COLUMN.fullmatch(part)
        if found is None:
            raise GraphError(f"A column of a table is a name and a type, not '{part}'.")
        builder.column(_name(found), found["type"])
    return builder.build()
