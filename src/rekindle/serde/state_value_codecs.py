"""Codecs for state values: msgpack with a declared type, tagged without one, pickle only where that is allowed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, Protocol

import msgspec
from msgspec.msgpack import Ext

from rekindle.errors import SerializationError, TypeMismatchError
from rekindle.serde.chunk_codecs import CANNOT_ENCODE, Buffer, WireType
from rekindle.serde.class_registry import class_name
from rekindle.serde.pickle_by_value import cloud_dumps
from rekindle.serde.tagged_codec import PICKLED, NotTaggableError, decoder_for, encode, is_taggable, lower, tagged_dumps
from rekindle.serde.type_schema import TypeSchema


class ValueCodec(Protocol):
    """Encodes one value as bytes, and decodes it."""

    name: str

    @property
    def schema(self) -> TypeSchema:
        """The schema of the values that it writes."""
        ...

    def encode(self, value: Any) -> bytes:
        """Encode one value."""
        ...

    def decode(self, data: Buffer) -> Any:
        """Decode one value."""
        ...

    def encode_all(self, values: list[Any]) -> bytes:
        """Encode values as one msgpack array of their `encode` results; None is nil. Much faster than one by one."""
        ...

    def decode_all(self, data: Buffer) -> list[Any]:
        """Decode the bytes of `encode_all`."""
        ...


def value_codec_for(
    type_info: WireType | None, *, allow_pickle: bool = False, types: Iterable[type] = ()
) -> ValueCodec:
    """The codec for values of this type; `types` are classes that untyped values may contain.

    >>> codec = value_codec_for(None)
    >>> codec.name, codec.decode(codec.encode((1, {"a": {2}})))
    ('tagged', (1, {'a': {2}}))
    """
    if type_info is None or type_info.python_type() is None:
        return TaggedValueCodec(types, allow_pickle)
    return MsgpackValueCodec(type_info)


#: Declared type -> classes whose values are always decoded as they were encoded, so that no check is needed.
_FITTING: Final[dict[Any, frozenset[type]]] = {
    bool: frozenset({bool, type(None)}),
    int: frozenset({int, type(None)}),
    float: frozenset({float, int, type(None)}),
    str: frozenset({str, type(None)}),
    bytes: frozenset({bytes, type(None)}),
    Decimal: frozenset({Decimal, type(None)}),
}


class MsgpackValueCodec:
    """msgpack, decoded to the declared type."""

    name = "msgpack"

    def __init__(self, type_info: WireType) -> None:
        self._declared = repr(type_info)
        self._schema_of = type_info.schema
        self._to_wire = type_info.to_wire()
        self._from_wire = type_info.from_wire()
        exact = type_info.exact_class()
        self._classes = None if exact is None else frozenset({exact, type(None)})
        element: Any = type_info.python_type() | None  # type: ignore[operator]
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(element).decode
        self._decode_all = msgspec.msgpack.Decoder(list[element]).decode
        self._fitting = _FITTING.get(type_info.python_type(), frozenset()) if self._to_wire is None else frozenset()

    @cached_property
    def schema(self) -> TypeSchema:
        """The schema of the declared type."""
        return self._schema_of()

    def encode(self, value: Any) -> bytes:
        """Encode one value; TypeMismatchError when it is not of the declared type."""
        if self._classes is not None and type(value) not in self._classes:
            raise TypeMismatchError(f"{value!r} is a {class_name(type(value))}, but {self._declared} was declared.")
        try:
            data = self._encode(value if self._to_wire is None else self._to_wire(value))
            self._decode(data)
        except (*CANNOT_ENCODE, msgspec.ValidationError) as error:
            raise TypeMismatchError(f"{value!r} does not fit its declared type {self._declared}: {error}.") from error
        return data

    def encode_all(self, values: list[Any]) -> bytes:
        """Encode values as one array; TypeMismatchError when one is not of the declared type."""
        try:
            if self._classes is None or self._classes.issuperset(map(type, values)):
                data = self._encode(values if self._to_wire is None else _converted(self._to_wire, values))
                # Written values must be readable: a snapshot that cannot be restored is worse than none.
                if not self._fitting.issuperset(map(type, values)):
                    self._decode_all(data)
                return data
        except (*CANNOT_ENCODE, msgspec.ValidationError):
            pass
        for value in values:
            self.encode(value)  # one of them fails again, this time with a message that names it
        raise AssertionError(f"values of {self._declared} can be written one by one, but not together")

    def decode(self, data: Buffer) -> Any:
        """Decode one value; TypeMismatchError when the bytes do not fit the declared type."""
        value = self._checked(self._decode, data)
        return value if self._from_wire is None else self._from_wire(value)

    def decode_all(self, data: Buffer) -> list[Any]:
        """Decode the bytes of `encode_all`; TypeMismatchError when a value does not fit the declared type."""
        values: list[Any] = self._checked(self._decode_all, data)
        return values if self._from_wire is None else _converted(self._from_wire, values)

    def _checked(self, decode: Callable[[Buffer], Any], data: Buffer) -> Any:
        try:
            return decode(data)
        except msgspec.ValidationError as error:
            raise TypeMismatchError(
                f"A stored value does not fit its declared type {self._declared}: {error}."
            ) from None
        except msgspec.DecodeError as error:
            raise SerializationError(f"A stored value of {self._declared} is damaged: {error}.") from error


def _converted(convert: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return [None if value is None else convert(value) for value in values]


# Classes that msgpack carries directly; for an int that is too large its encoder raises OverflowError.
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})


class TaggedValueCodec:
    """The tagged codec, with pickle for values that are not taggable if that is allowed."""

    name = "tagged"
    schema: Final = TypeSchema("Tagged")

    def __init__(self, types: Iterable[type], allow_pickle: bool) -> None:
        self._types = tuple(types)
        self._known = {cls: class_name(cls) for cls in self._types}
        self._allow_pickle = allow_pickle
        by_name = {name: cls for cls, name in self._known.items()}
        self._decode = decoder_for(by_name, pickle.loads if allow_pickle else None).decode

    def encode(self, value: Any) -> bytes:
        """Encode one value; SerializationError names the path to a part that would need pickle."""
        if self._allow_pickle and not is_taggable(type(value), self._known):
            return _pickled(value)
        try:
            return encode(lower(value, self._known))
        except (NotTaggableError, RecursionError, UnicodeEncodeError):
            if self._allow_pickle:
                return _pickled(value)
            return tagged_dumps(value, self._types)  # fails again, this time with a message that names the path

    def encode_all(self, values: list[Any]) -> bytes:
        """Encode values as one array; SerializationError names the path to a part that would need pickle."""
        if _PLAIN.issuperset(map(type, values)):
            try:
                return encode(values)
            except (OverflowError, UnicodeEncodeError):
                pass
        return encode([msgspec.Raw(self.encode(value)) for value in values])

    def decode(self, data: Buffer) -> Any:
        """Decode one value."""
        try:
            return self._decode(data)
        except msgspec.DecodeError as error:
            raise SerializationError(f"A stored value is damaged: {error}.") from error

    def decode_all(self, data: Buffer) -> list[Any]:
        """Decode the bytes of `encode_all`."""
        values = self.decode(data)
        if type(values) is not list:
            raise SerializationError("Stored values are damaged: they are no array.")
        return values


def _pickled(value: Any) -> bytes:
    try:
        data = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        try:
            data = cloud_dumps(value)
        except Exception as error:
            raise SerializationError(f"{value!r} cannot be stored: {error}.") from error
    return encode(Ext(PICKLED, data))
