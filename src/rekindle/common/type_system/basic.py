"""Types without parts: numbers, strings, times, and pickled values."""

from __future__ import annotations

import calendar
import datetime as dt
import time
from decimal import Decimal
from enum import Enum
from typing import Any

from rekindle.common.time import Instant
from rekindle.common.type_system.number_ranges import number_fitter
from rekindle.common.type_system.type_information import Converter, TypeInformation
from rekindle.errors import TypeMismatchError
from rekindle.serde.type_schema import TypeSchema


class BasicType(Enum):
    """The basic types by name."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


_PYTHON_TYPES: dict[BasicType, Any] = {
    BasicType.STRING: str,
    BasicType.BYTE: int,
    BasicType.BOOLEAN: bool,
    BasicType.SHORT: int,
    BasicType.INT: int,
    BasicType.LONG: int,
    BasicType.FLOAT: float,
    BasicType.DOUBLE: float,
    BasicType.CHAR: str,
    # Beyond 64 bits an int travels as hexadecimal digits.
    BasicType.BIG_INT: int | str,
    BasicType.BIG_DEC: Decimal,
    BasicType.INSTANT: tuple[int, int],
}
_MIN_INT, _MAX_INT = -(2**63), 2**64 - 1  # msgpack's range


class BasicTypeInfo(TypeInformation):
    """Numbers, booleans, strings, big numbers.

    The integer types all carry Python ints of up to 64 bits, BIG_INT carries any:

    >>> BasicTypeInfo.LONG_TYPE_INFO()
    Long
    """

    def __init__(self, basic_type: BasicType) -> None:
        self._basic_type = basic_type

    def python_type(self) -> Any:
        return _PYTHON_TYPES[self._basic_type]

    def _fit(self, wrap: bool) -> Converter | None:
        return number_fitter(self._basic_type.value, wrap)

    def to_wire(self) -> Converter | None:
        return _big_int_to_wire if self._basic_type is BasicType.BIG_INT else None

    def from_wire(self) -> Converter | None:
        return _big_int_from_wire if self._basic_type is BasicType.BIG_INT else None

    def fingerprint(self) -> str:
        return self._basic_type.value

    def schema(self) -> TypeSchema:
        return TypeSchema(self._basic_type.value)

    def __repr__(self) -> str:
        return self._basic_type.value

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo:
        """str."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo:
        """bool."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo:
        """int."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo:
        """int."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo:
        """int."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo:
        """int."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo:
        """float."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo:
        """float."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo:
        """str."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo:
        """int of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo:
        """decimal.Decimal."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT_TYPE_INFO() -> BasicTypeInfo:
        """rekindle.common.Instant."""
        return InstantTypeInfo(BasicType.INSTANT)


class InstantTypeInfo(BasicTypeInfo):
    """`rekindle.common.Instant`."""

    def to_wire(self) -> Converter:
        return _instant_to_wire

    def from_wire(self) -> Converter:
        return _instant_from_wire

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Instant | None) -> int | None:
        """Microseconds since 1970."""
        return None if obj is None else obj.to_epoch_milli() * 1000

    def from_internal_type(self, obj: int | None) -> Instant | None:
        """From microseconds since 1970."""
        return None if obj is None else Instant.of_epoch_milli(obj // 1000)


def _big_int_to_wire(value: int | None) -> int | str | None:
    if value is None:
        return None
    if not isinstance(value, int):
        raise TypeMismatchError(f"it is a {type(value).__name__}, not an int")
    return value if _MIN_INT <= value <= _MAX_INT else format(value, "x")


def _big_int_from_wire(value: int | str | None) -> int | None:
    return int(value, 16) if isinstance(value, str) else value


def _instant_to_wire(value: Instant | None) -> tuple[int, int] | None:
    return None if value is None else (value.seconds, value.nanos)


def _instant_from_wire(value: tuple[int, int] | None) -> Instant | None:
    return None if value is None else Instant(*value)


class SqlTimeTypeInfo:
    """SQL's date, time and timestamp under their Flink names."""

    @staticmethod
    def DATE() -> DateTypeInfo:
        """datetime.date."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """datetime.time."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """datetime.datetime."""
        return TimestampTypeInfo()


class DateTypeInfo(TypeInformation):
    """`datetime.date`."""

    EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()

    def python_type(self) -> Any:
        return dt.date

    def fingerprint(self) -> str:
        return "Date"

    def schema(self) -> TypeSchema:
        return TypeSchema("Date")

    def __repr__(self) -> str:
        return "Date"

    def __str__(self) -> str:
        return "DateTypeInfo"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, d: dt.date | None) -> int | None:
        """Days since 1970-01-01."""
        return None if d is None else d.toordinal() - self.EPOCH_ORDINAL

    def from_internal_type(self, v: int | None) -> dt.date | None:
        """From days since 1970-01-01."""
        return None if v is None else dt.date.fromordinal(v + self.EPOCH_ORDINAL)


class TimeTypeInfo(TypeInformation):
    """`datetime.time`."""

    EPOCH_ORDINAL = calendar.timegm(time.localtime(0)) * 1_000_000

    def python_type(self) -> Any:
        return dt.time

    def fingerprint(self) -> str:
        return "Time"

    def schema(self) -> TypeSchema:
        return TypeSchema("Time")

    def __repr__(self) -> str:
        return "Time"

    def __str__(self) -> str:
        return "TimeTypeInfo"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, t: dt.time | None) -> int | None:
        """Microseconds since midnight."""
        if t is None:
            return None
        return ((t.hour * 60 + t.minute) * 60 + t.second) * 1_000_000 + t.microsecond

    def from_internal_type(self, t: int | None) -> dt.time | None:
        """From microseconds since midnight."""
        return None if t is None else (dt.datetime.min + dt.timedelta(microseconds=t)).time()


class TimestampTypeInfo(TypeInformation):
    """`datetime.datetime`; a value with a time zone is decoded as the same instant in UTC."""

    def python_type(self) -> Any:
        return dt.datetime

    def fingerprint(self) -> str:
        return "Timestamp"

    def schema(self) -> TypeSchema:
        return TypeSchema("Timestamp")

    def __repr__(self) -> str:
        return "Timestamp"

    def __str__(self) -> str:
        return "TimestampTypeInfo"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, dt: dt.datetime | None) -> int | None:
        """Microseconds since 1970; a value without a time zone is in the machine's own."""
        if dt is None:
            return None
        seconds = calendar.timegm(dt.utctimetuple()) if dt.tzinfo else time.mktime(dt.timetuple())
        return int(seconds) * 1_000_000 + dt.microsecond

    def from_internal_type(self, ts: int | None) -> dt.datetime | None:
        """From microseconds since 1970, in the machine's own time zone."""
        if ts is None:
            return None
        return dt.datetime.fromtimestamp(ts // 1_000_000).replace(microsecond=ts % 1_000_000)


class LocalTimeTypeInfo(TypeInformation):
    """Date, time and timestamp without a time zone, under their Java names."""

    class TimeType(Enum):
        """Date, time or timestamp."""

        LOCAL_DATE = "LocalDate"
        LOCAL_TIME = "LocalTime"
        LOCAL_DATE_TIME = "LocalDateTime"

    def __init__(self, time_type: TimeType) -> None:
        self._time_type = time_type

    def python_type(self) -> Any:
        kinds = LocalTimeTypeInfo.TimeType
        return {kinds.LOCAL_DATE: dt.date, kinds.LOCAL_TIME: dt.time}.get(self._time_type, dt.datetime)

    def fingerprint(self) -> str:
        return self._time_type.value

    def schema(self) -> TypeSchema:
        return TypeSchema(self._time_type.value)

    def __repr__(self) -> str:
        return self._time_type.value

    def __str__(self) -> str:
        return f"LocalTimeTypeInfo<{self._time_type.name}>"


class PickledBytesTypeInfo(TypeInformation):
    """Values without a declared type, which are pickled.

    >>> PickledBytesTypeInfo().describe()
    'Pickled (pickled: no type was declared)'
    """

    def python_type(self) -> None:
        return None

    def pickle_reason(self) -> str:
        return "no type was declared"

    def fingerprint(self) -> str:
        return "Pickled"

    def schema(self) -> TypeSchema:
        return TypeSchema("Tagged")

    def __repr__(self) -> str:
        return "Pickled"

    def __str__(self) -> str:
        return "PickledByteArrayTypeInfo"
