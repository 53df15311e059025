"""Lines of CSV: cut into cells as Jackson does for Flink, and put together from cells with Jackson's quotes."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rekindle.datastream.formats.mismatch import Mismatch

#: Jackson quotes longer cells without looking at them.
_LONGEST_CHECKED_CELL = 24
_LARGEST_CELL = 2**31 - 1


@dataclass(frozen=True)
class CsvLineFormat:
    """The characters of a line."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    line_end: str = "\n"
    array_delimiter: str = ";"
    null_literal: str | None = None
    allow_comments: bool = False


def line_splitter(form: CsvLineFormat) -> Callable[[str], list[str] | None]:
    """Return a function that cuts a line into cells; it returns None for a comment.

    >>> line_splitter(CsvLineFormat())('a,"b, c",\\n')
    ['a', 'b, c', '']
    """
    csv.field_size_limit(max(_LARGEST_CELL, csv.field_size_limit()))  # a setting of the whole process
    specials = "".join(filter(None, (form.quote, form.escape)))
    plain = re.compile(f"[{re.escape(specials)}\r\n]") if specials else re.compile("[\r\n]")

    def split(line: str) -> list[str] | None:
        if form.allow_comments and line.startswith("#"):
            return None
        line = line.removesuffix("\n").removesuffix("\r")
        if plain.search(line) is None:
            return line.split(form.delimiter)
        return _parsed(line, form)

    return split


def _parsed(line: str, form: CsvLineFormat) -> list[str]:
    quoting: Any = csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE
    try:
        reader = csv.reader(
            [line],
            delimiter=form.delimiter,
            quotechar=form.quote,
            escapechar=form.escape,
            quoting=quoting,
            strict=True,
        )
        return next(reader)
    except csv.Error as error:
        reason = "it has more than one line" if "new-line" in str(error) else str(error)
        raise Mismatch(f"is not a line of CSV: {reason}") from None


def cell_quoter(form: CsvLineFormat) -> Callable[[str], str]:
    """Return a function that quotes a cell of text where Jackson does: when it is long or has a character up to `,`.

    >>> quote = cell_quoter(CsvLineFormat())
    >>> quote("plain"), quote('a "test"')
    ('plain', '"a ""test"\""')
    """
    specials = [form.delimiter, form.quote or "", form.escape or "", "\r", "\n"]
    quote = form.quote
    if quote is None:
        return _escaper(form)
    first_safe = max(ord(special) for special in specials if special and special != form.escape) + 1
    unsafe = re.compile(f"[\\x00-{re.escape(chr(first_safe - 1))}{re.escape(form.escape or '')}]")

    def quoted(text: str) -> str:
        if len(text) <= _LONGEST_CHECKED_CELL and unsafe.search(text) is None:
            return text
        if form.escape:
            text = text.replace(form.escape, form.escape * 2)
        return f"{quote}{text.replace(quote, quote * 2)}{quote}"

    return quoted


def _escaper(form: CsvLineFormat) -> Callable[[str], str]:
    """Return a function for lines without quotes: it puts the escape character before what would end a cell."""
    special = re.compile(f"[{re.escape(form.delimiter)}{re.escape(form.escape or '')}\r\n]")

    def escaped(text: str) -> str:
        if special.search(text) is None:
            return text
        if form.escape is None or "\n" in text or "\r" in text:
            raise Mismatch(f"must not hold a delimiter or a line end, because there is no quote character: {text!r}")
        return special.sub(lambda found: f"{form.escape}{found[0]}", text)

    return escaped
