"""The canonical bytes of a key (I11): equal keys have equal bytes, different keys have different bytes.

Two accepted keys are equal in Python exactly if their bytes are equal. So the engine uses the Python key in its dicts
(`1 == 1.0 == True == Decimal(1)` share an entry), and the bytes for other processes, for sorting and on disk. Keys of
all other types are refused with their type's name. Each encoding is self-delimiting and, within a type, keeps order.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec

from rekindle.common.types import Row, make_row, names_by_position
from rekindle.errors import InvalidKeyError

Encoder = Callable[[Any], bytes]

# Tags below _ZERO are negative ints, tags above are positive ones: the distance is the length.
_NONE: Final = b"\x05"
_BIG_NEGATIVE: Final = b"\x16"
_ZERO: Final = 0x20
_BIG_POSITIVE: Final = b"\x29"
_FLOAT: Final = b"\x2b"
_DECIMAL: Final = b"\x2c"
_STR: Final = b"\x40"
_BYTES: Final = b"\x41"
_TUPLE: Final = b"\x50"
_NAIVE_DATETIME: Final = b"\x60"
_AWARE_DATETIME: Final = b"\x61"
_DATE: Final = b"\x62"
_NAIVE_TIME: Final = b"\x63"
_AWARE_TIME: Final = b"\x64"
_TIMEDELTA: Final = b"\x65"
_UUID: Final = b"\x70"
_ENUM: Final = b"\x71"
_DATACLASS: Final = b"\x72"
_STRUCT: Final = b"\x73"
_ROW: Final = b"\x74"
_NAMED_ROW: Final = b"\x75"
_END: Final = b"\x00"
#: Bytes that UTF-8 never has.
_IN_NO_TEXT: Final = tuple(bytes((byte,)) for byte in (0xC0, 0xC1, *range(0xF5, 0x100)))

_SMALL_INT_BYTES: Final = 8
_MAX_DECIMAL_DIGITS: Final = 4096
_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
_pack_double = struct.Struct(">d").pack


def canonical_bytes(key: Any) -> bytes:
    """Return the bytes of a key, the same in every process, backend and file.

    >>> canonical_bytes(1) == canonical_bytes(1.0) == canonical_bytes(True)
    True
    >>> canonical_bytes("a") < canonical_bytes("b")
    True
    """
    encode = _ENCODERS.get(type(key))
    if encode is None:
        encode = _ENCODERS[type(key)] = _encoder_for(key)
    return encode(key)


def canonical_all(keys: Sequence[Any], prefix: bytes = b"") -> list[bytes]:
    """The canonical bytes of many keys, behind a prefix; quicker than one by one if all are text.

    >>> canonical_all(["a", "b"]) == [canonical_bytes("a"), canonical_bytes("b")]
    True
    """
    if set(map(type, keys)) == {str}:
        with suppress(UnicodeEncodeError):  # lone surrogates
            texts, head = "\0".join(keys).encode(), prefix + _STR
            mark = next((byte for byte in _IN_NO_TEXT if byte not in head), None)
            if mark is not None and texts.count(_END) == len(keys) - 1:  # else there is a zero in a key
                return (head + texts.replace(_END, _END + mark + head) + _END).split(mark)
    return [prefix + canonical_bytes(key) for key in keys]


def owned_keys(keys: Sequence[Any]) -> Sequence[Any]:
    """The keys as the engine stores them."""
    return keys if _PLAIN.issuperset(map(type, keys)) else list(map(owned_key, keys))


def owned_key(key: Any) -> Any:
    """Return the key as the engine stores it: a copy of a key that user code could change (a `Row`), a Python value for
    a NumPy scalar, so that the stored form does not depend on which of two equal keys came first.
    """
    kind = type(key)
    if kind in _PLAIN:
        return key
    if kind is Row:
        return make_row(getattr(key, "_fields", None), list(map(owned_key, key)), key.get_row_kind())
    if _is_numpy_scalar(key):
        return key.item()
    if isinstance(key, tuple) and not _PLAIN.issuperset(map(type, key)):
        owned = map(owned_key, key)
        return tuple(owned) if kind is tuple else kind._make(owned) if hasattr(kind, "_make") else key
    if dataclasses.is_dataclass(kind) or isinstance(key, msgspec.Struct):
        return _with_owned_fields(key)
    return key


def _with_owned_fields(key: Any) -> Any:
    is_struct = isinstance(key, msgspec.Struct)
    names = key.__struct_fields__ if is_struct else [field.name for field in dataclasses.fields(key)]
    owned = {name: value for name in names if (value := owned_key(getattr(key, name))) is not getattr(key, name)}
    if not owned:
        return key
    changed = copy.copy(key)
    for name, value in owned.items():
        if is_struct:
            msgspec.structs.force_setattr(changed, name, value)
        else:
            object.__setattr__(changed, name, value)
    return changed


def _is_numpy_scalar(key: Any) -> bool:
    """Whether the key is a number, text or bytes of NumPy that equals its Python value and has the same hash."""
    dtype = getattr(key, "dtype", None) if type(key).__module__ == "numpy" else None
    return dtype is not None and dtype.kind in "biufSU" and type(key.item()) in _PLAIN


def _refuse(key: Any, why: str) -> InvalidKeyError:
    kind = type(key)
    shown = repr(key)
    if len(shown) > 200:
        shown = shown[:200] + "…"
    return InvalidKeyError(f"{shown} of type {kind.__module__}.{kind.__qualname__} cannot be a key: {why}")


# ---------------------------------------------------------------------------------------------------------- numbers


def _encode_none(_: None) -> bytes:
    return _NONE


def _encode_int(key: int) -> bytes:
    size = (key.bit_length() + 7) >> 3
    if key >= 0:
        payload = int.to_bytes(key, size, "big")
        if size <= _SMALL_INT_BYTES:
            return bytes((_ZERO + size,)) + payload
        return _BIG_POSITIVE + size.to_bytes(4, "big") + payload
    # The complement of the magnitude: a larger magnitude sorts before a smaller one.
    payload = ((1 << (8 * size)) - 1 + key).to_bytes(size, "big")
    if size <= _SMALL_INT_BYTES:
        return bytes((_ZERO - size,)) + payload
    return _BIG_NEGATIVE + (0xFFFFFFFF - size).to_bytes(4, "big") + payload


def _encode_float(key: float) -> bytes:
    if key.is_integer():
        return _encode_int(int(key))
    if key != key:
        raise _refuse(key, "NaN is not equal to itself; map it to None or filter it before key_by")
    bits = int.from_bytes(_pack_double(key), "big")
    ordered = bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 0x8000000000000000)
    return _FLOAT + ordered.to_bytes(8, "big")


def _encode_decimal(key: Decimal) -> bytes:
    if key.is_nan():
        raise _refuse(key, "NaN is not equal to itself; map it to None or filter it before key_by")
    if key.is_infinite():
        return _encode_float(float(key))
    sign, digits, exponent = key.as_tuple()
    assert isinstance(exponent, int)
    if abs(key.adjusted()) > _MAX_DECIMAL_DIGITS or len(digits) > _MAX_DECIMAL_DIGITS:
        raise _refuse(key, f"it has more than {_MAX_DECIMAL_DIGITS} digits")
    number = int("".join(map(str, digits)))
    while exponent < 0 and number % 10 == 0 and number:
        number //= 10
        exponent += 1
    if exponent >= 0 or not number:
        whole = number * 10 ** max(exponent, 0)
        return _encode_int(-whole if sign else whole)
    if (binary := float(key)) == key:
        return _encode_float(binary)
    return _DECIMAL + _encode_int(exponent) + _encode_int(-number if sign else number)


# ---------------------------------------------------------------------------------------------- text, bytes, tuples


def _delimited(payload: bytes) -> bytes:
    # A zero inside becomes 00 FF: no tag is FF, so 00 before anything else ends the payload.
    if _END in payload:
        payload = payload.replace(_END, b"\x00\xff")
    return payload + _END


def _encode_str(key: str) -> bytes:
    return _STR + _delimited(key.encode("utf-8", "surrogatepass"))


def _encode_bytes(key: bytes) -> bytes:
    return _BYTES + _delimited(key)


def _encode_tuple(key: tuple[Any, ...]) -> bytes:
    return _TUPLE + b"".join(map(canonical_bytes, key)) + _END


# ------------------------------------------------------------------------------------------------------------- time


def _encode_datetime(key: datetime) -> bytes:
    offset = key.utcoffset()
    since_epoch = key.replace(tzinfo=None) - _EPOCH
    if offset is None:
        return _NAIVE_DATETIME + _encode_int(since_epoch // _MICROSECOND)
    if key.replace(fold=1 - key.fold).utcoffset() != offset:
        raise _refuse(key, "this local time exists twice or not at all in its zone; use astimezone(timezone.utc)")
    return _AWARE_DATETIME + _encode_int((since_epoch - offset) // _MICROSECOND)


def _encode_date(key: date) -> bytes:
    return _DATE + _encode_int(key.toordinal())


def _encode_time(key: time) -> bytes:
    seconds = key.hour * 3600 + key.minute * 60 + key.second
    offset = key.utcoffset()
    if offset is None:
        return _NAIVE_TIME + _encode_int(seconds * 1_000_000 + key.microsecond)
    if offset.microseconds:
        raise _refuse(key, "its zone has an offset of a fraction of a second")
    seconds -= offset // timedelta(seconds=1)
    return _AWARE_TIME + _encode_int(seconds * 1_000_000 + key.microsecond)


def _encode_timedelta(key: timedelta) -> bytes:
    return _TIMEDELTA + _encode_int(key // _MICROSECOND)


# ---------------------------------------------------------------------------------------------------------- objects


def _encode_uuid(key: UUID) -> bytes:
    return _UUID + key.bytes


def _class_name(kind: type) -> bytes:
    return _delimited(f"{kind.__module__}:{kind.__qualname__}".encode())


def _encode_enum(key: enum.Enum) -> bytes:
    member = _encode_int(key.value) if isinstance(key, enum.Flag) else _encode_str(key.name)
    return _ENUM + _class_name(type(key)) + member


def _encode_row(key: Row) -> bytes:
    kind = _encode_int(key.get_row_kind().value)
    if not hasattr(key, "_fields"):
        return _ROW + kind + b"".join(map(canonical_bytes, key)) + _END
    named = key.as_dict()
    if len(named) != len(key):
        raise _refuse(key, "its field names do not match its values one to one")
    positions = names_by_position(len(key))
    if named.keys() == set(positions):  # such a row equals the row without names
        return _ROW + kind + b"".join([canonical_bytes(named[name]) for name in positions]) + _END
    # Named rows are equal whatever the order of their fields.
    fields = [_encode_str(name) + canonical_bytes(named[name]) for name in sorted(named)]
    return _NAMED_ROW + kind + b"".join(fields) + _END


def _fields_encoder(tag: bytes, kind: type, names: tuple[str, ...]) -> Encoder:
    prefix = tag + _class_name(kind)

    def encode(key: Any) -> bytes:
        return prefix + b"".join([canonical_bytes(getattr(key, name)) for name in names]) + _END

    return encode


def _dataclass_encoder(key: Any) -> Encoder:
    kind = type(key)
    params = kind.__dataclass_params__
    if not (params.frozen and params.eq):
        raise _refuse(key, "only a frozen dataclass with eq=True can be one: write @dataclass(frozen=True)")
    # Methods that @dataclass generates are compiled from a string; an __eq__ of the user has a file.
    if kind.__eq__.__code__.co_filename != "<string>" or kind.__hash__.__code__.co_filename != "<string>":
        raise _refuse(key, "its class defines its own __eq__ or __hash__; key by a tuple of the values it compares")
    return _fields_encoder(_DATACLASS, kind, tuple(f.name for f in dataclasses.fields(kind) if f.compare))


def _struct_encoder(key: msgspec.Struct) -> Encoder:
    kind = type(key)
    config = key.__struct_config__
    if not (config.frozen and config.eq):
        raise _refuse(key, "only a frozen Struct with eq=True can be one: write class …(msgspec.Struct, frozen=True)")
    if kind.__eq__ is not msgspec.Struct.__eq__ or kind.__hash__ is not msgspec.Struct.__hash__:
        raise _refuse(key, "its class defines its own __eq__ or __hash__; key by a tuple of the values it compares")
    return _fields_encoder(_STRUCT, kind, kind.__struct_fields__)


_ENCODERS: dict[type, Encoder] = {
    type(None): _encode_none,
    bool: _encode_int,
    int: _encode_int,
    float: _encode_float,
    Decimal: _encode_decimal,
    str: _encode_str,
    bytes: _encode_bytes,
    tuple: _encode_tuple,
    datetime: _encode_datetime,
    date: _encode_date,
    time: _encode_time,
    timedelta: _encode_timedelta,
    UUID: _encode_uuid,
    Row: _encode_row,
}
# A subclass counts as its base only if it compares and hashes like its base (named tuples, IntEnum, StrEnum).
_BASES: Final[tuple[tuple[type, Encoder], ...]] = tuple(
    (kind, encode) for kind, encode in _ENCODERS.items() if kind not in (type(None), bool, Row)
)


def _encode_numpy_scalar(key: Any) -> bytes:
    return canonical_bytes(key.item())


def _encoder_for(key: Any) -> Encoder:
    kind = type(key)
    if kind.__hash__ is None:
        raise _refuse(key, "it is mutable (unhashable); use a tuple of its values, or declare the type of a list")
    if _is_numpy_scalar(key):
        return _encode_numpy_scalar
    if dataclasses.is_dataclass(kind):
        return _dataclass_encoder(key)
    if isinstance(key, msgspec.Struct):
        return _struct_encoder(key)
    for base, encode in _BASES:
        if isinstance(key, base):
            if kind.__eq__ is base.__eq__ and kind.__hash__ is base.__hash__:
                return encode
            raise _refuse(key, f"it does not compare as a {base.__name__} does; convert it with {base.__name__}(…)")
    if isinstance(key, enum.Enum) and getattr(kind, "__eq__", None) is object.__eq__:
        return _encode_enum
    raise _refuse(
        key,
        "the equality of this type is not known to be the equality of its encoding; "
        "use str, int, bytes, a tuple of those, an Enum, or a frozen dataclass or Struct",
    )
