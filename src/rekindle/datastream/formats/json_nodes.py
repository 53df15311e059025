"""The lenient way of JSON into records: like Flink, numbers may be text, text may be a number, and so on.

Every message that `json_reading` refuses comes here. Conversions raise `Mismatch`; with `ignore_errors`, a field or
element that does not fit becomes None instead.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from rekindle.common.type_system.fields import fields_of, record_maker
from rekindle.common.typeinfo import (
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    NamedTupleTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from rekindle.datastream.formats.checked_values import INTEGER_RANGES, integer_name, kind_of
from rekindle.datastream.formats.fieldwise import Convert, each_element, each_entry, each_field
from rekindle.datastream.formats.mismatch import Mismatch, shown
from rekindle.datastream.formats.time_texts import date_of, instant_of_text, time_of, timestamp_of

#: Reads any JSON; numbers with a fraction become decimals, so that none of their digits is lost.
decode_node = msgspec.json.Decoder(float_hook=Decimal).decode
_encode_node = msgspec.json.Encoder(decimal_format="number").encode


def node_reader(type_info: TypeInformation, require_all: bool = False, ignore_errors: bool = False) -> Convert:
    """Return a function from what `decode_node` returns to a value of the type.

    >>> from rekindle.common.typeinfo import Types
    >>> node_reader(Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]))({"id": "7", "name": 1.5})
    Row(id=7, name='1.5')
    """
    read = _reader(type_info, require_all, ignore_errors)
    if not ignore_errors:
        return read

    def read_or_none(node: Any) -> Any:
        try:
            return read(node)
        except Mismatch:
            return None

    return read_or_none


def _reader(type_info: TypeInformation, require_all: bool, ignore_errors: bool) -> Convert:
    if (kind := kind_of(type_info)) is not None:
        return _leaf(kind)
    match type_info:
        case ExternalTypeInfo():
            return _reader(type_info._type_info, require_all, ignore_errors)
        case ListTypeInfo():
            convert = each_element(node_reader(type_info.elem_type, require_all, ignore_errors))
            return lambda node: convert(_expect(list, type_info, node))
        case MapTypeInfo():
            entries = each_entry(*(node_reader(part, require_all, ignore_errors) for part in type_info._parts))
            return lambda node: entries(_expect(dict, type_info, node))
        case TupleTypeInfo():
            return _array_reader(type_info, require_all, ignore_errors)
        case RowTypeInfo() | NamedTupleTypeInfo():
            return _object_reader(type_info, require_all, ignore_errors)
    return _class_reader(type_info)


def _expect(expected: type, type_info: TypeInformation, node: Any) -> Any:
    if not isinstance(node, expected):
        raise _unfit(repr(type_info), node)
    return node


def _unfit(expected: str, node: Any) -> Mismatch:
    return Mismatch(f"must be {expected}, not {shown(_encode_node(node).decode())}")


def _array_reader(type_info: TupleTypeInfo, require_all: bool, ignore_errors: bool) -> Convert:
    parts = type_info.get_field_types()
    convert = each_field(range(len(parts)), [node_reader(part, require_all, ignore_errors) for part in parts])

    def read(node: Any) -> tuple[Any, ...]:
        if len(_expect(list, type_info, node)) != len(parts):
            raise _unfit(repr(type_info), node)
        return tuple(convert(node))

    return read


def _object_reader(type_info: TypeInformation, require_all: bool, ignore_errors: bool) -> Convert:
    fields = fields_of(type_info) or []
    names = [name for name, _ in fields]
    convert = each_field(names, [node_reader(part, require_all, ignore_errors) for _, part in fields])
    make = record_maker(type_info)

    def read(node: Any) -> Any:
        _expect(dict, type_info, node)
        missing = [name for name in names if name not in node] if require_all else ()
        if missing:
            raise Mismatch("is missing").inside(missing[0])
        return make([convert([node.get(name) for name in names])])[0]

    return read


def _class_reader(type_info: TypeInformation) -> Convert:
    hint = type_info.python_type() or Any

    def read(node: Any) -> Any:
        try:
            return msgspec.json.decode(_encode_node(node), type=hint, strict=False)
        except msgspec.ValidationError as error:
            raise Mismatch(f"does not fit {type_info!r}: {str(error).rstrip('.')}") from None

    return read


def _leaf(kind: str) -> Convert:
    if kind in INTEGER_RANGES:
        return _integer(kind)
    read, name = _LEAVES[kind]

    def convert(node: Any) -> Any:
        try:
            return read(node)
        except (ValueError, InvalidOperation):
            raise _unfit(name, node) from None

    return convert


def _integer(kind: str) -> Convert:
    low, high = INTEGER_RANGES[kind]
    with_fraction = kind in ("Integer", "Long")

    def convert(node: Any) -> int:
        try:
            number = int(node) if with_fraction and isinstance(node, Decimal) else _whole(node)
        except (ValueError, OverflowError):
            raise _unfit(kind, node) from None
        if not low <= number <= high:
            raise _unfit(integer_name(kind), node)
        return number

    return convert


def _whole(node: Any) -> int:
    if type(node) is int:
        return node
    text = _number_text(node)
    return int(text)


def _number_text(node: Any) -> str:
    # Python's numbers may have underscores in them, Java's may not.
    if isinstance(node, bool | list | dict) or (isinstance(node, str) and "_" in node):
        raise ValueError(node)
    return node.strip() if isinstance(node, str) else str(node)


def _text(node: Any) -> str:
    if isinstance(node, str):
        return node
    return str(node) if isinstance(node, Decimal) else _encode_node(node).decode()


def _character(node: Any) -> str:
    text = _text(node)
    if len(text) != 1:
        raise ValueError(text)
    return text


def _boolean(node: Any) -> bool:
    if isinstance(node, list | dict):
        raise ValueError(node)
    # As in Flink, every other text is false.
    return node if isinstance(node, bool) else _text(node).strip().lower() == "true"


def _decimal(node: Any) -> Decimal:
    value = Decimal(_number_text(node))
    if not value.is_finite():
        raise ValueError(node)
    return value


def _from_text(parse: Callable[[str], Any]) -> Convert:
    def read(node: Any) -> Any:
        if not isinstance(node, str):
            raise ValueError(node)
        return parse(node)

    return read


_LEAVES: dict[str, tuple[Convert, str]] = {
    "String": (_text, "String"),
    "Char": (_character, "Char (one character)"),
    "Boolean": (_boolean, "Boolean"),
    "Float": (lambda node: float(_number_text(node)), "Float"),
    "Double": (lambda node: float(_number_text(node)), "Double"),
    "BigInteger": (_whole, "BigInteger"),
    "BigDecimal": (_decimal, "BigDecimal"),
    "Date": (_from_text(date_of), "Date (yyyy-mm-dd)"),
    "LocalDate": (_from_text(date_of), "LocalDate (yyyy-mm-dd)"),
    "Time": (_from_text(time_of), "Time (hh:mm:ssZ)"),
    "LocalTime": (_from_text(time_of), "LocalTime (hh:mm:ssZ)"),
    "Timestamp": (_from_text(timestamp_of), "Timestamp (yyyy-mm-ddThh:mm:ssZ)"),
    "LocalDateTime": (_from_text(timestamp_of), "LocalDateTime (yyyy-mm-ddThh:mm:ssZ)"),
    "Instant": (_from_text(instant_of_text), "Instant (yyyy-mm-ddThh:mm:ssZ)"),
    "Bytes": (_from_text(lambda text: base64.b64decode(text, validate=True)), "bytes (base64)"),
}
