"""The types of stream elements and state values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.common.type_system.basic import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    InstantTypeInfo,
    LocalTimeTypeInfo,
    PickledBytesTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from rekindle.common.type_system.classes import (
    ClassTypeInfo,
    DataclassTypeInfo,
    EnumTypeInfo,
    NamedTupleTypeInfo,
    PythonTypeInfo,
    StructTypeInfo,
)
from rekindle.common.type_system.composite import (
    BasicArrayTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from rekindle.common.type_system.inference import infer_type_info
from rekindle.common.type_system.type_hint import TypeHint
from rekindle.common.type_system.type_information import TypeInformation

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "ClassTypeInfo",
    "DataclassTypeInfo",
    "DateTypeInfo",
    "EnumTypeInfo",
    "ExternalTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "LocalTimeTypeInfo",
    "MapTypeInfo",
    "NamedTupleTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "PythonTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "StructTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeHint",
    "TypeInformation",
    "Types",
    "infer_type_info",
]


class Types:
    """The common types under Flink's names. Wherever a type is expected, a Python type or class works as well.

    >>> Types.ROW_NAMED(["word", "count"], [Types.STRING(), int])
    Row<word: String, count: Long>
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """str."""
        return BasicTypeInfo.STRING_TYPE_INFO()

    @staticmethod
    def BYTE() -> TypeInformation:
        """int."""
        return BasicTypeInfo.BYTE_TYPE_INFO()

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """bool."""
        return BasicTypeInfo.BOOLEAN_TYPE_INFO()

    @staticmethod
    def SHORT() -> TypeInformation:
        """int."""
        return BasicTypeInfo.SHORT_TYPE_INFO()

    @staticmethod
    def INT() -> TypeInformation:
        """int of up to 64 bits."""
        return BasicTypeInfo.INT_TYPE_INFO()

    @staticmethod
    def LONG() -> TypeInformation:
        """int of up to 64 bits."""
        return BasicTypeInfo.LONG_TYPE_INFO()

    @staticmethod
    def FLOAT() -> TypeInformation:
        """float."""
        return BasicTypeInfo.FLOAT_TYPE_INFO()

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """float."""
        return BasicTypeInfo.DOUBLE_TYPE_INFO()

    @staticmethod
    def CHAR() -> TypeInformation:
        """str."""
        return BasicTypeInfo.CHAR_TYPE_INFO()

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """int of any size."""
        return BasicTypeInfo.BIG_INT_TYPE_INFO()

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """decimal.Decimal."""
        return BasicTypeInfo.BIG_DEC_TYPE_INFO()

    @staticmethod
    def INSTANT() -> TypeInformation:
        """rekindle.common.Instant."""
        return BasicTypeInfo.INSTANT_TYPE_INFO()

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """datetime.date."""
        return SqlTimeTypeInfo.DATE()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """datetime.time."""
        return SqlTimeTypeInfo.TIME()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """datetime.datetime."""
        return SqlTimeTypeInfo.TIMESTAMP()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Anything that can be pickled: the type of a stream without a declared type."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[Any]) -> RowTypeInfo:
        """Rows whose fields have these types."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[Any]) -> RowTypeInfo:
        """Rows whose fields have these names and types."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[Any]) -> TupleTypeInfo:
        """Tuples whose fields have these types."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: Any) -> TypeInformation:
        """Lists of a primitive type; `bytes` for Types.BYTE()."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: Any) -> TypeInformation:
        """Lists of a basic type."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: Any) -> TypeInformation:
        """Lists of any type."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: Any, value_type_info: Any) -> TypeInformation:
        """Dicts."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: Any) -> TypeInformation:
        """Lists."""
        return ListTypeInfo(element_type_info)
