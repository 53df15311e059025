"""The way of records into JSON: values become what msgspec writes as Flink's JsonRowSerializationSchema does."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from rekindle.common.typeinfo import (
    ClassTypeInfo,
    EnumTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    NamedTupleTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from rekindle.common.types import Row
from rekindle.datastream.formats.checked_values import INTEGER_RANGES, checked, kind_of
from rekindle.datastream.formats.fieldwise import Convert, each_element, each_entry, each_field, values_reader
from rekindle.datastream.formats.mismatch import Mismatch, must_be
from rekindle.datastream.formats.time_texts import instant_text, time_text, timestamp_text

#: Numbers that are finite: the others are text in JSON.
_FINITE = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_HINTS: dict[str, Any] = {
    **{kind: Annotated[int, msgspec.Meta(ge=low, le=high)] for kind, (low, high) in INTEGER_RANGES.items()},
    "String": str,
    "Boolean": bool,
    "Float": _FINITE,
    "Double": _FINITE,
}


def json_value_of(type_info: TypeInformation) -> Convert:
    """Return a function from a value of this type, not None, to a value that msgspec writes as JSON.

    >>> from rekindle.common.typeinfo import Types
    >>> json_value_of(Types.ROW_NAMED(["at"], [Types.SQL_TIME()]))({"at": __import__("datetime").time(12, 30)})
    {'at': '12:30:00Z'}
    """
    if (kind := kind_of(type_info)) is not None:
        return _leaf(kind)
    match type_info:
        case ExternalTypeInfo():
            return json_value_of(type_info._type_info)
        case ListTypeInfo():
            return _array(type_info)
        case MapTypeInfo():
            return _map(type_info)
        case TupleTypeInfo():
            _, parts, read = values_reader(type_info)
            convert = each_field(range(len(parts)), list(map(json_value_of, parts)))
            return lambda record: convert(read(record))
        case RowTypeInfo() | NamedTupleTypeInfo():
            return _object(type_info)
        case ClassTypeInfo() if not isinstance(type_info, EnumTypeInfo):
            return _instance(type_info)
    return _as_it_is


def checked_struct_of(type_info: RowTypeInfo) -> Convert:
    """Return a function from a row to a struct, which msgspec writes as the row's object.

    The struct's fields are checked by msgspec: several times as fast as field by field, but stricter. Rows that it
    refuses are for `json_value_of`.
    """
    names, parts, read = values_reader(type_info)
    slots = [f"f{index}" for index in range(len(parts))]
    hints = [_HINTS.get(kind_of(part) or "") for part in parts]
    struct = msgspec.defstruct(
        "Record",
        [(slot, Any if hint is None else hint | None) for slot, hint in zip(slots, hints, strict=True)],
        rename=dict(zip(slots, names, strict=True)),
        gc=False,
    )
    others = [(index, json_value_of(parts[index])) for index, hint in enumerate(hints) if hint is None]

    def to_struct(row: Any) -> Any:
        values = read(row)
        if others:
            values = list(values)
            for index, write in others:
                if values[index] is not None:
                    values[index] = write(values[index])
        return msgspec.convert(dict(zip(names, values, strict=True)), struct)

    return to_struct


def json_encoder() -> msgspec.json.Encoder:
    """Return an encoder that writes decimals as numbers, as Jackson does."""
    return msgspec.json.Encoder(decimal_format="number", enc_hook=_plain)


def non_finite_as_text(value: Any) -> Any:
    """Return an instance of a class as plain data, in which NaN and infinities are text, as in rows.

    >>> non_finite_as_text({"a": [1.5, float("nan")]})
    {'a': [1.5, 'NaN']}
    """
    return _texts_in(msgspec.to_builtins(value, builtin_types=(Decimal,), enc_hook=_plain))


def _texts_in(value: Any) -> Any:
    match value:
        case float():
            return _number(value)
        case dict():
            return {key: _texts_in(each) for key, each in value.items()}
        case list() | tuple():
            return [_texts_in(each) for each in value]
    return value


def _leaf(kind: str) -> Convert:
    check = checked(kind)
    match kind:
        case "Float" | "Double":
            return lambda value: _number(check(value))
        case "Time" | "LocalTime":
            return lambda value: time_text(check(value)) + "Z"
        case "Timestamp" | "LocalDateTime":
            return lambda value: timestamp_text(check(value)) + "Z"
        case "Instant":
            return lambda value: instant_text(check(value))
    return check


def _number(value: float) -> float | str:
    # Jackson writes what is no JSON number as text, under Java's names.
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _array(type_info: ListTypeInfo) -> Convert:
    convert = each_element(json_value_of(type_info.elem_type))

    def array(values: Any) -> list[Any]:
        if not isinstance(values, list | tuple):
            raise must_be(repr(type_info), values)
        return convert(values)

    return array


def _map(type_info: MapTypeInfo) -> Convert:
    key, value = type_info._parts
    convert = each_entry(_key(key), json_value_of(value))

    def entries(values: Any) -> dict[Any, Any]:
        if not isinstance(values, dict):
            raise must_be(repr(type_info), values)
        return convert(values)

    return entries


def _key(type_info: TypeInformation) -> Convert:
    convert = json_value_of(type_info)

    def key(value: Any) -> str:
        if value is None:
            raise Mismatch("must not be None: a key of a JSON object is text")
        converted = convert(value)
        return converted if isinstance(converted, str) else json_encoder().encode(converted).decode().strip('"')

    return key


def _object(type_info: TypeInformation) -> Convert:
    names, parts, read = values_reader(type_info)
    convert = each_field(names, list(map(json_value_of, parts)))
    return lambda record: dict(zip(names, convert(read(record)), strict=True))


def _instance(type_info: ClassTypeInfo) -> Convert:
    cls = type_info.get_class()

    def instance(value: Any) -> Any:
        if not isinstance(value, cls):
            raise must_be(repr(type_info), value)
        return value

    return instance


def _as_it_is(value: Any) -> Any:
    return value


def _plain(value: Any) -> Any:
    """Return the JSON form of what msgspec does not know: rows in values without a declared type."""
    if isinstance(value, Row):
        return list(value) if value._names is None else value.as_dict()
    raise must_be("a value that JSON has", value)
