"""`sum`, `min`, `max`, `min_by`, `max_by`: reduce functions over one field of tuples, lists, rows, dicts, objects.

`check_field` checks the field against the declared type of a stream when the program is built.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec

from rekindle.common.typeinfo import BasicTypeInfo, ListTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from rekindle.common.types import Row
from rekindle.datastream.functions.simple import ReduceFunction
from rekindle.errors import GraphError, TypeMismatchError

Field = int | str
_NOT_NUMERIC = (Types.STRING(), Types.BOOLEAN(), Types.CHAR(), Types.INSTANT())


class CallableReduceFunction(ReduceFunction):
    """A plain callable of two values as a `ReduceFunction`."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Call the callable."""
        return self._function(value1, value2)


def read_field(record: Any, field: Field) -> Any:
    """Return a record's field by position or name. Field 0 of a plain value is the value itself.

    >>> read_field(("a", 3), 1), read_field({"n": 3}, "n"), read_field(5, 0)
    (3, 3, 5)
    """
    if isinstance(field, str):
        return record[field] if isinstance(record, dict | Row) else getattr(record, field)
    if isinstance(record, tuple | list | Row):
        return record[field]
    names = _field_names(record)
    if names:
        return getattr(record, names[field])
    if field == 0:
        return record
    raise IndexError(f"{record!r} has no field {field}")


def with_field(record: Any, field: Field, value: Any) -> Any:
    """Return a copy of the record with another value in one field.

    >>> with_field(("a", 3), 1, 4), with_field([1, 2], 0, 9), with_field(5, 0, 6)
    (('a', 4), [9, 2], 6)
    """
    if isinstance(record, Row):
        changed = copy.copy(record)
        changed[field] = value
        return changed
    if isinstance(record, tuple):
        if isinstance(field, str):
            return record._replace(**{field: value})  # type: ignore[attr-defined]
        values = [*record[:field], value, *record[field + 1 :]]
        return record._make(values) if hasattr(record, "_make") else tuple(values)
    if isinstance(record, list | dict):
        copied: Any = record.copy()
        copied[field] = value
        return copied
    names = _field_names(record)
    if not names and field == 0:
        return value
    name = names[field] if isinstance(field, int) else field
    if isinstance(record, msgspec.Struct):
        return msgspec.structs.replace(record, **{name: value})
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return dataclasses.replace(record, **{name: value})
    changed_object = copy.copy(record)
    setattr(changed_object, name, value)
    return changed_object


def _field_names(record: Any) -> tuple[str, ...]:
    if isinstance(record, msgspec.Struct):
        return record.__struct_fields__
    if dataclasses.is_dataclass(record):
        return tuple(field.name for field in dataclasses.fields(record))
    return ()


class FieldSum(ReduceFunction):
    """Returns the first record, with the sum of the field.

    >>> FieldSum(1).reduce(("a", 1), ("a", 2))
    ('a', 3)
    """

    def __init__(self, field: Field) -> None:
        self._field = field

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Add the second record's field to the first one's."""
        return with_field(value1, self._field, read_field(value1, self._field) + read_field(value2, self._field))


class FieldExtreme(ReduceFunction):
    """Returns the first record, with the smallest (or largest) value of the field. Its other fields are unchanged.

    >>> FieldExtreme(1, largest=True).reduce(("a", 1), ("b", 2))
    ('a', 2)
    """

    def __init__(self, field: Field, largest: bool) -> None:
        self._field = field
        self._choose: Callable[[Any, Any], Any] = max if largest else min

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Return the first record with the smaller (or larger) field of the two."""
        held = read_field(value1, self._field)
        chosen = self._choose(held, read_field(value2, self._field))
        return value1 if chosen is held else with_field(value1, self._field, chosen)


class ExtremeBy(ReduceFunction):
    """Returns the record with the smallest (or largest) value of the field. Of equal ones, the first.

    >>> ExtremeBy(1, largest=False).reduce(("a", 2), ("b", 1))
    ('b', 1)
    """

    def __init__(self, field: Field, largest: bool) -> None:
        self._field = field
        self._largest = largest

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Return the record with the smaller (or larger) field."""
        first, second = read_field(value1, self._field), read_field(value2, self._field)
        replaced = second > first if self._largest else second < first
        return value2 if replaced else value1


# -- checking a field against the declared type ----------------------------------------------------------------------


def check_field(where: str, type_info: TypeInformation | None, field: int | str, numeric: bool) -> None:
    """Refuse a field that the declared type does not have and, if `numeric`, a field that cannot be summed."""
    if isinstance(field, bool) or not isinstance(field, int | str):
        raise GraphError(f"{where} takes a field's position or name, not {field!r}.")
    if isinstance(field, int) and field < 0:
        raise GraphError(f"{where}: positions of fields are counted from 0, not {field}.")
    if type_info is None:
        return
    if isinstance(type_info, TupleTypeInfo | RowTypeInfo):
        _check_part(where, type_info, field, numeric)
    elif isinstance(type_info, BasicTypeInfo):
        if field != 0:
            raise TypeMismatchError(f"{where}: {type_info} has no fields; its value is field 0, not {field!r}.")
        _check_numeric(where, type_info, numeric)
    elif isinstance(type_info, ListTypeInfo):
        if isinstance(field, str):
            raise TypeMismatchError(f"{where}: {type_info} has no field '{field}'; its elements have positions only.")
    else:
        _check_object(where, type_info, field)


def _check_part(where: str, type_info: TupleTypeInfo | RowTypeInfo, field: int | str, numeric: bool) -> None:
    types = type_info.get_field_types()
    names = type_info.get_field_names() if isinstance(type_info, RowTypeInfo) else []
    if isinstance(field, str):
        if field not in names:
            raise TypeMismatchError(f"{where}: {type_info} has no field '{field}'.")
        field = names.index(field)
    elif field >= len(types):
        raise TypeMismatchError(f"{where}: {type_info} has no field {field}, only 0 to {len(types) - 1}.")
    _check_numeric(where, types[field], numeric)


def _check_numeric(where: str, type_info: TypeInformation, numeric: bool) -> None:
    if numeric and type_info in _NOT_NUMERIC:
        raise TypeMismatchError(f"{where}: a {type_info} cannot be summed.")


def _check_object(where: str, type_info: TypeInformation, field: int | str) -> None:
    cls = type_info.exact_class()
    if cls is None:
        return
    names = _field_names_of_class(cls)
    known = field in names if isinstance(field, str) else field < len(names)
    if names and not known:
        raise TypeMismatchError(f"{where}: {type_info} has no field {field!r}; its fields are {', '.join(names)}.")


def _field_names_of_class(cls: Any) -> list[str]:
    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        return list(cls.__struct_fields__)
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    return list(getattr(cls, "_fields", ()))
