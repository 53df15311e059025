"""Cells of CSV: text to values and values to text, in Flink's forms."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from rekindle.common.java_numbers import double_text, float_text
from rekindle.common.type_system.fields import fields_of, record_maker
from rekindle.common.type_system.number_ranges import as_float32
from rekindle.common.typeinfo import ExternalTypeInfo, ListTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from rekindle.datastream.formats.checked_values import INTEGER_RANGES, checked, integer_name, kind_of
from rekindle.datastream.formats.csv_lines import CsvLineFormat
from rekindle.datastream.formats.fieldwise import Convert, each_element, each_field, values_reader
from rekindle.datastream.formats.mismatch import Mismatch, must_be
from rekindle.datastream.formats.time_texts import (
    date_of,
    instant_of_text,
    instant_text,
    time_of,
    time_text,
    timestamp_of,
    timestamp_text,
)
from rekindle.errors import GraphError

_NUMBERS = (*INTEGER_RANGES, "Float", "Double", "Boolean")


def cell_columns(type_info: TypeInformation) -> list[tuple[str, TypeInformation]]:
    """Return the names and types of the columns; refuse types that a line of CSV cannot hold.

    >>> cell_columns(RowTypeInfo([str], ["word"]))
    [('word', String)]
    """
    columns = fields_of(type_info)
    if columns is None:
        raise GraphError(f"CSV takes a type with fields, such as Types.ROW_NAMED, not {type_info!r}.")
    for name, part in columns:
        inner = _inner_types(part)
        if inner is None or any(kind_of(each) in (None, "Bytes") for each in inner):
            raise GraphError(
                f"CSV cannot hold field '{name}' of type {part!r}: only simple types, and arrays and rows of them."
            )
    return columns


def _inner_types(type_info: TypeInformation) -> list[TypeInformation] | None:
    """Return the types of the elements in a cell, none for a simple type, or None for what no cell can hold."""
    if kind_of(type_info) is not None:
        return []
    match type_info:
        case ExternalTypeInfo():
            return _inner_types(type_info._type_info)
        case ListTypeInfo():
            return [type_info.elem_type]
        case RowTypeInfo() | TupleTypeInfo():
            return type_info.get_field_types()
    return None


def cell_reader(type_info: TypeInformation, form: CsvLineFormat, ignore_errors: bool = False) -> Convert:
    """Return a function from a cell's text to its value; with `ignore_errors`, None for what does not fit.

    >>> from rekindle.common.typeinfo import Types
    >>> cell_reader(Types.OBJECT_ARRAY(Types.INT()), CsvLineFormat())("1;2")
    [1, 2]
    """
    read = _reader(type_info, form, ignore_errors)
    null = form.null_literal

    def read_cell(text: str) -> Any:
        if text == null:
            return None
        try:
            return read(text)
        except Mismatch:
            if ignore_errors:
                return None
            raise

    return read_cell


def _reader(type_info: TypeInformation, form: CsvLineFormat, ignore_errors: bool) -> Convert:
    if (kind := kind_of(type_info)) is not None:
        return _leaf_reader(kind)
    match type_info:
        case ExternalTypeInfo():
            return _reader(type_info._type_info, form, ignore_errors)
        case ListTypeInfo():
            convert = each_element(cell_reader(type_info.elem_type, form, ignore_errors))
            return lambda text: convert(text.split(form.array_delimiter)) if text else []
    return _row_reader(type_info, form, ignore_errors)


def _row_reader(type_info: TypeInformation, form: CsvLineFormat, ignore_errors: bool) -> Convert:
    fields = fields_of(type_info) or []
    readers = [cell_reader(part, form, ignore_errors) for _, part in fields]
    convert, make = each_field([name for name, _ in fields], readers), record_maker(type_info)

    def read(text: str) -> Any:
        cells = text.split(form.array_delimiter)
        if not text:  # as in Flink, a row without any text is null
            return None
        if len(cells) != len(fields):
            raise must_be(repr(type_info), text)
        return make([convert(cells)])[0]

    return read


def _leaf_reader(kind: str) -> Convert:
    if kind == "String":
        return str
    if kind in INTEGER_RANGES:
        return _integer_reader(kind)
    parse, name = _PARSERS[kind]

    def read(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, InvalidOperation):
            raise must_be(name, text) from None

    return read


def _integer_reader(kind: str) -> Convert:
    low, high = INTEGER_RANGES[kind]

    def read(text: str) -> int:
        try:
            number = int(_java_number(text))
        except ValueError:
            raise must_be(kind, text) from None
        if not low <= number <= high:
            raise must_be(integer_name(kind), text)
        return number

    return read


def _java_number(text: str) -> str:
    if "_" in text:  # Python's numbers may have underscores in them, Java's may not
        raise ValueError(text)
    return text


def _finite(text: str) -> Decimal:
    value = Decimal(_java_number(text).strip())
    if not value.is_finite():
        raise ValueError(text)
    return value


def _character(text: str) -> str:
    if len(text) != 1:
        raise ValueError(text)
    return text


def _float32(text: str) -> float:
    value = float(_java_number(text))
    fitting = as_float32(value)
    if math.isinf(fitting) and not math.isinf(value):
        raise ValueError(text)
    return fitting


def _timestamp(text: str) -> dt.datetime:
    return timestamp_of(text.strip(), " ")


_PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "Char": (_character, "Char (one character)"),
    "Boolean": (lambda text: text.strip().lower() == "true", "Boolean"),
    "Float": (_float32, "Float"),
    "Double": (lambda text: float(_java_number(text)), "Double"),
    "BigInteger": (lambda text: int(_java_number(text)), "BigInteger"),
    "BigDecimal": (_finite, "BigDecimal"),
    "Date": (lambda text: date_of(text.strip()), "Date (yyyy-mm-dd)"),
    "LocalDate": (lambda text: date_of(text.strip()), "LocalDate (yyyy-mm-dd)"),
    "Time": (lambda text: time_of(text.strip()), "Time (hh:mm:ss)"),
    "LocalTime": (lambda text: time_of(text.strip()), "LocalTime (hh:mm:ss)"),
    "Timestamp": (_timestamp, "Timestamp (yyyy-mm-dd hh:mm:ss)"),
    "LocalDateTime": (_timestamp, "LocalDateTime (yyyy-mm-dd hh:mm:ss)"),
    "Instant": (lambda text: instant_of_text(text.strip(), " "), "Instant (yyyy-mm-dd hh:mm:ssZ)"),
    "Bytes": (lambda text: base64.b64decode(text, validate=True), "bytes (base64)"),
}


def cell_writer(type_info: TypeInformation, form: CsvLineFormat, quote: Callable[[str], str]) -> Convert:
    """Return a function from a value to its cell, with quotes where it needs them.

    >>> cell_writer(ListTypeInfo(int), CsvLineFormat(), str)([1, 2])
    '1;2'
    """
    kind = kind_of(type_info)
    text = _text_writer(type_info, form)
    return text if kind in _NUMBERS else lambda value: quote(text(value))


def _text_writer(type_info: TypeInformation, form: CsvLineFormat) -> Convert:
    if (kind := kind_of(type_info)) is not None:
        check, text = checked(kind), _TEXTS.get(kind, str)
        return lambda value: text(check(value))
    match type_info:
        case ExternalTypeInfo():
            return _text_writer(type_info._type_info, form)
        case ListTypeInfo():
            element = each_element(_element_writer(type_info.elem_type, form))
            return lambda values: _joined(element(_checked_list(type_info, values)), form)
    names, parts, read = values_reader(type_info)
    convert = each_field(names, [_element_writer(part, form) for part in parts])
    return lambda record: _joined(convert(read(record)), form)


def _checked_list(type_info: ListTypeInfo, values: Any) -> Any:
    if not isinstance(values, list | tuple):
        raise must_be(repr(type_info), values)
    return values


def _element_writer(type_info: TypeInformation, form: CsvLineFormat) -> Convert:
    write = _text_writer(type_info, form)

    def element(value: Any) -> str:
        text: str = write(value)
        if form.array_delimiter in text:
            raise Mismatch(f"must not hold the array delimiter {form.array_delimiter!r}: {text!r}")
        return text

    return element


def _joined(texts: list[str | None], form: CsvLineFormat) -> str:
    null = form.null_literal or ""
    return form.array_delimiter.join(null if text is None else text for text in texts)


def _sql_timestamp_text(moment: dt.datetime) -> str:
    # java.sql.Timestamp always has a fraction.
    text = timestamp_text(moment, " ")
    return text if moment.microsecond else f"{text}.0"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "Boolean": lambda value: "true" if value else "false",
    "Float": float_text,
    "Double": double_text,
    "Time": time_text,
    "LocalTime": time_text,
    "Timestamp": _sql_timestamp_text,
    "LocalDateTime": lambda moment: timestamp_text(moment, " "),
    "Instant": lambda instant: instant_text(instant, " "),
    "Bytes": lambda value: base64.b64encode(value).decode(),
}
