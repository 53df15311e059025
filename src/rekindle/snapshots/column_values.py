"""Convert stored values to values of columns; `stored_values` does the inverse.

Values of columns are those that Arrow takes: a dict per struct, (key, value) pairs per map.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from rekindle.common.time import Instant
from rekindle.common.types import Row, make_row
from rekindle.errors import TypeMismatchError
from rekindle.serde.class_free_decoding import ClassFields, EnumMember, FrozenMap, PickledValue
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
    fields_before,
)

Convert = Callable[[Any], Any]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


# -- to columns --------------------------------------------------------------------------------------------------------


def to_column(shape: Shape) -> Convert:
    """The conversion of a stored value to the column's value; TypeMismatchError if it has another type.

    >>> from rekindle.common import Types
    >>> from rekindle.snapshots.stored_types import stored_type
    >>> day = stored_type(Types.ROW_NAMED(["id", "day"], [Types.LONG(), Types.SQL_DATE()]).schema())
    >>> to_column(day.shape)([0, 7, "2024-05-01"])
    {'id': 7, 'day': datetime.date(2024, 5, 1)}
    """
    convert = conversion(shape)

    def checked(value: Any) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise TypeMismatchError(
                f"The stored value {value!r:.200} does not fit the column's type {described(shape)} ({error}): "
                "read it as JSON, with untyped='json', or with json=True if its type is declared."
            ) from None

    return lambda value: None if value is None else checked(value)


def conversion(shape: Shape) -> Convert:
    """The conversion of a stored value that is not None, without the message of `to_column`."""
    match shape:
        case PlainShape():
            return _TO_PLAIN.get(shape.kind, same)
        case FieldsShape():
            return _fields_conversion(shape)
        case ElementsShape():
            part = nullable(conversion(shape.part))
            return lambda values: [part(value) for value in values]
        case EntriesShape():
            key, item = nullable(conversion(shape.key)), nullable(conversion(shape.value))
            return lambda entries: [(key(each), item(value)) for each, value in dict(entries).items()]
        case PickledShape():
            return _pickled_bytes
    return _json


def _fields_conversion(shape: FieldsShape) -> Convert:
    parts = [(name, nullable(conversion(part))) for name, part in shape.fields()]
    if shape.form in (Form.MAP, Form.INSTANCE, Form.TAGGED_ROW):
        omitted = {name: msgspec.msgpack.decode(default) for name, default in shape.defaults}

        def by_name(value: Any) -> dict[str, Any]:
            held = _named(value, shape.names)
            return {name: convert(held.get(name, omitted.get(name))) for name, convert in parts}

        return by_name
    first = fields_before(shape, shape.form)
    # A Struct that older code wrote may be shorter: its last fields had no values yet.
    least = first if shape.class_name else first + len(parts)

    def by_position(value: Any) -> dict[str, Any]:
        if not isinstance(value, list | tuple) or not least <= len(value) <= first + len(parts):
            raise TypeError(f"it does not have {len(parts)} fields")
        held = dict(zip(shape.names, value[first:], strict=False))
        return {name: convert(held.get(name)) for name, convert in parts}

    return by_position


def _named(value: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
    if isinstance(value, ClassFields):
        return value.values()
    if isinstance(value, Row):
        return value.as_dict() if hasattr(value, "_fields") else dict(zip(names, value, strict=True))
    if isinstance(value, Mapping | FrozenMap):
        return dict(value)
    raise TypeError("it has no named fields")


def _of(kind: Any) -> Convert:
    return lambda value: value if isinstance(value, kind) else msgspec.convert(value, kind)


def _strictly(*kinds: type) -> Convert:
    def check(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"it is a {type(value).__name__}")
        return value

    return check


def _whole(value: Any) -> Decimal:
    return Decimal(int(value, 16) if isinstance(value, str) else value)


def _moment(value: Any) -> dt.datetime:
    moment: dt.datetime = _of(dt.datetime)(value)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


def _local(value: Any) -> dt.datetime:
    moment: dt.datetime = _of(dt.datetime)(value)
    if moment.tzinfo is not None:
        raise ValueError("it has a time zone")
    return moment


def _instant(value: Any) -> dt.datetime:
    seconds, nanos = (value.seconds, value.nanos) if isinstance(value, Instant) else value
    return _EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1000)


def _decimal(value: Any) -> Decimal:
    number: Decimal = _of(Decimal)(value)
    if not number.is_finite() or -int(number.normalize().as_tuple().exponent) > 18 or number.adjusted() > 19:
        raise ValueError("it has more digits than the column's decimal(38, 18)")
    return number


def _pickled_bytes(value: Any) -> bytes:
    if not isinstance(value, PickledValue):
        raise TypeError("it is not pickled")
    return value.data


def _member(value: Any) -> str:
    return str(value.member)


def _json(value: Any) -> str:
    return msgspec.json.encode(_for_json(value), enc_hook=str).decode()


def _for_json(value: Any) -> Any:
    match value:
        case ClassFields():
            return {name: _for_json(each) for name, each in value.items}
        case FrozenMap():
            return {name: _for_json(each) for name, each in value}
        case EnumMember():
            return value.member if value.member is not None else _for_json(value.value)
        case PickledValue():
            return value.data
        case Row():
            return _for_json(value.as_dict() if hasattr(value, "_fields") else list(value))
        case list() | tuple() | set() | frozenset():
            return [_for_json(each) for each in value]
        case dict():
            return {key if isinstance(key, str) else _json(key): _for_json(each) for key, each in value.items()}
    if hasattr(value, "__dict__") and not isinstance(value, type):  # an instance that the user let us unpickle
        return {name: _for_json(each) for name, each in vars(value).items()}
    return value


_TO_PLAIN: Final[dict[Plain, Convert]] = {
    Plain.BOOLEAN: _strictly(bool),
    Plain.BYTE: _strictly(int),
    Plain.SHORT: _strictly(int),
    Plain.INT: _strictly(int),
    Plain.LONG: _strictly(int),
    Plain.FLOAT: lambda value: float(_strictly(int, float)(value)),
    Plain.DOUBLE: lambda value: float(_strictly(int, float)(value)),
    Plain.STRING: _strictly(str),
    Plain.BYTES: bytes,
    Plain.BIG_INT: _whole,
    Plain.DECIMAL: _decimal,
    Plain.DATE: _of(dt.date),
    Plain.TIME: lambda value: _of(dt.time)(value).isoformat(),
    Plain.TIMESTAMP: _moment,
    Plain.LOCAL_TIMESTAMP: _local,
    Plain.INSTANT: _instant,
    Plain.DURATION: _of(dt.timedelta),
    Plain.UUID: lambda value: str(_of(uuid.UUID)(value)),
    Plain.MEMBER: _member,
}


# -- keys --------------------------------------------------------------------------------------------------------------


def python_key(shape: Shape, key: Any) -> Any:
    """A stored key as the program sees it, whose hash is known; where only its class could tell, the key as it is.

    >>> from rekindle.common import Types
    >>> from rekindle.snapshots.stored_types import stored_type
    >>> python_key(stored_type(Types.TUPLE([Types.STRING(), Types.SQL_DATE()]).schema()).shape, ["a", "2024-05-01"])
    ('a', datetime.date(2024, 5, 1))
    """
    if key is None:
        return None
    match shape:
        case PlainShape():
            return _PYTHON.get(shape.kind, same)(key)
        case FieldsShape(form=Form.ARRAY):
            return tuple(python_key(part, each) for part, each in zip(shape.parts, key, strict=True))
        case FieldsShape(form=Form.ROW):
            values = key[fields_before(shape, shape.form) :]
            return make_row(list(shape.names), [python_key(*each) for each in zip(shape.parts, values, strict=True)])
    return key


_PYTHON: Final[dict[Plain, Convert]] = {
    Plain.BIG_INT: lambda value: int(value, 16) if isinstance(value, str) else value,
    Plain.DECIMAL: _of(Decimal),
    Plain.DATE: _of(dt.date),
    Plain.TIME: _of(dt.time),
    Plain.TIMESTAMP: _of(dt.datetime),
    Plain.LOCAL_TIMESTAMP: _of(dt.datetime),
    Plain.DURATION: _of(dt.timedelta),
    Plain.UUID: _of(uuid.UUID),
}


def nullable(convert: Convert) -> Convert:
    """The conversion that leaves None as it is."""
    return lambda value: None if value is None else convert(value)


def same(value: Any) -> Any:
    """No conversion."""
    return value
