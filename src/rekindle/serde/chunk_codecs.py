"""Chunk codecs, the hot path: thousands of records in one encoded list."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, Protocol

import msgspec

from rekindle.errors import SerializationError, TypeMismatchError
from rekindle.serde.pickle_by_value import cloud_dumps
from rekindle.serde.type_schema import TypeSchema

Converter = Callable[[Any], Any]
Buffer = bytes | bytearray | memoryview

#: Errors of msgspec for a value that it cannot write, and of converters for a value without the declared shape.
CANNOT_ENCODE = (
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeMismatchError,
)


class WireType(Protocol):
    """The part of a type that codecs use; `rekindle.common.typeinfo.TypeInformation` implements it."""

    def python_type(self) -> Any | None:
        """The typing object that msgspec decodes to, or None when values can only be pickled."""
        ...

    def to_wire(self) -> Converter | None:
        """The conversion from a value to the form that msgspec encodes; None when that is the value itself."""
        ...

    def from_wire(self) -> Converter | None:
        """The conversion from msgspec's decoded form to the value; None when that is the value itself."""
        ...

    def exact_class(self) -> type | None:
        """The exact class that values must have to be restored unchanged; None when any fitting value is."""
        ...

    def schema(self) -> TypeSchema:
        """The schema that is written beside stored values."""
        ...


class ChunkCodec(Protocol):
    """Encodes a list of records as one payload, and decodes it."""

    name: str

    @property
    def schema(self) -> TypeSchema:
        """The schema of the records, for chunks that wait in a checkpoint."""
        ...

    def encode(self, records: list[Any]) -> bytes:
        """The records as one payload."""
        ...

    def decode(self, data: Buffer) -> list[Any]:
        """The records of a payload."""
        ...


def codec_for(type_info: WireType | None) -> ChunkCodec:
    """The fastest codec that restores values of this type: msgpack for a declared type, else pickle.

    >>> codec = codec_for(None)
    >>> codec.name, codec.decode(codec.encode([{1, 2}, "x"]))
    ('pickle', [{1, 2}, 'x'])
    """
    if type_info is None or type_info.python_type() is None:
        return PickleChunkCodec()
    return MsgpackChunkCodec(type_info)


class MsgpackChunkCodec:
    """One msgpack array of records, decoded to the declared type."""

    name = "msgpack"

    @property
    def schema(self) -> TypeSchema:
        """The schema of the records, for chunks that wait in a checkpoint."""
        return self._schema_of()

    def __init__(self, type_info: WireType) -> None:
        self._declared = repr(type_info)
        self._schema_of = type_info.schema
        self._to_wire = type_info.to_wire()
        self._from_wire = type_info.from_wire()
        exact = type_info.exact_class()
        self._classes = None if exact is None else frozenset({exact, type(None)})
        self._encode = msgspec.msgpack.Encoder().encode
        element = type_info.python_type()
        self._decode = msgspec.msgpack.Decoder(list[element | None]).decode  # type: ignore[valid-type]

    def encode(self, records: list[Any]) -> bytes:
        """The records as one payload; TypeMismatchError names the record that does not fit."""
        # A subclass would silently become the declared class on the other side.
        if self._classes is not None and not self._classes.issuperset(map(type, records)):
            raise self._wrong_class(records)
        try:
            if self._to_wire is None:
                return self._encode(records)
            return self._encode(list(map(self._to_wire, records)))
        except CANNOT_ENCODE as error:
            raise self._cannot_encode(records, error) from error

    def decode(self, data: Buffer) -> list[Any]:
        """The records of a payload; TypeMismatchError names the record that does not fit the declared type."""
        try:
            records = self._decode(data)
        except msgspec.ValidationError as error:
            raise TypeMismatchError(
                f"Record {_index_in(str(error))} of a chunk does not fit its declared type {self._declared}: {error}. "
                "Declare the type that the function really emits, or none."
            ) from None
        except msgspec.DecodeError as error:
            raise SerializationError(f"A chunk of {self._declared} is damaged: {error}.") from error
        return records if self._from_wire is None else list(map(self._from_wire, records))

    def _wrong_class(self, records: list[Any]) -> TypeMismatchError:
        assert self._classes is not None
        index, record = next((i, r) for i, r in enumerate(records) if type(r) not in self._classes)
        return TypeMismatchError(
            f"Record {index} is a {_type_name(record)}, but its stream is declared as {self._declared}: "
            f"{_short_repr(record)}. Declare the type that the function really emits, or none."
        )

    def _cannot_encode(self, records: list[Any], error: BaseException) -> TypeMismatchError:
        for index, record in enumerate(records):
            problem = self._problem_with(record)
            if problem is not None:
                path, value, advice = problem
                return TypeMismatchError(
                    f"Record {index} does not fit its declared type {self._declared}: "
                    f"at $[{index}]{path} is {_short_repr(value)}, a {_type_name(value)}. {advice}"
                )
        return TypeMismatchError(f"A chunk does not fit its declared type {self._declared}: {error}.")

    def _problem_with(self, record: Any) -> tuple[str, Any, str] | None:
        wired = record
        if self._to_wire is not None:
            try:
                wired = self._to_wire(record)
            except CANNOT_ENCODE as error:
                return (
                    "",
                    record,
                    f"That does not fit: {error}. Declare the type that the function really emits, or none.",
                )
        found = _find_unencodable(wired, "", self._encode)
        if found is None:
            return None
        path, value = found
        return path, value, _advice(value)


class PickleChunkCodec:
    """One pickled list of records: for streams without a declared type, between slots of one job."""

    name = "pickle"
    schema: Final = TypeSchema("Other", "Any")

    def encode(self, records: list[Any]) -> bytes:
        """The records as one payload; SerializationError names the record that cannot be pickled."""
        try:
            return pickle.dumps(records, protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError, RecursionError):
            # Classes of the user's own script are in no module that slots can import: they travel by value.
            return _dumps_by_value(records)

    def decode(self, data: Buffer) -> list[Any]:
        """The records of a payload."""
        records: list[Any] = pickle.loads(data)
        return records


def _dumps_by_value(records: list[Any]) -> bytes:
    try:
        return cloud_dumps(records)
    except Exception as error:
        for index, record in enumerate(records):
            try:
                cloud_dumps(record)
            except Exception as cause:
                path, value = _find_unpicklable(record, f"$[{index}]", depth=0)
                raise SerializationError(
                    f"Record {index} cannot travel to another task: at {path} is a {_type_name(value)}: {cause}. "
                    "Emit plain data, or keep such objects inside the function (make them in open())."
                ) from None
        raise SerializationError(f"A chunk of records cannot be pickled: {error}.") from error


# -- finding the value that cannot be encoded -------------------------------------------------------------------------


def _find_unencodable(value: Any, path: str, encode: Callable[[Any], bytes]) -> tuple[str, Any] | None:
    """Path and value of the innermost part that msgspec cannot write; None when it can write all of `value`."""
    try:
        encode(value)
        return None
    except RecursionError:
        return path, value
    except CANNOT_ENCODE:
        for suffix, child in _children(value):
            found = _find_unencodable(child, path + suffix, encode)
            if found is not None:
                return found
        return path, value


def _find_unpicklable(value: Any, path: str, depth: int) -> tuple[str, Any]:
    """Path and value of the innermost part that cannot be pickled, in a value that cannot."""
    if depth < _MAX_DEPTH:
        for suffix, child in _children(value):
            try:
                cloud_dumps(child)
            except Exception:
                return _find_unpicklable(child, path + suffix, depth + 1)
    return path, value


_MAX_DEPTH = 20


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield f" (key {key!r})", key
            yield f"[{key!r}]", item
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield f".{name}", getattr(value, name)
    elif is_dataclass(value):
        for field in fields(value):
            yield f".{field.name}", getattr(value, field.name, None)
    else:
        for name, item in getattr(value, "__dict__", {}).items():
            yield f".{name}", item


def _advice(value: Any) -> str:
    if isinstance(value, int):
        return "Integers beyond 64 bits need Types.BIG_INT(), or leave the type out."
    if isinstance(value, str):
        return "It is not valid Unicode: declare bytes (Types.PRIMITIVE_ARRAY(Types.BYTE()))."
    return "Emit what was declared, or leave the type out: then records are pickled."


def _index_in(message: str) -> str:
    found = re.search(r"\$\[(\d+)\]", message)
    return found.group(1) if found else "?"


def _type_name(value: Any) -> str:
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _short_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_REPR else text[: _MAX_REPR - 1] + "…"


_MAX_REPR = 120
