"""The fields of records, for files and tables: names and types, values in order, and records made of values."""

from __future__ import annotations

import datetime as dt
import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from operator import attrgetter
from typing import Any, TypeAlias

from rekindle.common.time import Instant
from rekindle.common.type_system.basic import BasicType, BasicTypeInfo
from rekindle.common.type_system.classes import ClassTypeInfo, EnumTypeInfo
from rekindle.common.type_system.composite import (
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from rekindle.common.type_system.inference import infer_type_info
from rekindle.common.type_system.type_information import TypeInformation
from rekindle.common.types import Row, make_row

#: The conversion of a value; None where it needs none.
Conversion: TypeAlias = Callable[[Any], Any] | None
#: Makes records of sequences of values in the order of their fields.
RecordMaker: TypeAlias = Callable[[Iterable[Sequence[Any]]], list[Any]]
#: Makes columns of records.
ColumnsOf: TypeAlias = Callable[[Sequence[Any]], list[Sequence[Any]]]


def fields_of(type_info: TypeInformation) -> list[tuple[str, TypeInformation]] | None:
    """Names and types of the fields; None for a type without fields.

    >>> fields_of(infer_type_info(tuple[str, int]))
    [('f0', String), ('f1', Long)]
    """
    if isinstance(type_info, ExternalTypeInfo):
        return fields_of(type_info._type_info)
    if isinstance(type_info, RowTypeInfo):
        return list(zip(type_info.get_field_names(), type_info.get_field_types(), strict=True))
    if isinstance(type_info, TupleTypeInfo):
        return [(f"f{index}", part) for index, part in enumerate(type_info.get_field_types())]
    if isinstance(type_info, ClassTypeInfo) and not isinstance(type_info, EnumTypeInfo):
        hints = typing.get_type_hints(type_info.get_class())
        return [(name, infer_type_info(hint)) for name, hint in hints.items() if not name.startswith("__")]
    return None


def record_maker(type_info: TypeInformation) -> RecordMaker:
    """A function that makes records, many at once, of values in the order of `fields_of`.

    >>> record_maker(infer_type_info(tuple[str, int]))([("a", 1)])
    [('a', 1)]
    """
    if isinstance(type_info, ExternalTypeInfo):
        return record_maker(type_info._type_info)
    if isinstance(type_info, RowTypeInfo):
        names = type_info.get_field_names()
        return lambda rows: [make_row(names, list(values)) for values in rows]
    if isinstance(type_info, TupleTypeInfo):
        return lambda rows: list(map(tuple, rows))
    assert isinstance(type_info, ClassTypeInfo), type_info
    fields = [name for name, _ in fields_of(type_info) or ()]
    build: Any = type_info.get_class()
    if list(inspect.signature(build).parameters) == fields and not _by_name_only(build):
        return lambda rows: list(starmap(build, rows))
    return lambda rows: [build(**dict(zip(fields, values, strict=True))) for values in rows]


def _by_name_only(build: Any) -> bool:
    parameters = inspect.signature(build).parameters.values()
    return any(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters)


def columns_of(type_info: TypeInformation) -> ColumnsOf:
    """A function that makes columns, one per field, of records; each value in Arrow's form.

    >>> columns_of(infer_type_info(tuple[str, int]))([("a", 1), ("b", 2)])
    [('a', 'b'), (1, 2)]
    """
    if isinstance(type_info, ExternalTypeInfo):
        return columns_of(type_info._type_info)
    fields = fields_of(type_info)
    if fields is None:
        convert_all = to_arrow(type_info)
        return lambda records: [records if convert_all is None else list(map(convert_all, records))]
    names = [name for name, _ in fields]
    converts = [to_arrow(part) for _, part in fields]
    values: Callable[[Any], Any]
    if isinstance(type_info, RowTypeInfo):
        values = lambda row: row.get_fields_by_names(names) if isinstance(row, Row) else row  # noqa: E731
    elif isinstance(type_info, TupleTypeInfo):
        values = _same
    else:
        getter = attrgetter(*names)
        values = getter if len(names) > 1 else lambda record: (getter(record),)

    def columns(records: Sequence[Any]) -> list[Sequence[Any]]:
        return [
            column if convert is None else list(map(convert, column))
            for convert, column in zip(converts, zip(*map(values, records), strict=True), strict=True)
        ]

    return columns


def to_arrow(type_info: TypeInformation) -> Conversion:
    """The conversion from a stream's value to Arrow's Python value; None when they are the same."""
    match type_info:
        case ExternalTypeInfo():
            return to_arrow(type_info._type_info)
        case BasicTypeInfo() if type_info._basic_type is BasicType.INSTANT:
            return _nullable(_datetime_of)
        case EnumTypeInfo():
            return _nullable(lambda member: member.value)
        case PrimitiveArrayTypeInfo() if type_info.python_type() is bytes:
            return None
        case ListTypeInfo() if (element := to_arrow(type_info.elem_type)) is not None:
            return _nullable(lambda values: [element(value) for value in values])
        case MapTypeInfo():
            key, value = ((to_arrow(part) or _same) for part in type_info._parts)
            return _nullable(lambda items: [(key(each), value(item)) for each, item in items.items()])
    if (fields := fields_of(type_info)) is None:
        return None
    values = values_of(type_info)
    names = [name for name, _ in fields]
    return _nullable(lambda element: dict(zip(names, values(element), strict=True)))


def values_of(type_info: TypeInformation) -> Callable[[Any], list[Any]]:
    """A function that lists the fields of an element in the order of its type, each in Arrow's form."""
    if isinstance(type_info, ExternalTypeInfo):
        return values_of(type_info._type_info)
    fields = fields_of(type_info)
    if fields is None:
        convert = to_arrow(type_info) or _same
        return lambda element: [convert(element)]
    names = [name for name, _ in fields]
    parts = [to_arrow(part) or _same for _, part in fields]

    def convert_all(values: Iterable[Any]) -> list[Any]:
        return [convert(value) for convert, value in zip(parts, values, strict=True)]

    if isinstance(type_info, RowTypeInfo):
        return lambda row: convert_all(row.get_fields_by_names(names) if isinstance(row, Row) else row)
    if isinstance(type_info, TupleTypeInfo):
        return convert_all
    return lambda instance: convert_all(getattr(instance, name) for name in names)


def from_arrow(type_info: TypeInformation) -> Conversion:
    """The conversion from Arrow's Python value to the stream's: the inverse of `to_arrow`."""
    match type_info:
        case ExternalTypeInfo():
            return from_arrow(type_info._type_info)
        case BasicTypeInfo() if type_info._basic_type is BasicType.INSTANT:
            return _nullable(instant_of)
        case BasicTypeInfo() if type_info._basic_type is BasicType.BIG_INT:
            return _nullable(int)
        case EnumTypeInfo():
            return _nullable(type_info.get_class())
        case PrimitiveArrayTypeInfo() if type_info.python_type() is bytes:
            return None
        case ListTypeInfo() if (element := from_arrow(type_info.elem_type)) is not None:
            return _nullable(lambda values: [element(value) for value in values])
        case MapTypeInfo():
            key, value = ((from_arrow(part) or _same) for part in type_info._parts)
            return _nullable(lambda items: {key(each): value(item) for each, item in items})
    if (fields := fields_of(type_info)) is None:
        return None
    make = record_maker(type_info)
    parts = [(name, from_arrow(part) or _same) for name, part in fields]
    return _nullable(lambda values: make([[convert(values[name]) for name, convert in parts]])[0])


def instant_of(moment: dt.datetime) -> Instant:
    """The instant of a datetime; a datetime without a time zone is in UTC.

    >>> instant_of(dt.datetime(1970, 1, 1, 0, 0, 1, 5))
    Instant<1, 5000>
    """
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return Instant(int(aware.replace(microsecond=0).timestamp()), aware.microsecond * 1000)


def _datetime_of(instant: Instant) -> dt.datetime:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return epoch + dt.timedelta(seconds=instant.seconds, microseconds=instant.nanos // 1000)


def _nullable(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value
