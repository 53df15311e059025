"""Rows as Flink's tables print them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from unicodedata import east_asian_width

from rekindle.common.java_numbers import double_text
from rekindle.common.types import Row

_WIDEST = 30


def row_text(values: Sequence[Any], kind: str = "+I") -> str:
    """Return a row as the print connector writes it.

    >>> row_text(["to", 1, None, True, [1.5]])
    '+I[to, 1, null, true, [1.5]]'
    """
    return f"{kind}[{', '.join(map(value_text, values))}]"


def value_text(value: Any) -> str:
    """Return a value in Java's form."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case Decimal():
            return f"{value:f}"
        case dt.datetime():
            return value.isoformat()
        case bytes() | bytearray():
            return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"
        case Row():
            return row_text(list(value))
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
        case dict():
            return f"{{{', '.join(f'{value_text(key)}={value_text(each)}' for key, each in value.items())}}}"
    return str(value)


def table_text(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as a table with a frame, each column as wide as its widest value, at most 30 characters.

    >>> print(table_text(["word"], [["to"]]))
    +----+------+
    | op | word |
    +----+------+
    | +I |   to |
    +----+------+
    1 row in set
    """
    texts = [["+I", *(_shortened(_cell(value)) for value in row)] for row in rows]
    header = ["op", *names]
    widths = [max(_width(line[index]) for line in (header, *texts)) for index in range(len(header))]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "| " + " | ".join(" " * (width - _width(text)) + text for width, text in zip(widths, line, strict=True)) + " |"
        for line in (header, *texts)
    ]
    count = f"{len(rows)} row{'' if len(rows) == 1 else 's'} in set"
    if not rows:
        return "Empty set"
    return "\n".join([rule, lines[0], rule, *lines[1:], rule, count])


def _cell(value: Any) -> str:
    return "<NULL>" if value is None else value_text(value)


def _shortened(text: str) -> str:
    return text if _width(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
