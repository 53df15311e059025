"""Settle the shape of a column by the stored values, where the checkpoint does not name its type.

Values are as `serde.class_free_decoding` decodes them.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import msgspec

from rekindle.common.time import Instant
from rekindle.common.types import Row
from rekindle.serde.class_free_decoding import ClassFields, EnumMember, FrozenList, FrozenMap, PickledValue
from rekindle.snapshots.shapes import (
    ElementsShape,
    EntriesShape,
    FieldsShape,
    Form,
    JsonShape,
    PickledShape,
    Plain,
    PlainShape,
    Shape,
    UnknownShape,
    fields_before,
)

_INT64: Final = 1 << 63
_PLAIN: Final[dict[type, Plain]] = {
    bool: Plain.BOOLEAN,
    int: Plain.LONG,
    float: Plain.DOUBLE,
    str: Plain.STRING,
    bytes: Plain.BYTES,
    bytearray: Plain.BYTES,
    Decimal: Plain.DECIMAL,
    dt.date: Plain.DATE,
    dt.time: Plain.TIME,
    dt.timedelta: Plain.DURATION,
    uuid.UUID: Plain.UUID,
    Instant: Plain.INSTANT,
}


def settled(shape: Shape, values: Iterable[Any]) -> Shape:
    """The shape without unknown parts: these get the type of the values, or are shown as JSON.

    >>> from rekindle.snapshots.shapes import UNKNOWN, described
    >>> described(settled(UNKNOWN, [("a", 1), ("b", None)]))
    'fields<f0: string, f1: long>'
    >>> described(settled(UNKNOWN, [1, "a"]))
    'json'
    """
    present = [value for value in values if value is not None]
    match shape:
        case UnknownShape():
            return _inferred(present)
        case FieldsShape():
            return _settled_fields(shape, present)
        case ElementsShape():
            return ElementsShape(settled(shape.part, _flat(present)), shape.form)
        case EntriesShape():
            return _entries(present, shape.form, shape.key, shape.value)
        case PlainShape(Plain.TIMESTAMP):
            return _timestamp(present)
    return shape


def _timestamp(values: Sequence[Any]) -> Shape:
    moment = msgspec.convert(values[0], dt.datetime) if values else None
    return PlainShape(Plain.LOCAL_TIMESTAMP if moment is not None and moment.tzinfo is None else Plain.TIMESTAMP)


def _settled_fields(shape: FieldsShape, values: Sequence[Any]) -> Shape:
    skipped = fields_before(shape, shape.form)
    parts = []
    for index, (name, part) in enumerate(shape.fields()):
        if shape.form is Form.MAP:
            column = [_item(value, name) for value in values]
        else:
            column = [value[index + skipped] for value in values if len(value) > index + skipped]
        parts.append(settled(part, column))
    return replace(shape, parts=tuple(parts))


def _item(value: Any, name: str) -> Any:
    return (dict(value) if isinstance(value, FrozenMap) else value).get(name)


def _inferred(values: Sequence[Any]) -> Shape:
    kinds = set(map(type, values))
    if len(kinds) == 1:
        kind = kinds.pop()
        build = _BUILD.get(kind)
        if build is not None:
            return build(values)
        return _plain(kind, values)
    if kinds and kinds <= {int, float}:
        return PlainShape(Plain.DOUBLE)
    return JsonShape()


def _plain(kind: type, values: Sequence[Any]) -> Shape:
    if kind is int and not all(-_INT64 <= value < _INT64 for value in values):
        return PlainShape(Plain.BIG_INT)
    if kind is dt.datetime:
        return _timestamp(values)
    return PlainShape(_PLAIN[kind]) if kind in _PLAIN else JsonShape()


def _flat(values: Iterable[Any]) -> list[Any]:
    return [each for value in values for each in value]


def _list(values: Sequence[Any]) -> Shape:
    """An array of one type, else fields by position: a declared tuple is stored as an array, too."""
    part = _inferred([each for each in _flat(values) if each is not None])
    lengths = set(map(len, values))
    if isinstance(part, JsonShape) and len(lengths) == 1 and lengths != {0}:
        return _positional(values, Form.ARRAY)
    return ElementsShape(part, Form.ARRAY)


def _tuple(values: Sequence[Any]) -> Shape:
    if len(set(map(len, values))) == 1 and len(values[0]):
        return _positional(values, Form.TUPLE)
    return ElementsShape(settled(UnknownShape(), _flat(values)), Form.TUPLE)


def _positional(values: Sequence[Any], form: Form) -> Shape:
    columns = list(zip(*values, strict=True))
    names = tuple(f"f{index}" for index in range(len(columns)))
    return FieldsShape(names, tuple(settled(UnknownShape(), column) for column in columns), form)


def _set_of(form: Form) -> Callable[[Sequence[Any]], Shape]:
    return lambda values: ElementsShape(settled(UnknownShape(), _flat(values)), form)


def _dict(values: Sequence[Any]) -> Shape:
    """A map of one type, else fields by name where the keys are text."""
    entries = _entries(values, Form.DICT, UnknownShape(), UnknownShape())
    assert isinstance(entries, EntriesShape)
    if isinstance(entries.value, JsonShape) and entries.key == PlainShape(Plain.STRING):
        return _named([dict(value) for value in values], Form.MAP, "")
    return entries


def _entries(values: Sequence[Any], form: Form, key: Shape, value: Shape) -> Shape:
    dicts = [dict(each) for each in values]
    return EntriesShape(
        settled(key, [name for each in dicts for name in each]),
        settled(value, [item for each in dicts for item in each.values()]),
        form,
    )


def _named(values: Sequence[dict[str, Any]], form: Form, class_name: str) -> Shape:
    names = tuple(dict.fromkeys(name for value in values for name in value))
    parts = tuple(settled(UnknownShape(), [value.get(name) for value in values]) for name in names)
    return FieldsShape(names, parts, form, class_name) if names else JsonShape()


def _instance(values: Sequence[ClassFields]) -> Shape:
    classes = {value.class_name for value in values}
    return _named([value.values() for value in values], Form.INSTANCE, classes.pop()) if len(classes) == 1 else _JSON


def _member(values: Sequence[EnumMember]) -> Shape:
    classes = {value.class_name for value in values}
    named = all(value.member is not None for value in values)
    return PlainShape(Plain.MEMBER, classes.pop()) if len(classes) == 1 and named else _JSON


def _row(values: Sequence[Row]) -> Shape:
    if any(not hasattr(value, "_fields") for value in values):
        same = len(set(map(len, values))) == 1
        return _positional([tuple(value) for value in values], Form.TAGGED_ROW) if same else _JSON
    return _named([value.as_dict() for value in values], Form.TAGGED_ROW, "")


_JSON: Final = JsonShape()
_BUILD: Final[dict[type, Callable[[Sequence[Any]], Shape]]] = {
    list: _list,
    FrozenList: _list,
    tuple: _tuple,
    set: _set_of(Form.SET),
    frozenset: _set_of(Form.FROZENSET),
    dict: _dict,
    FrozenMap: _dict,
    ClassFields: _instance,
    EnumMember: _member,
    Row: _row,
    PickledValue: lambda values: PickledShape(),
}
