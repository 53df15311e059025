"""Conversions of the parts of a value: each field of a record, each element of a list, each entry of a dict.

The loops are plain comprehensions, because they run for every record. Only after a `Mismatch` the same parts are
converted again, one by one, to find the place that the error message names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from rekindle.common.type_system.converters import row_reader
from rekindle.common.type_system.fields import fields_of
from rekindle.common.typeinfo import ClassTypeInfo, NamedTupleTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from rekindle.common.types import Row
from rekindle.datastream.formats.mismatch import Mismatch, must_be
from rekindle.errors import TypeMismatchError

Convert: TypeAlias = Callable[[Any], Any]


def each_field(names: Sequence[str | int], converts: Sequence[Convert]) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a conversion of the values of fields; None stays None.

    >>> each_field(["a", "b"], [int, str.upper])(["7", None])
    [7, None]
    """

    def convert_all(values: Sequence[Any]) -> list[Any]:
        try:
            return [None if value is None else convert(value) for convert, value in zip(converts, values, strict=True)]
        except Mismatch as mismatch:
            raise _located(zip(names, converts, values, strict=True), mismatch) from None

    return convert_all


def each_element(convert: Convert) -> Callable[[Iterable[Any]], list[Any]]:
    """Return a conversion of the elements of a list; None stays None.

    >>> each_element(int)(["7", None])
    [7, None]
    """

    def convert_all(values: Iterable[Any]) -> list[Any]:
        try:
            return [None if value is None else convert(value) for value in values]
        except Mismatch as mismatch:
            indexed = enumerate(values)
            raise _located(((index, convert, value) for index, value in indexed), mismatch) from None

    return convert_all


def each_entry(convert_key: Convert, convert: Convert) -> Callable[[dict[Any, Any]], dict[Any, Any]]:
    """Return a conversion of the keys and values of a dict; a value None stays None.

    >>> each_entry(str.upper, int)({"a": "7", "b": None})
    {'A': 7, 'B': None}
    """

    def convert_all(entries: dict[Any, Any]) -> dict[Any, Any]:
        try:
            return {convert_key(key): None if value is None else convert(value) for key, value in entries.items()}
        except Mismatch as mismatch:
            parts = [(f"[{key!r}]", *part) for key, value in entries.items() for part in _parts(key, value)]
            raise _located(parts, mismatch) from None

    def _parts(key: Any, value: Any) -> list[tuple[Convert, Any]]:
        return [(convert_key, key), (convert, value)]

    return convert_all


def _located(parts: Iterable[tuple[str | int, Convert, Any]], mismatch: Mismatch) -> Mismatch:
    for part, convert, value in parts:
        try:
            if value is not None:
                convert(value)
        except Mismatch as found:
            return found.inside(part)
    return mismatch


def values_reader(type_info: TypeInformation) -> tuple[list[str], list[TypeInformation], Convert]:
    """Return the names and types of a record's fields, and a function that lists their values.

    >>> names, types, read = values_reader(RowTypeInfo([str, int], ["word", "count"]))
    >>> read(Row(count=1, word="to")), read({"word": "be"})
    (['to', 1], ['be', None])
    """
    fields = fields_of(type_info)
    assert fields is not None, type_info
    names = [name for name, _ in fields]
    return names, [part for _, part in fields], _reader(type_info, names)


def _reader(type_info: TypeInformation, names: list[str]) -> Convert:
    if isinstance(type_info, RowTypeInfo):
        return _row_values(type_info, names)
    if isinstance(type_info, NamedTupleTypeInfo | TupleTypeInfo):
        return _tuple_values(type_info, len(names))
    assert isinstance(type_info, ClassTypeInfo), type_info
    return _attribute_values(type_info, names)


def _row_values(type_info: RowTypeInfo, names: list[str]) -> Convert:
    read = row_reader(names)

    def values_of(record: Any) -> Any:
        try:
            return read(record)[1]
        except TypeMismatchError as error:
            raise Mismatch(f"must be {type_info!r}, not {record!r:.100}: {error}") from None

    return values_of


def _tuple_values(type_info: TypeInformation, arity: int) -> Convert:
    def values_of(record: Any) -> Any:
        if not isinstance(record, tuple | list | Row) or len(record) != arity:
            raise must_be(repr(type_info), record)
        return record

    return values_of


def _attribute_values(type_info: ClassTypeInfo, names: list[str]) -> Convert:
    cls, getter = type_info.get_class(), attrgetter(*names)

    def values_of(record: Any) -> Any:
        if not isinstance(record, cls):
            raise must_be(repr(type_info), record)
        return getter(record) if len(names) > 1 else (getter(record),)

    return values_of
