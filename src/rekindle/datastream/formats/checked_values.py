"""Checks of values before they are written: a value of the wrong type or range is refused, not written."""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from rekindle.common.time import Instant
from rekindle.common.typeinfo import PrimitiveArrayTypeInfo, TypeInformation
from rekindle.datastream.formats.fieldwise import Convert
from rekindle.datastream.formats.mismatch import must_be

#: The ranges of Flink's integer types.
INTEGER_RANGES = {
    "Byte": (-(2**7), 2**7 - 1),
    "Short": (-(2**15), 2**15 - 1),
    "Integer": (-(2**31), 2**31 - 1),
    "Long": (-(2**63), 2**63 - 1),
}


def kind_of(type_info: TypeInformation) -> str | None:
    """Return the name of a type without parts: String, Integer, Timestamp, ..., and Bytes; None for other types.

    >>> from rekindle.common.typeinfo import Types
    >>> kind_of(Types.SQL_DATE()), kind_of(Types.PRIMITIVE_ARRAY(Types.BYTE())), kind_of(Types.LIST(int))
    ('Date', 'Bytes', None)
    """
    if isinstance(type_info, PrimitiveArrayTypeInfo) and type_info.python_type() is bytes:
        return "Bytes"
    kind = type_info.fingerprint()
    return kind if kind in _CHECKS else None


def checked(kind: str) -> Convert:
    """Return a function that returns a value of this kind, or raises `Mismatch`.

    >>> checked("Byte")(127)
    127
    """
    return _CHECKS[kind]


def integer_name(kind: str) -> str:
    """Return the name of an integer type with its range, for error messages.

    >>> integer_name("Byte")
    'Byte (-128 to 127)'
    """
    low, high = INTEGER_RANGES[kind]
    return f"{kind} ({low} to {high})"


def _is_number(value: Any, usual: type, kind: type) -> bool:
    # The abstract kind as well, because NumPy's integers are none of Python's.
    return type(value) is usual or (isinstance(value, kind) and type(value) is not bool)


def _integer(kind: str) -> Convert:
    low, high = INTEGER_RANGES[kind]

    def check(value: Any) -> int:
        if _is_number(value, int, numbers.Integral) and low <= value <= high:
            return int(value)
        raise must_be(integer_name(kind), value)

    return check


def _real(kind: str) -> Convert:
    def check(value: Any) -> float:
        if _is_number(value, float, numbers.Real):
            return float(value)
        raise must_be(kind, value)

    return check


def _instance(kind: str, *classes: type, but_not: type | None = None) -> Convert:
    def check(value: Any) -> Any:
        if isinstance(value, classes) and not (but_not is not None and isinstance(value, but_not)):
            return value
        raise must_be(kind, value)

    return check


def _character(value: Any) -> str:
    if isinstance(value, str) and len(value) == 1:
        return value
    raise must_be("Char (one character)", value)


def _big_decimal(value: Any) -> Decimal:
    if isinstance(value, float):
        value = Decimal(repr(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        value = Decimal(value)
    if isinstance(value, Decimal) and value.is_finite():
        return value
    raise must_be("BigDecimal", value)


def _time(kind: str) -> Convert:
    def check(value: Any) -> dt.time:
        if isinstance(value, dt.time) and not value.utcoffset():
            return value.replace(tzinfo=None)
        raise must_be(kind, value)

    return check


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise must_be("bytes", value)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    **{kind: _integer(kind) for kind in INTEGER_RANGES},
    "String": _instance("String", str),
    "Char": _character,
    "Boolean": _instance("Boolean", bool),
    "Float": _real("Float"),
    "Double": _real("Double"),
    "BigInteger": _instance("BigInteger", int, but_not=bool),
    "BigDecimal": _big_decimal,
    "Date": _instance("Date", dt.date, but_not=dt.datetime),
    "LocalDate": _instance("LocalDate", dt.date, but_not=dt.datetime),
    "Time": _time("Time"),
    "LocalTime": _time("LocalTime"),
    "Timestamp": _instance("Timestamp", dt.datetime),
    "LocalDateTime": _instance("LocalDateTime", dt.datetime),
    "Instant": _instance("Instant", Instant),
    "Bytes": _bytes,
}
