"""Rows of a program: their columns, inferred where no types are given."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from rekindle.common.data_types import DataType, DataTypes, RowField, RowType
from rekindle.common.types import Row
from rekindle.errors import GraphError


def rows_and_type(elements: Iterable[Any], schema: Any) -> tuple[list[tuple[Any, ...]], RowType]:
    """Return rows as tuples, and their type.

    >>> rows_and_type([("to", 1)], ["word", "count"])[1].sql()
    'ROW<`word` STRING, `count` BIGINT>'
    """
    given = list(elements)
    if isinstance(schema, RowType):
        return [_values(each, schema.field_names()) for each in given], schema
    if isinstance(schema, DataType):
        return [(each,) for each in given], RowType([RowField("f0", schema)])
    if not given:
        raise GraphError("from_elements() of no elements needs their type: DataTypes.ROW([...]).")
    names = list(schema) if schema is not None else _names(given[0])
    rows = [_values(each, names) for each in given]
    wrong = next((row for row in rows if len(row) != len(names)), None)
    if wrong is not None:
        raise GraphError(f"from_elements(): {wrong!r} has {len(wrong)} values for {len(names)} columns.")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return rows, RowType([RowField(name, _inferred(name, values)) for name, values in columns])


def _names(first: Any) -> list[str]:
    if isinstance(first, dict):
        return list(first)
    if isinstance(first, Row) and first._names is not None:
        return list(first._names)
    if isinstance(first, Row | tuple | list):
        return [f"_{index + 1}" for index in range(len(first))]
    raise GraphError(f"from_elements() takes rows, tuples, lists or dicts, not {first!r}.")


def _values(element: Any, names: Sequence[str]) -> tuple[Any, ...]:
    if isinstance(element, dict):
        return tuple(element.get(name) for name in names)
    if isinstance(element, Row | tuple | list):
        return tuple(element)
    return (element,)


def _inferred(name: str, values: Sequence[Any]) -> DataType:
    known = next((value for value in values if value is not None), None)
    if known is None:
        raise GraphError(f"from_elements(): the column '{name}' has no value: give its type in DataTypes.ROW([...]).")
    return _type_of(name, known)


def _type_of(name: str, value: Any) -> DataType:
    match value:
        case bool():
            return DataTypes.BOOLEAN()
        case int():
            return DataTypes.BIGINT()
        case float():
            return DataTypes.DOUBLE()
        case str():
            return DataTypes.STRING()
        case bytes() | bytearray():
            return DataTypes.BYTES()
        case Decimal():
            return DataTypes.DECIMAL(38, 18)
        case dt.datetime():
            return DataTypes.TIMESTAMP(6)
        case dt.date():
            return DataTypes.DATE()
        case list() if value:
            return DataTypes.ARRAY(_type_of(name, value[0]))
        case dict() if value:
            key, each = next(iter(value.items()))
            return DataTypes.MAP(_type_of(name, key), _type_of(name, each))
    raise GraphError(f"from_elements(): no type can be inferred of {value!r} in the column '{name}': give it.")
