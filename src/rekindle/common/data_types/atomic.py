"""Types of tables without parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Self

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.errors import GraphError

#: The length of a text or of bytes without a limit.
UNLIMITED = 0x7FFFFFFF
_WIDE = Context(prec=100)


class DataType(ABC):
    """The type of a column: its SQL name, whether it may be null, and the stream type that carries its values.

    >>> IntType().not_null().sql()
    'INT NOT NULL'
    """

    def __init__(self, nullable: bool = True) -> None:
        self._nullable = nullable
        self._conversion_cls = ""

    @abstractmethod
    def sql_name(self) -> str:
        """Return the name in Flink's SQL, without NOT NULL."""

    @abstractmethod
    def spark_name(self) -> str:
        """Return the name in Spark's SQL."""

    @abstractmethod
    def to_type_info(self) -> TypeInformation:
        """Return the stream type whose values such a column holds."""

    def sql(self) -> str:
        """Return the type as Flink's SQL writes it."""
        return self.sql_name() if self._nullable else f"{self.sql_name()} NOT NULL"

    @classmethod
    def type_name(cls) -> str:
        """Return the name of the class of types, such as BIGINT."""
        return cls.__name__.removesuffix("Type").upper()

    def not_null(self) -> Self:
        """Return the same type without null."""
        changed = copy(self)
        changed._nullable = False
        return changed

    def nullable(self) -> Self:
        """Return the same type with null."""
        changed = copy(self)
        changed._nullable = True
        return changed

    def bridged_to(self, conversion_cls: str) -> Self:
        """Accepted without effect: the Java class of a value has no meaning here."""
        self._conversion_cls = conversion_cls
        return self

    def _arguments(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        shown = [*map(repr, self._arguments()), str(self._nullable).lower()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __str__(self) -> str:
        return type(self).type_name()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(str(self))


class AtomicType(DataType):
    """A type without parts."""

    _SQL = ""
    _SPARK = ""

    def sql_name(self) -> str:
        return self._SQL

    def spark_name(self) -> str:
        return self._SPARK or self._SQL


class NullType(AtomicType):
    """The type of null."""

    _SQL, _SPARK = "NULL", "VOID"

    def __init__(self) -> None:
        super().__init__(True)

    def to_type_info(self) -> TypeInformation:
        return Types.PICKLED_BYTE_ARRAY()


class NumericType(AtomicType):
    """Numbers."""


class IntegralType(NumericType):
    """Whole numbers."""


class FractionalType(NumericType):
    """Numbers with a fraction."""


class TinyIntType(IntegralType):
    """Whole numbers of 8 bits."""

    _SQL = "TINYINT"

    def to_type_info(self) -> TypeInformation:
        return Types.BYTE()


class SmallIntType(IntegralType):
    """Whole numbers of 16 bits."""

    _SQL = "SMALLINT"

    def to_type_info(self) -> TypeInformation:
        return Types.SHORT()


class IntType(IntegralType):
    """Whole numbers of 32 bits."""

    _SQL = "INT"

    def to_type_info(self) -> TypeInformation:
        return Types.INT()


class BigIntType(IntegralType):
    """Whole numbers of 64 bits."""

    _SQL = "BIGINT"

    def to_type_info(self) -> TypeInformation:
        return Types.LONG()


class FloatType(FractionalType):
    """Numbers of 32 bits."""

    _SQL = "FLOAT"

    def to_type_info(self) -> TypeInformation:
        return Types.FLOAT()


class DoubleType(FractionalType):
    """Numbers of 64 bits."""

    _SQL = "DOUBLE"

    def to_type_info(self) -> TypeInformation:
        return Types.DOUBLE()


class DecimalType(FractionalType):
    """Decimal numbers with `precision` digits, `scale` of them after the point."""

    def __init__(self, precision: int = 10, scale: int = 0, nullable: bool = True) -> None:
        super().__init__(nullable)
        if not (isinstance(precision, int) and isinstance(scale, int) and 1 <= precision <= 38):
            raise GraphError(f"DECIMAL({precision}, {scale}): the precision is a number from 1 to 38.")
        if not 0 <= scale <= precision:
            raise GraphError(f"DECIMAL({precision}, {scale}): the scale is a number from 0 to the precision.")
        self.precision = precision
        self.scale = scale

    def sql_name(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"

    def spark_name(self) -> str:
        return self.sql_name()

    def to_type_info(self) -> TypeInformation:
        return Types.BIG_DEC()

    def rounded(self, value: Decimal) -> Decimal:
        """Return a number with as many digits after the point as the type has, rounded half up, as Flink does.

        >>> DecimalType(2, 0).rounded(Decimal("1.5"))
        Decimal('2')
        """
        return Decimal(value).quantize(Decimal(1).scaleb(-self.scale), ROUND_HALF_UP, _WIDE)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.precision, self.scale)


class BooleanType(AtomicType):
    """True and false."""

    _SQL = "BOOLEAN"

    def to_type_info(self) -> TypeInformation:
        return Types.BOOLEAN()


class _SizedType(AtomicType):
    """A type with a length."""

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        super().__init__(nullable)
        if not isinstance(length, int) or not 1 <= length <= UNLIMITED:
            raise GraphError(f"{type(self).type_name()}({length!r}): the length is a number from 1 to {UNLIMITED}.")
        self.length = length

    def sql_name(self) -> str:
        return f"{type(self).type_name()}({self.length})"

    def _arguments(self) -> tuple[Any, ...]:
        return (self.length,)


class CharType(_SizedType):
    """Text of a fixed length."""

    def spark_name(self) -> str:
        return "STRING"

    def to_type_info(self) -> TypeInformation:
        return Types.STRING()


class VarCharType(CharType):
    """Text of a largest length."""

    def sql_name(self) -> str:
        return "STRING" if self.length == UNLIMITED else super().sql_name()


class BinaryType(_SizedType):
    """Bytes of a fixed length."""

    def spark_name(self) -> str:
        return "BINARY"

    def to_type_info(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class VarBinaryType(BinaryType):
    """Bytes of a largest length."""

    def sql_name(self) -> str:
        return "BYTES" if self.length == UNLIMITED else super().sql_name()


class DateType(AtomicType):
    """Dates."""

    _SQL = "DATE"

    def to_type_info(self) -> TypeInformation:
        return Types.SQL_DATE()


class _FractionOfSecondType(AtomicType):
    """A type of times with `precision` digits of a second's fraction."""

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(nullable)
        if not isinstance(precision, int) or not 0 <= precision <= 9:
            raise GraphError(f"{type(self).type_name()}({precision!r}): the precision is a number from 0 to 9.")
        self.precision = precision

    def sql_name(self) -> str:
        return f"{self._SQL}({self.precision})"

    def _arguments(self) -> tuple[Any, ...]:
        return (self.precision,)


class TimeType(_FractionOfSecondType):
    """Times of a day."""

    _SQL = "TIME"

    def __init__(self, precision: int = 0, nullable: bool = True) -> None:
        super().__init__(precision, nullable)

    def spark_name(self) -> str:
        raise GraphError("Spark's SQL has no times of a day (TIME): use a TIMESTAMP, or a STRING.")

    def to_type_info(self) -> TypeInformation:
        return Types.SQL_TIME()


class TimestampType(_FractionOfSecondType):
    """Date and time without a time zone."""

    _SQL, _SPARK = "TIMESTAMP", "TIMESTAMP_NTZ"

    def spark_name(self) -> str:
        return self._SPARK

    def to_type_info(self) -> TypeInformation:
        return Types.SQL_TIMESTAMP()


class LocalZonedTimestampType(_FractionOfSecondType):
    """Instants, shown in the session's time zone."""

    _SQL, _SPARK = "TIMESTAMP_LTZ", "TIMESTAMP_LTZ"

    def spark_name(self) -> str:
        return self._SPARK

    def to_type_info(self) -> TypeInformation:
        return Types.INSTANT()
