"""Which field of a record `sum`, `min` and the like may use, as far as the declared type says."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from rekindle.common.typeinfo import BasicTypeInfo, ListTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from rekindle.errors import GraphError, TypeMismatchError

_NOT_NUMERIC = (Types.STRING(), Types.BOOLEAN(), Types.CHAR(), Types.INSTANT())


def check_field(where: str, type_info: TypeInformation | None, field: int | str, numeric: bool) -> None:
    """Refuse a field that the declared type does not have, and one that cannot be summed where that is asked for."""
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
    names = _field_names(cls)
    known = field in names if isinstance(field, str) else field < len(names)
    if names and not known:
        raise TypeMismatchError(f"{where}: {type_info} has no field {field!r}; its fields are {', '.join(names)}.")


def _field_names(cls: Any) -> list[str]:
    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        return list(cls.__struct_fields__)
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    return list(getattr(cls, "_fields", ()))
