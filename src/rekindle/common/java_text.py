"""Records as text, as PyFlink's jobs write them: a value of a declared type is a Java object there, printed by Java.

A function that makes the text is built once per type and called once per record.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from rekindle.common.java_numbers import double_text, float_text
from rekindle.common.time import Instant
from rekindle.common.type_system.basic import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    PickledBytesTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from rekindle.common.type_system.composite import (
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from rekindle.common.type_system.type_information import TypeInformation
from rekindle.common.types import Row

__all__ = ["java_text", "printed_text"]

Text = Callable[[Any], str]


def java_text(type_info: TypeInformation | None) -> Text:
    """The function that writes a value of a type as Java's `toString` does; a value without a type as Python's `str`.

    >>> from rekindle.common.typeinfo import Types
    >>> java_text(Types.TUPLE([Types.STRING(), Types.BOOLEAN(), Types.LIST(Types.INT())]))(("a", True, [1, 2]))
    '(a,true,[1, 2])'
    >>> java_text(Types.ROW([Types.STRING(), Types.DOUBLE()]))(Row("a", None))
    '+I[a, null]'
    """
    return str if type_info is None or isinstance(type_info, PickledBytesTypeInfo) else _nullable(_text_of(type_info))


def printed_text(type_info: TypeInformation | None) -> Text:
    """The function for `print()`: as `java_text`, but PyFlink itself writes rows there, with Python's text of a field.

    >>> from rekindle.common.typeinfo import Types
    >>> printed_text(Types.ROW([Types.STRING(), Types.BOOLEAN()]))(Row("a", True))
    '+I[a,True]'
    """
    if isinstance(type_info, ExternalTypeInfo):
        return printed_text(type_info._type_info)
    return _printed_row if isinstance(type_info, RowTypeInfo) else java_text(type_info)


def _printed_row(row: Any) -> str:
    if not isinstance(row, Row):
        return str(row)
    return f"{row._row_kind}[{','.join(map(str, row._values))}]"


def _nullable(text: Text) -> Text:
    return lambda value: "null" if value is None else text(value)


def _text_of(type_info: TypeInformation) -> Text:
    """The text of a value that is not None."""
    match type_info:
        case BasicTypeInfo():
            return _BASIC.get(type_info._basic_type, str)
        case TupleTypeInfo():
            return _TupleText(type_info)
        case RowTypeInfo():
            return _RowText(type_info)
        case MapTypeInfo():
            return _MapText(type_info)
        case ListTypeInfo():
            return _ListText(type_info)
        case ExternalTypeInfo():
            return _text_of(type_info._type_info)
        case TimeTypeInfo():
            return _sql_time
        case TimestampTypeInfo():
            return _sql_timestamp
        case DateTypeInfo():
            return str
        case LocalTimeTypeInfo():
            return _local_time
        case PickledBytesTypeInfo():
            return _field_without_type
        case _:
            return str


class _TupleText:
    def __init__(self, type_info: TupleTypeInfo) -> None:
        self._texts = [_nullable(_text_of(part)) for part in type_info.get_field_types()]

    def __call__(self, value: Any) -> str:
        return f"({','.join([text(field) for text, field in zip(self._texts, value, strict=True)])})"


class _RowText:
    def __init__(self, type_info: RowTypeInfo) -> None:
        self._texts = [_nullable(_text_of(part)) for part in type_info.get_field_types()]
        self._names = type_info.get_field_names()

    def __call__(self, value: Any) -> str:
        kind, fields = "+I", value
        if isinstance(value, Row):
            kind, fields = str(value.get_row_kind()), value.get_fields_by_names(self._names)
        elif isinstance(value, dict):
            fields = [value.get(name) for name in self._names]
        return f"{kind}[{', '.join([text(field) for text, field in zip(self._texts, fields, strict=True)])}]"


class _ListText:
    def __init__(self, type_info: ListTypeInfo) -> None:
        self._text = _nullable(_text_of(type_info.elem_type))

    def __call__(self, value: Any) -> str:
        if isinstance(value, bytes | bytearray):
            return _signed_bytes(value)
        return f"[{', '.join(map(self._text, value))}]"


class _MapText:
    def __init__(self, type_info: MapTypeInfo) -> None:
        self._key, self._item = (_nullable(_text_of(part)) for part in type_info._parts)

    def __call__(self, value: Any) -> str:
        return f"{{{', '.join([f'{self._key(key)}={self._item(item)}' for key, item in value.items()])}}}"


def _field_without_type(value: Any) -> str:
    return _signed_bytes(value) if isinstance(value, bytes | bytearray) else str(value)


def _signed_bytes(value: bytes | bytearray) -> str:
    return f"[{', '.join([str(byte if byte < 128 else byte - 256) for byte in value])}]"


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def _sql_time(value: Any) -> str:
    return value.strftime("%H:%M:%S") if isinstance(value, dt.time) else str(value)


def _sql_timestamp(value: Any) -> str:
    """Java's `Timestamp`: at least one digit of the second's fraction.

    >>> _sql_timestamp(dt.datetime(2021, 1, 9, 12, 0, 0, 11000)), _sql_timestamp(dt.datetime(2021, 1, 9))
    ('2021-01-09 12:00:00.011', '2021-01-09 00:00:00.0')
    """
    if not isinstance(value, dt.datetime):
        return str(value)
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value.year:04d}-{value:%m-%d %H:%M:%S}.{fraction}"


def _local_time(value: Any) -> str:
    """Java's `LocalDate`, `LocalTime` and `LocalDateTime`: seconds only where they are not 0."""
    if isinstance(value, dt.datetime):
        return f"{value.year:04d}-{value:%m-%d}T{_local_clock(value)}"
    return _local_clock(value) if isinstance(value, dt.time) else str(value)


def _local_clock(value: dt.time | dt.datetime) -> str:
    if not value.second and not value.microsecond:
        return f"{value:%H:%M}"
    return f"{value:%H:%M:%S}{_fraction_in_thousands(value.microsecond * 1000)}"


def _instant(value: Any) -> str:
    """Java's `Instant`.

    >>> _instant(Instant(0, 0)), _instant(Instant(1, 500_000_000))
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500Z')
    """
    if not isinstance(value, Instant):
        return str(value)
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=value.seconds)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{_fraction_in_thousands(value.nanos)}Z"


def _fraction_in_thousands(nanos: int) -> str:
    """The fraction of a second as Java's time classes write it: nothing, or three, six or nine digits."""
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}" if digits else ""


_BASIC: dict[BasicType, Text] = {
    BasicType.BOOLEAN: _boolean,
    BasicType.FLOAT: float_text,
    BasicType.DOUBLE: double_text,
    BasicType.INSTANT: _instant,
}
