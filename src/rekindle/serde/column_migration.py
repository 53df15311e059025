"""From an array of values that one codec wrote to the array that another reads: typed, tagged, or a serializer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from rekindle.serde.schema_changes import SchemaChangeError
from rekindle.serde.schema_evolution import conversion
from rekindle.serde.serializer_codec import SerializerCodec
from rekindle.serde.state_value_codecs import TaggedValueCodec
from rekindle.serde.type_schema import TypeSchema

Buffer = bytes | bytearray | memoryview | msgspec.Raw
Migration: TypeAlias = Callable[[Buffer], bytes] | None

#: Typed values with the bytes that the tagged codec writes for them.
_LIKE_TAGGED: Final = frozenset({"Boolean", "Byte", "Short", "Integer", "Long", "Float", "Double", "String", "Bytes"})
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.decode


class ColumnCodec(Protocol):
    """The part of a `ValueCodec` that reads and writes arrays."""

    @property
    def schema(self) -> TypeSchema:
        """The schema of the values that it writes."""

    def encode_all(self, values: list[Any], /) -> bytes:
        """Many values as one array."""

    def decode_all(self, data: bytes, /) -> list[Any]:
        """Decode the bytes that `encode_all` wrote."""


def column_migration(old: TypeSchema, codec: ColumnCodec, *, allow_pickle: bool = False) -> Migration:
    """The way from what `encode_all` wrote under the old schema to what `codec.decode_all` reads; None: the same bytes.

    `allow_pickle`: values without a declared type may have been pickled, and may be unpickled.

    >>> from rekindle.common.typeinfo import Types
    >>> from rekindle.serde import value_codec_for
    >>> wider = value_codec_for(Types.DOUBLE())
    >>> migrate = column_migration(Types.INT().schema(), wider)
    >>> wider.decode_all(migrate(value_codec_for(Types.INT()).encode_all([1, None])))
    [1.0, None]

    :raises SchemaChangeError: when there is none.
    """
    new = codec.schema
    if old == new:
        return None
    if old.kind == "Serializer":
        return _from_serializer(old, codec)
    if isinstance(codec, SerializerCodec):
        return _into_serializer(old, codec, allow_pickle)
    if old.kind == "Tagged":
        return _from_tagged(codec, allow_pickle)
    if new.kind == "Tagged":
        if old.kind in _LIKE_TAGGED:
            return None
        raise SchemaChangeError("", old, new, "declare the type that it was saved with.")
    convert = conversion(old, new)
    return None if convert is None else lambda data: _encode(list(map(convert, _decode(data))))


def _from_serializer(old: TypeSchema, codec: ColumnCodec) -> Migration:
    new = codec.schema
    if not isinstance(codec, SerializerCodec):
        raise SchemaChangeError("", old, new, "only the serializer that wrote it can read it, so set it again.")
    if old.name != new.name and old.name not in new.aliases:
        raise SchemaChangeError("", old, new, "if the serializer was renamed, put its name into former_names.")
    if not codec.serializer.can_read(old.version):
        raise SchemaChangeError("", old, new, "read the older version in its deserialize_version().")
    if old.version == new.version:
        return None
    return lambda data: codec.encode_all(codec.decode_version(bytes(data), old.version))


def _into_serializer(old: TypeSchema, codec: SerializerCodec, allow_pickle: bool) -> Migration:
    """Values that were saved without the serializer are read by the type that the descriptor declares."""
    declared = codec.declared
    before = column_migration(old, declared, allow_pickle=allow_pickle)

    def migrate(data: Buffer) -> bytes:
        return codec.encode_all(declared.decode_all(bytes(data) if before is None else before(data)))

    return migrate


def _from_tagged(codec: ColumnCodec, allow_pickle: bool) -> Callable[[Buffer], bytes]:
    """Values that had no declared type must fit the declared one."""
    tagged = TaggedValueCodec((), allow_pickle)
    return lambda data: codec.encode_all(tagged.decode_all(bytes(data)))


def check_same_keys(old: TypeSchema, new: TypeSchema) -> None:
    """Refuse keys of another type: a key that is written in another way belongs to another key group (I11)."""
    if "Tagged" not in (old.kind, new.kind) and _key_form(old) != _key_form(new):
        raise SchemaChangeError("", old, new, "the type of a key cannot change, so give the operator another uid().")


def _key_form(schema: TypeSchema) -> Any:
    """The parts of a schema on which the bytes of a key depend; all ints and all floats are alike."""
    kind = {"Byte": "Long", "Short": "Long", "Integer": "Long", "BigInteger": "Long", "Float": "Double"}
    parts = [_key_form(part) for part in schema.parts]
    fields = [(each.name, _key_form(each.type)) for each in schema.fields]
    return kind.get(schema.kind, schema.kind), schema.name, parts, fields, schema.positional
