"""Records of streams as rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rekindle.common.type_system.fields import fields_of
from rekindle.common.type_system.inference import infer_type_info
from rekindle.common.typeinfo import RowTypeInfo, TupleTypeInfo
from rekindle.common.types import Row, make_row
from rekindle.table.row_text import row_text


def to_row(type_info: Any, names: Sequence[str]) -> Callable[[Any], Row]:
    """Return a function from a record of a type to a row with these names.

    >>> to_row(infer_type_info(int), ["n"])(7)
    Row(n=7)
    """
    declared = infer_type_info(type_info)
    fields = fields_of(declared)
    own, wanted = [name for name, _ in fields or ()], list(names)
    if fields is None:
        return lambda record: make_row(wanted, [record])
    if isinstance(declared, RowTypeInfo):
        return lambda row: make_row(wanted, list(row.get_fields_by_names(own) if row._names is not None else row))
    if isinstance(declared, TupleTypeInfo):
        return lambda record: make_row(wanted, list(record))
    return lambda record: make_row(wanted, [getattr(record, name) for name in own])


def to_text(row: Row) -> str:
    """Return the text of a row as the print connector writes it.

    >>> to_text(make_row(["n"], [7]))
    '+I[7]'
    """
    return row_text(list(row))
