"""The tagged codec (I20): values are restored exactly, and reading runs no code that the data chooses.

msgpack carries None, bool, int, float, str, bytes, list and dict; every other type is a msgpack extension with a code
of its own. Classes are named `module:qualname` and looked up among the classes that this program registered or passed
in; the codec never imports a module that the data names.
"""

from __future__ import annotations

import datetime as dt
import enum
import uuid
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from rekindle.errors import SerializationError
from rekindle.serde.class_registry import (
    class_name,
    field_names,
    is_registrable,
    register_type,
    register_value_type,
    registered_classes,
    value_types_by_class,
    value_types_by_name,
)

__all__ = ["register_type", "register_value_type", "tagged_dumps", "tagged_loads"]

_TUPLE, _BIG_INT, _SET, _FROZENSET, _DICT, _BYTEARRAY = 1, 2, 3, 4, 5, 6
_DECIMAL, _DATETIME, _DATE, _TIME, _TIMEDELTA, _UUID = 7, 8, 9, 10, 11, 12
_ENUM, _FIELDS, _VALUE = 13, 14, 15
#: Reserved for `state_value_codecs`: a pickled value. The tagged codec itself refuses it.
PICKLED = 127

encode = msgspec.msgpack.Encoder().encode
Known = dict[type, str]


class NotTaggableError(Exception):
    """Internal: the codec cannot write a value; `tagged_dumps` turns this into a message with a path."""


def tagged_dumps(obj: Any, types: Iterable[type] = ()) -> bytes:
    """Encode `obj`; SerializationError names the path to a value that the codec cannot write.

    >>> tagged_loads(tagged_dumps({"offset": (3, 2**70), "seen": {1, 2}}))
    {'offset': (3, 1180591620717411303424), 'seen': {1, 2}}
    """
    known = {cls: class_name(cls) for cls in types}
    try:
        return encode(lower(obj, known))
    except NotTaggableError:
        path, reason = _find_untaggable(obj, "$", known)
        raise SerializationError(f"The value at {path} cannot be stored without pickle: {reason}.") from None
    except RecursionError:
        raise SerializationError(
            f"A {type(obj).__name__} is nested too deeply or contains itself, so it cannot be stored."
        ) from None
    except UnicodeEncodeError as error:
        raise SerializationError(f"A str in a {type(obj).__name__} is not valid Unicode: {error}.") from None


def tagged_loads(data: bytes | bytearray | memoryview, types: Iterable[type] = ()) -> Any:
    """Decode the bytes of `tagged_dumps`; classes are looked up among the registered ones and `types`."""
    extra = {class_name(cls): cls for cls in types}
    decoder = decoder_for(extra) if extra else _default_decoder
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise SerializationError(
            f"These bytes were not written by the tagged codec, or are damaged: {error}."
        ) from error


# -- writing ----------------------------------------------------------------------------------------------------------

_AS_IS = frozenset({type(None), bool, float, str, bytes})
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1


def lower(obj: Any, known: Known) -> Any:
    """Convert `obj` to a form that msgpack carries without loss."""
    cls = type(obj)
    if cls in _AS_IS or (cls is int and _INT64_MIN <= obj <= _UINT64_MAX):
        return obj
    lower_builtin = _LOWER.get(cls)
    if lower_builtin is not None:
        return lower_builtin(obj, known)
    value_type = value_types_by_class.get(cls)
    if value_type is not None:
        return Ext(_VALUE, encode([value_type.name, [lower(part, known) for part in value_type.to_parts(obj)]]))
    return _lower_registered(obj, known)


def _lower_registered(obj: Any, known: Known) -> Ext:
    cls = type(obj)
    name = known.get(cls) or class_name(cls)
    if cls not in known and registered_classes.get(name) is not cls:
        raise NotTaggableError
    if isinstance(obj, enum.Enum):
        member = obj.name if obj.name in cls.__members__ else None
        return Ext(_ENUM, encode([name, member, lower(obj.value, known)]))
    values = {field: lower(getattr(obj, field), known) for field in field_names(cls) if hasattr(obj, field)}
    return Ext(_FIELDS, encode([name, values]))


def _lower_big_int(obj: int, known: Known) -> Ext:
    return Ext(_BIG_INT, obj.to_bytes(obj.bit_length() // 8 + 1, "big", signed=True))


def _lower_list(obj: list[Any], known: Known) -> list[Any]:
    return [item if type(item) in _AS_IS else lower(item, known) for item in obj]


def _lower_tuple(obj: tuple[Any, ...], known: Known) -> Ext:
    return Ext(_TUPLE, encode([item if type(item) in _AS_IS else lower(item, known) for item in obj]))


def _lower_dict(obj: dict[Any, Any], known: Known) -> Any:
    if all(type(key) is str for key in obj):
        return {key: lower(value, known) for key, value in obj.items()}
    return Ext(_DICT, encode([lower(part, known) for item in obj.items() for part in item]))


def _lower_set(obj: set[Any] | frozenset[Any], known: Known) -> Ext:
    # Items are sorted by their bytes: the same set gives the same bytes in every process.
    items = sorted(encode(lower(item, known)) for item in obj)
    return Ext(_SET if type(obj) is set else _FROZENSET, encode([msgspec.Raw(item) for item in items]))


def _lower_datetime(obj: dt.datetime, known: Known) -> Ext:
    return Ext(_DATETIME, encode([obj.replace(tzinfo=None, fold=0).isoformat(), obj.fold, _lower_zone(obj.tzinfo)]))


def _lower_time(obj: dt.time, known: Known) -> Ext:
    return Ext(_TIME, encode([obj.replace(tzinfo=None, fold=0).isoformat(), obj.fold, _lower_zone(obj.tzinfo)]))


def _lower_zone(zone: dt.tzinfo | None) -> str | int | None:
    """A time zone as None, its name, or its microseconds east of UTC."""
    if zone is None:
        return None
    if isinstance(zone, zoneinfo.ZoneInfo) and zone.key is not None:
        return zone.key
    if type(zone) is dt.timezone:
        return zone.utcoffset(None) // dt.timedelta(microseconds=1)
    raise NotTaggableError


def _lower_timedelta(obj: dt.timedelta, known: Known) -> Ext:
    return Ext(_TIMEDELTA, encode([obj.days, obj.seconds, obj.microseconds]))


_LOWER: dict[type, Callable[[Any, Known], Any]] = {
    int: _lower_big_int,
    list: _lower_list,
    tuple: _lower_tuple,
    dict: _lower_dict,
    set: _lower_set,
    frozenset: _lower_set,
    bytearray: lambda obj, known: Ext(_BYTEARRAY, bytes(obj)),
    Decimal: lambda obj, known: Ext(_DECIMAL, str(obj).encode()),
    dt.datetime: _lower_datetime,
    dt.date: lambda obj, known: Ext(_DATE, obj.isoformat().encode()),
    dt.time: _lower_time,
    dt.timedelta: _lower_timedelta,
    uuid.UUID: lambda obj, known: Ext(_UUID, obj.bytes),
}


def is_taggable(cls: type, known: Known) -> bool:
    """Whether the codec writes values of exactly this class; values inside them may still not be taggable."""
    return (
        cls in _AS_IS
        or cls in _LOWER
        or cls in value_types_by_class
        or cls in known
        or registered_classes.get(class_name(cls)) is cls
    )


def _find_untaggable(obj: Any, path: str, known: Known) -> tuple[str, str]:
    """Path and reason of the innermost value that is not taggable; called only after writing `obj` failed."""
    for suffix, child in _children(obj, known):
        try:
            lower(child, known)
        except NotTaggableError:
            return _find_untaggable(child, path + suffix, known)
    cls = type(obj)
    if isinstance(obj, dt.datetime | dt.time):
        zone = class_name(type(obj.tzinfo))
        return path, f"its time zone is a {zone}; use datetime.timezone or zoneinfo.ZoneInfo"
    if is_registrable(cls):
        return path, f"it is a {class_name(cls)}; register that class with rekindle.serde.register_type"
    return path, f"it is a {class_name(cls)}; use builtins, a dataclass, a NamedTuple, a Struct, an Enum or a Row"


def _children(obj: Any, known: Known) -> Iterator[tuple[str, Any]]:
    cls = type(obj)
    if not is_taggable(cls, known):
        return
    if cls is dict:
        for key, value in obj.items():
            yield f" (key {key!r})", key
            yield f"[{key!r}]", value
    elif cls in (list, tuple, set, frozenset):
        for index, item in enumerate(obj):
            yield f"[{index}]", item
    elif cls in value_types_by_class:
        for index, part in enumerate(value_types_by_class[cls].to_parts(obj)):
            yield f"<{index}>", part
    elif is_registrable(cls) and not isinstance(obj, enum.Enum):
        for name in field_names(cls):
            yield f".{name}", getattr(obj, name, None)


# -- reading ----------------------------------------------------------------------------------------------------------


def decoder_for(
    extra: dict[str, type], load_pickled: Callable[[bytes], Any] | None = None
) -> msgspec.msgpack.Decoder[Any]:
    """Make a decoder that also looks up classes in `extra`, and reads pickled values only with `load_pickled`."""

    def build_ext(code: int, payload: memoryview) -> Any:
        if code in _BUILD_BYTES:
            return _BUILD_BYTES[code](bytes(payload))
        if code == PICKLED and load_pickled is not None:
            return load_pickled(bytes(payload))
        if code not in _BUILD_PARTS and code not in (_ENUM, _FIELDS):
            raise SerializationError(f"The tagged codec may not read extension {code}: pickle, or a newer version's.")
        parts = decoder.decode(payload)
        if code == _ENUM:
            return _build_enum(_resolve(parts[0], extra), parts[1], parts[2])
        if code == _FIELDS:
            return _build_fields(_resolve(parts[0], extra), parts[1])
        return _BUILD_PARTS[code](parts)

    decoder = msgspec.msgpack.Decoder(ext_hook=build_ext)
    return decoder


def _resolve(name: str, extra: dict[str, type]) -> type:
    cls = extra.get(name) or registered_classes.get(name)
    if cls is None:
        raise SerializationError(
            f"The data holds a {name}, a class that this program has not registered: "
            "register it with rekindle.serde.register_type before reading."
        )
    return cls


def _build_enum(cls: type, name: str | None, value: Any) -> Any:
    try:
        return cls[name] if name is not None else cls(value)  # type: ignore[index]
    except (KeyError, ValueError):
        raise SerializationError(f"{class_name(cls)} has no member {name or value!r} any more.") from None


def _build_fields(cls: type, values: dict[str, Any]) -> Any:
    """Build an instance: stored fields that the class no longer has are dropped, new ones get their default."""
    given = {name: values[name] for name in field_names(cls) if name in values}
    if issubclass(cls, msgspec.Struct) or not is_dataclass(cls):
        try:
            return cls(**given)
        except TypeError as error:
            raise SerializationError(f"The stored fields do not make a {class_name(cls)}: {error}.") from None
    # As with pickle: the state is set, __init__ and __post_init__ do not run again.
    obj = object.__new__(cls)
    for field in fields(cls):
        if field.name in given:
            value = given[field.name]
        elif field.default is not MISSING:
            value = field.default
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        else:
            raise SerializationError(
                f"The stored {class_name(cls)} has no field {field.name!r}: give the new field a default."
            )
        object.__setattr__(obj, field.name, value)
    return obj


def _build_zone(zone: str | int | None) -> dt.tzinfo | None:
    if zone is None:
        return None
    return zoneinfo.ZoneInfo(zone) if isinstance(zone, str) else dt.timezone(dt.timedelta(microseconds=zone))


def _build_value(parts: Sequence[Any]) -> Any:
    name, inner = parts
    if name not in value_types_by_name:
        raise SerializationError(f"The data holds a {name}, a value type that this version does not know.")
    return value_types_by_name[name].from_parts(inner)


_BUILD_BYTES: dict[int, Callable[[bytes], Any]] = {
    _BIG_INT: lambda payload: int.from_bytes(payload, "big", signed=True),
    _BYTEARRAY: bytearray,
    _DECIMAL: lambda payload: Decimal(payload.decode()),
    _DATE: lambda payload: dt.date.fromisoformat(payload.decode()),
    _UUID: lambda payload: uuid.UUID(bytes=payload),
}
_BUILD_PARTS: dict[int, Callable[[list[Any]], Any]] = {
    _TUPLE: tuple,
    _SET: set,
    _FROZENSET: frozenset,
    _DICT: lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    _DATETIME: lambda parts: dt.datetime.fromisoformat(parts[0]).replace(fold=parts[1], tzinfo=_build_zone(parts[2])),
    _TIME: lambda parts: dt.time.fromisoformat(parts[0]).replace(fold=parts[1], tzinfo=_build_zone(parts[2])),
    _TIMEDELTA: lambda parts: dt.timedelta(*parts),
    _VALUE: _build_value,
}
_default_decoder = decoder_for({})
