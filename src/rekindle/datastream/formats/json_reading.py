"""The fast way of JSON into records: msgspec reads messages that fit their type exactly.

A message that does not fit is read again by `json_nodes`, which is as lenient as Flink and knows what to say.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import msgspec

from rekindle.common.type_system.fields import fields_of, record_maker
from rekindle.common.typeinfo import (
    DataclassTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    NamedTupleTypeInfo,
    RowTypeInfo,
    StructTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from rekindle.common.types import make_row
from rekindle.datastream.formats.checked_values import INTEGER_RANGES, kind_of
from rekindle.datastream.formats.fieldwise import Convert
from rekindle.datastream.formats.json_nodes import node_reader
from rekindle.datastream.formats.mismatch import Mismatch
from rekindle.datastream.formats.time_texts import date_of, instant_of_text, time_of, timestamp_of

#: The errors that `read` of a `JsonForm` raises for a message that does not fit.
UNFIT = (msgspec.DecodeError, ValueError, TypeError, ArithmeticError, Mismatch)
_astuple = msgspec.structs.astuple


class JsonForm(NamedTuple):
    """The type that msgspec reads, and the function from what it has read to the value, or None."""

    hint: Any
    convert: Convert | None


def json_form(type_info: TypeInformation, require_all: bool) -> JsonForm:
    """Return how values of a type are read. With `require_all`, every field of a row must be there.

    >>> from rekindle.common.typeinfo import Types
    >>> form = json_form(Types.ROW_NAMED(["word"], [Types.STRING()]), require_all=False)
    >>> form.convert(msgspec.json.decode(b'{"word": "to"}', type=form.hint))
    Row(word='to')
    """
    if (kind := kind_of(type_info)) is not None:
        return _LEAVES[kind]
    match type_info:
        case ExternalTypeInfo():
            return json_form(type_info._type_info, require_all)
        case ListTypeInfo():
            return _list_form(json_form(type_info.elem_type, require_all))
        case MapTypeInfo():
            key, value = type_info._parts
            return _map_form(_key_form(key), json_form(value, require_all))
        case TupleTypeInfo():
            return _tuple_form([json_form(part, require_all) for part in type_info.get_field_types()])
        case RowTypeInfo() | NamedTupleTypeInfo():
            return _object_form(type_info, require_all)
        case DataclassTypeInfo() | StructTypeInfo():
            return JsonForm(type_info.get_class(), None)
    return JsonForm(type_info.python_type() or Any, None)


def _integer(kind: str) -> JsonForm:
    low, high = INTEGER_RANGES[kind]
    return JsonForm(Annotated[int, msgspec.Meta(ge=low, le=high)], None)


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError(value)
    return value


_LEAVES: dict[str, JsonForm] = {
    **{kind: _integer(kind) for kind in INTEGER_RANGES},
    "String": JsonForm(str, None),
    "Char": JsonForm(Annotated[str, msgspec.Meta(min_length=1, max_length=1)], None),
    "Boolean": JsonForm(bool, None),
    "Float": JsonForm(float, None),
    "Double": JsonForm(float, None),
    "BigInteger": JsonForm(int, None),
    "BigDecimal": JsonForm(Decimal, _finite),
    # As text: msgspec's own dates and times are read from other forms, too.
    "Date": JsonForm(str, date_of),
    "LocalDate": JsonForm(str, date_of),
    "Time": JsonForm(str, time_of),
    "LocalTime": JsonForm(str, time_of),
    "Timestamp": JsonForm(str, timestamp_of),
    "LocalDateTime": JsonForm(str, timestamp_of),
    "Instant": JsonForm(str, instant_of_text),
    "Bytes": JsonForm(bytes, None),
}


def _list_form(element: JsonForm) -> JsonForm:
    convert = element.convert
    hint = list[element.hint | None]  # type: ignore[name-defined]
    if convert is None:
        return JsonForm(hint, None)
    return JsonForm(hint, lambda values: [None if value is None else convert(value) for value in values])


def _key_form(type_info: TypeInformation) -> JsonForm:
    """Return how keys are read, which are always text: msgspec knows numbers as text, the lenient way the rest."""
    form = json_form(type_info, False)
    if form.hint is str or kind_of(type_info) in (*INTEGER_RANGES, "Char"):
        return form
    return JsonForm(str, node_reader(type_info))


def _map_form(key: JsonForm, value: JsonForm) -> JsonForm:
    hint = dict[key.hint, value.hint | None]  # type: ignore[name-defined]
    of_key, of_value = key.convert or _same, value.convert or _same
    if of_key is of_value is _same:
        return JsonForm(hint, None)
    return JsonForm(
        hint, lambda items: {of_key(k): None if item is None else of_value(item) for k, item in items.items()}
    )


def _tuple_form(forms: list[JsonForm]) -> JsonForm:
    hint = tuple[tuple(form.hint | None for form in forms)]  # type: ignore[misc,valid-type]
    convert = _converted([form.convert for form in forms])
    return JsonForm(hint, None if convert is None else lambda values: tuple(convert(list(values))))


def _object_form(type_info: TypeInformation, require_all: bool) -> JsonForm:
    fields = fields_of(type_info) or []
    forms = [json_form(part, require_all) for _, part in fields]
    slots = [f"f{index}" for index in range(len(fields))]  # a field may have a name that is no Python identifier
    hint = msgspec.defstruct(
        "Record",
        [(slot, form.hint | None, *(() if require_all else (None,))) for slot, form in zip(slots, forms, strict=True)],
        rename=dict(zip(slots, (name for name, _ in fields), strict=True)),
        gc=False,
    )
    return JsonForm(hint, _record_maker(type_info, _converted([form.convert for form in forms])))


def _record_maker(type_info: TypeInformation, convert: Callable[[list[Any]], list[Any]] | None) -> Convert:
    if not isinstance(type_info, RowTypeInfo):
        make = record_maker(type_info)
        return lambda read: make([_astuple(read) if convert is None else convert(list(_astuple(read)))])[0]
    names = type_info.get_field_names()
    if convert is None:
        return lambda read: make_row(names, list(_astuple(read)))
    return lambda read: make_row(names, convert(list(_astuple(read))))


def _converted(converts: list[Convert | None]) -> Callable[[list[Any]], list[Any]] | None:
    """Return a function that converts the values that need it in place; None when none does."""
    needed = [(index, convert) for index, convert in enumerate(converts) if convert is not None]
    if not needed:
        return None

    def convert_all(values: list[Any]) -> list[Any]:
        for index, convert in needed:
            if values[index] is not None:
                values[index] = convert(values[index])
        return values

    return convert_all


def _same(value: Any) -> Any:
    return value
