"""Convert values of columns to values to store: the inverse of `column_values`. Unreadable values are refused."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from rekindle.common.type_system.fields import instant_of
from rekindle.common.types import make_row
from rekindle.errors import TypeMismatchError
from rekindle.serde.class_free_decoding import ClassFields, EnumMember, PickledValue, frozen
from rekindle.snapshots.column_values import Convert, conversion, nullable, same
from rekindle.snapshots.shapes import (
    ElementsShape,
    EntriesShape,
    FieldsShape,
    Form,
    PickledShape,
    Plain,
    PlainShape,
    Shape,
    described,
)

_INT64: Final = 1 << 63


def from_column(shape: Shape, tagged: bool = False) -> Convert:
    """The conversion of a column's value to the value to store: the inverse of `to_column`.

    `tagged`: whether it is stored in the tagged encoding, as values of undeclared types are. TypeMismatchError: the
    column has another type, so that what would be stored could not be read.

    >>> from rekindle.common import Types
    >>> from rekindle.snapshots.stored_types import stored_type
    >>> tagged = stored_type(Types.ROW_NAMED(["id", "tags"], [Types.LONG(), Types.LIST(Types.STRING())]).schema())
    >>> from_column(tagged.shape)({"id": 7, "tags": ["new"]})
    [0, 7, ['new']]
    """
    convert, check = nullable(_from_column(shape, tagged)), nullable(conversion(shape))

    def checked(value: Any) -> Any:
        try:
            stored = convert(value)
            check(stored)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise TypeMismatchError(
                f"{value!r:.200} does not fit the state's type {described(shape)} ({error}): cast the column."
            ) from None
        return stored

    return checked


def _from_column(shape: Shape, tagged: bool) -> Convert:
    match shape:
        case PlainShape():
            if shape.kind is Plain.MEMBER:
                return lambda name: EnumMember(shape.class_name, name, None)
            if shape.symbols:
                return lambda value: _symbol(value, shape.symbols)
            return (_FROM_PLAIN_TAGGED if tagged else _FROM_PLAIN).get(shape.kind, same)
        case FieldsShape():
            return _fields_from_column(shape, tagged)
        case ElementsShape():
            part, build = nullable(_from_column(shape.part, tagged)), _ELEMENTS.get(shape.form, list)
            return lambda values: build([part(value) for value in values])
        case EntriesShape():
            key, item = (nullable(_from_column(part, tagged)) for part in (shape.key, shape.value))
            return lambda entries: {frozen(key(each)): item(value) for each, value in entries}
        case PickledShape():
            return lambda data: PickledValue(bytes(data))
    return _from_json


def _fields_from_column(shape: FieldsShape, tagged: bool) -> Convert:
    parts = [(name, nullable(_from_column(part, tagged))) for name, part in shape.fields()]

    def values(column: Mapping[str, Any]) -> list[Any]:
        for name in shape.required:
            if column[name] is None:
                raise ValueError(f"its field {name!r} is null, but its type is not optional")
        return [convert(column[name]) for name, convert in parts]

    def by_name(column: Mapping[str, Any]) -> dict[str, Any]:
        named = zip(names, values(column), strict=True)
        # A field that has a default and cannot be None is left out: the program fills it in.
        return {name: value for name, value in named if value is not None or name not in shape.optional}

    names = list(shape.names)
    match shape.form:
        case Form.MAP:
            tag = {} if shape.tag is None else dict([shape.tag])
            return lambda column: tag | by_name(column)
        case Form.INSTANCE:
            return lambda column: ClassFields(shape.class_name, tuple(zip(names, values(column), strict=True)))
        case Form.TAGGED_ROW:
            return lambda column: make_row(names, values(column))
        case Form.ROW:
            return lambda column: [0, *values(column)]
        case Form.TUPLE:
            return lambda column: tuple(values(column))
    before = [] if shape.tag is None else [shape.tag[1]]
    return lambda column: before + values(column)


def _symbol(value: Any, symbols: tuple[str | int, ...]) -> Any:
    if value not in symbols:
        raise ValueError(f"it is none of {', '.join(map(repr, symbols))}")
    return value


def _in_utc(moment: dt.datetime) -> dt.datetime:
    return moment.astimezone(dt.UTC)


def _big(value: Any) -> int | str:
    number = int(value)
    return number if -_INT64 <= number < 2 * _INT64 else format(number, "x")


def _seconds_and_nanos(moment: dt.datetime) -> list[int]:
    instant = instant_of(moment)
    return [instant.seconds, instant.nanos]


def _from_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise TypeMismatchError(f"{text!r:.200} is no JSON ({error}).") from None


_ELEMENTS: Final[dict[Form, Callable[[list[Any]], Any]]] = {
    Form.TUPLE: tuple,
    Form.SET: set,
    Form.FROZENSET: frozenset,
}
_FROM_PLAIN: Final[dict[Plain, Convert]] = {
    Plain.BYTES: bytes,
    Plain.BIG_INT: _big,
    Plain.TIME: dt.time.fromisoformat,
    Plain.TIMESTAMP: _in_utc,
    Plain.INSTANT: _seconds_and_nanos,
    Plain.UUID: uuid.UUID,
}
_FROM_PLAIN_TAGGED: Final = _FROM_PLAIN | {Plain.BIG_INT: int, Plain.INSTANT: instant_of}
