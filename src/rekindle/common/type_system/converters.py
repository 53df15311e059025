"""Converters between values and the forms that msgspec writes and reads: built once per type, run once per record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rekindle.common.type_system.type_information import Converter
from rekindle.common.types import ROW_KINDS, Row, make_row
from rekindle.errors import TypeMismatchError

ValuesConverter = Callable[[Sequence[Any]], Sequence[Any]]


def values_converter(converters: list[Converter | None]) -> ValuesConverter | None:
    """A converter of a sequence, each value with its own converter; None when no value needs one."""
    if not any(converters):
        return None

    def convert(values: Sequence[Any]) -> list[Any]:
        return [
            value if converter is None else converter(value)
            for converter, value in zip(converters, values, strict=True)
        ]

    return convert


def tuple_converter(converters: list[Converter | None]) -> Converter | None:
    """A converter of the fields of a tuple; None when no field needs one."""
    convert = values_converter(converters)
    if convert is None:
        return None
    return lambda value: None if value is None else tuple(convert(value))


def list_converter(convert: Converter | None) -> Converter | None:
    """A converter of the elements of a list; None when they need none."""
    if convert is None:
        return None
    return lambda value: None if value is None else list(map(convert, value))


def map_converter(key: Converter | None, item: Converter | None) -> Converter | None:
    """A converter of the keys and values of a dict; None when neither needs one."""
    if key is None and item is None:
        return None
    of_key, of_item = key or _same, item or _same
    return lambda value: None if value is None else {of_key(k): of_item(v) for k, v in value.items()}


def _same(value: Any) -> Any:
    return value


def row_values(obj: Any, names: list[str]) -> tuple[int, Sequence[Any]]:
    """Kind and values, in the order of `names`, of a Row or of a dict, tuple, list or object in its place."""
    if isinstance(obj, Row):
        try:
            # _value_: an Enum's `value` is a property in Python, and this runs once per record.
            return obj._row_kind._value_, obj.get_fields_by_names(names)
        except ValueError as error:
            raise TypeMismatchError(str(error).rstrip(".")) from None
    if isinstance(obj, dict):
        return 0, [obj.get(name) for name in names]
    if isinstance(obj, list | tuple):
        return 0, obj
    if any(hasattr(obj, name) for name in names):
        return 0, [getattr(obj, name, None) for name in names]
    raise TypeMismatchError(
        "it is neither a Row nor a dict, tuple, list or object with such fields that could stand for one"
    )


def row_reader(names: list[str]) -> Callable[[Any], tuple[int, Sequence[Any]]]:
    """A reader like `row_values`, faster for rows, that also checks the number of values; not for None."""
    arity = len(names)

    def read(obj: Any) -> tuple[int, Sequence[Any]]:
        values: Sequence[Any]
        if type(obj) is Row and (obj._names is None or obj._names == names):
            kind, values = obj._row_kind._value_, obj._values
        else:
            kind, values = row_values(obj, names)
        if len(values) != arity:
            raise TypeMismatchError(f"it has {len(values)} fields where the type has {arity}")
        return kind, values

    return read


def row_shaper(names: list[str], convert: ValuesConverter | None) -> Converter:
    """A converter of a Row, dict, tuple or list to a new Row with these names."""
    read = row_reader(names)

    def shape(obj: Any) -> Row | None:
        if obj is None:
            return None
        kind, values = read(obj)
        return make_row(names, list(values if convert is None else convert(values)), ROW_KINDS[kind])

    return shape


def row_to_wire(names: list[str], convert: ValuesConverter | None) -> Converter:
    """A converter of a row to (kind, value, ...), in the order of `names`."""
    read = row_reader(names)

    def to_wire(obj: Any) -> tuple[Any, ...] | None:
        if obj is None:
            return None
        kind, values = read(obj)
        return (kind, *values) if convert is None else (kind, *convert(values))

    return to_wire


def row_from_wire(names: list[str], convert: ValuesConverter | None) -> Converter:
    """A converter of (kind, value, ...) to a row with these names."""

    def from_wire(wired: tuple[Any, ...] | None) -> Row | None:
        if wired is None:
            return None
        kind, *values = wired
        return make_row(names, values if convert is None else list(convert(values)), ROW_KINDS[kind])

    return from_wire
