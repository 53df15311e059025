"""Types of SQL as text: `DECIMAL(10, 2) NOT NULL` to a type of `DataTypes`."""

from __future__ import annotations

import re
from collections.abc import Callable

from rekindle.common.data_types import DataType, DataTypes, RowField, RowType
from rekindle.errors import GraphError

_PLAIN: dict[str, Callable[[], DataType]] = {
    "BOOLEAN": DataTypes.BOOLEAN,
    "TINYINT": DataTypes.TINYINT,
    "SMALLINT": DataTypes.SMALLINT,
    "INT": DataTypes.INT,
    "INTEGER": DataTypes.INT,
    "BIGINT": DataTypes.BIGINT,
    "FLOAT": DataTypes.FLOAT,
    "DOUBLE": DataTypes.DOUBLE,
    "DOUBLE PRECISION": DataTypes.DOUBLE,
    "STRING": DataTypes.STRING,
    "BYTES": DataTypes.BYTES,
    "DATE": DataTypes.DATE,
    "CHAR": lambda: DataTypes.CHAR(1),
    "VARCHAR": lambda: DataTypes.VARCHAR(1),
    "BINARY": lambda: DataTypes.BINARY(1),
    "VARBINARY": lambda: DataTypes.VARBINARY(1),
    "TIME": DataTypes.TIME,
    "TIMESTAMP": DataTypes.TIMESTAMP,
    "TIMESTAMP_LTZ": DataTypes.TIMESTAMP_LTZ,
    "DECIMAL": lambda: DataTypes.DECIMAL(10, 0),
    "DEC": lambda: DataTypes.DECIMAL(10, 0),
    "NUMERIC": lambda: DataTypes.DECIMAL(10, 0),
}
_SIZED: dict[str, Callable[..., DataType]] = {
    "CHAR": DataTypes.CHAR,
    "VARCHAR": DataTypes.VARCHAR,
    "BINARY": DataTypes.BINARY,
    "VARBINARY": DataTypes.VARBINARY,
    "TIME": DataTypes.TIME,
    "TIMESTAMP": DataTypes.TIMESTAMP,
    "TIMESTAMP_LTZ": DataTypes.TIMESTAMP_LTZ,
    "DECIMAL": lambda precision, scale=0: DataTypes.DECIMAL(precision, scale),
    "DEC": lambda precision, scale=0: DataTypes.DECIMAL(precision, scale),
    "NUMERIC": lambda precision, scale=0: DataTypes.DECIMAL(precision, scale),
}
_SIZE = re.compile(r"(?P<name>[A-Z_]+)\s*\((?P<numbers>[\d\s,]+)\)")
_NESTED = re.compile(r"(?P<name>ARRAY|MULTISET|MAP|ROW)\s*[<(](?P<inside>.*)[>)]", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))\s+(?P<type>.+)", re.DOTALL)


def parse_type(text: str) -> DataType:
    """Return the type of a text.

    >>> parse_type("MAP<STRING, ARRAY<DECIMAL(10, 2)>> NOT NULL").sql()
    'MAP<STRING, ARRAY<DECIMAL(10, 2)>> NOT NULL'
    """
    bare = " ".join(text.split())
    upper = bare.upper()
    if upper.endswith(" NOT NULL"):
        return parse_type(bare[: -len(" NOT NULL")]).not_null()
    if upper.endswith(" NULL"):
        return parse_type(bare[: -len(" NULL")])
    if upper.endswith(" WITH LOCAL TIME ZONE"):
        return parse_type(re.sub(r"(?i)^timestamp", "TIMESTAMP_LTZ", bare[: -len(" WITH LOCAL TIME ZONE")]))
    if upper.endswith(" WITHOUT TIME ZONE"):
        return parse_type(bare[: -len(" WITHOUT TIME ZONE")])
    if upper in _PLAIN:
        return _PLAIN[upper]()
    if (sized := _SIZE.fullmatch(upper)) and sized["name"] in _SIZED:
        return _SIZED[sized["name"]](*map(int, sized["numbers"].split(",")))
    if nested := _NESTED.fullmatch(bare):
        return _parse_nested(nested["name"].upper(), split_top_level(nested["inside"]), text)
    raise _no_type(text)


def _parse_nested(name: str, parts: list[str], text: str) -> DataType:
    if name == "ROW":
        fields = [_FIELD.fullmatch(part) for part in parts]
        if all(fields):
            return RowType(
                [RowField(each["quoted"] or each["name"], parse_type(each["type"])) for each in fields if each]
            )
    elif name == "MAP" and len(parts) == 2:
        return DataTypes.MAP(parse_type(parts[0]), parse_type(parts[1]))
    elif name != "MAP" and len(parts) == 1:
        return (DataTypes.ARRAY if name == "ARRAY" else DataTypes.MULTISET)(parse_type(parts[0]))
    raise _no_type(text)


def _no_type(text: str) -> GraphError:
    return GraphError(f"'{text}' is no type of SQL that tables have here: write BIGINT, STRING, DECIMAL(10, 2), ...")


def split_top_level(text: str) -> list[str]:
    """Split at the commas that are not in brackets or quotes.

    >>> split_top_level("a DECIMAL(1, 0), b MAP<INT, INT>, 'x,y'")
    ['a DECIMAL(1, 0)', 'b MAP<INT, INT>', "'x,y'"]
    """
    parts, depth, begin, quote = [], 0, 0, ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'`\"":
            quote = character
        elif character in "(<[":
            depth += 1
        elif character in ")>]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:index].strip())
            begin = index + 1
    rest = text[begin:].strip()
    return [*parts, rest] if rest else parts
