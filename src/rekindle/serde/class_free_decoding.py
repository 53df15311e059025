"""Decode msgpack and tagged values without the program's classes: an instance becomes its class's name and its fields.

Nothing is imported and, unless the caller asks for it, nothing is unpickled: a pickled value stays its bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from rekindle.errors import SerializationError
from rekindle.serde.tagged_codec import _BUILD_BYTES, _BUILD_PARTS, _DICT, _ENUM, _FIELDS, _TUPLE, PICKLED, lower

Buffer = bytes | bytearray | memoryview | msgspec.Raw
_encode = msgspec.msgpack.Encoder().encode
_encode_sorted = msgspec.msgpack.Encoder(order="deterministic").encode


class FrozenList(tuple[Any, ...]):
    """A msgpack array as part of a key: a list that can be hashed."""

    __slots__ = ()


class FrozenMap(tuple[tuple[str, Any], ...]):
    """A msgpack map as part of a key: its entries, which can be hashed."""

    __slots__ = ()


@dataclass(frozen=True)
class ClassFields:
    """The fields of an instance of a class that this process need not know."""

    class_name: str
    items: tuple[tuple[str, Any], ...]

    def values(self) -> dict[str, Any]:
        """Field -> value."""
        return dict(self.items)


@dataclass(frozen=True)
class EnumMember:
    """A member of an Enum that this process need not know."""

    class_name: str
    member: str | None
    value: Any


@dataclass(frozen=True)
class PickledValue:
    """The bytes of a pickled value, which stay pickled."""

    data: bytes


def class_free_decoder(allow_pickle: bool = False) -> msgspec.msgpack.Decoder[Any]:
    """A decoder of values in either encoding, declared or tagged.

    >>> from rekindle.serde import tagged_dumps
    >>> class_free_decoder().decode(tagged_dumps({"at": (1, 2)}))
    {'at': (1, 2)}
    """

    def build(code: int, payload: memoryview) -> Any:
        if code in _BUILD_BYTES:
            return _BUILD_BYTES[code](bytes(payload))
        if code == PICKLED:
            return pickle.loads(payload) if allow_pickle else PickledValue(bytes(payload))
        if code not in _BUILD_PARTS and code not in (_ENUM, _FIELDS):
            raise SerializationError(f"Extension {code} is not known: a newer version of Rekindle wrote this value.")
        parts = decoder.decode(payload)
        if code == _ENUM:
            return EnumMember(*parts)
        if code == _FIELDS:
            return ClassFields(parts[0], tuple(parts[1].items()))
        return _BUILD_PARTS[code](parts if code != _DICT else _hashable_keys(parts))

    decoder = msgspec.msgpack.Decoder(ext_hook=build)
    return decoder


def _hashable_keys(parts: list[Any]) -> list[Any]:
    return [frozen(part) if index % 2 == 0 else part for index, part in enumerate(parts)]


def frozen(value: Any) -> Any:
    """The value as a key of a dict: arrays and maps in it can be hashed, and equal keys stay equal.

    >>> frozen(["a", {"b": [1]}])
    ('a', (('b', (1,)),))
    """
    kind = type(value)
    if kind is list:
        return FrozenList(map(frozen, value))
    if kind is tuple:
        return tuple(map(frozen, value))
    if kind is dict:
        return FrozenMap((name, frozen(each)) for name, each in value.items())
    if kind is ClassFields:
        return ClassFields(value.class_name, tuple((name, frozen(each)) for name, each in value.items))
    return value


def encode_tagged(value: Any) -> bytes:
    """Encode a value as the tagged codec would, also one that `class_free_decoder` decoded.

    >>> from rekindle.serde import tagged_dumps
    >>> encode_tagged((1, "a")) == tagged_dumps((1, "a"))
    True
    """
    return _encode(_lowered(value))


def encode_canonically(value: Any) -> bytes:
    """Encode a value so that equal values have equal bytes, whatever the order of their maps."""
    return _encode_sorted(_lowered(value))


def _lowered(value: Any) -> Any:
    match value:
        case FrozenList() | list():
            return [_lowered(each) for each in value]
        case FrozenMap():
            return {name: _lowered(each) for name, each in value}
        case ClassFields():
            return Ext(_FIELDS, _encode([value.class_name, {name: _lowered(each) for name, each in value.items}]))
        case EnumMember():
            return Ext(_ENUM, _encode([value.class_name, value.member, _lowered(value.value)]))
        case PickledValue():
            return Ext(PICKLED, value.data)
    if type(value) is tuple:
        return Ext(_TUPLE, _encode([_lowered(each) for each in value]))
    if isinstance(value, Mapping):
        if all(type(key) is str for key in value):
            return {key: _lowered(each) for key, each in value.items()}
        return Ext(_DICT, _encode([_lowered(part) for item in value.items() for part in item]))
    return lower(value, {})
