"""Parts that were written under another schema than the program's: whether they can be read, and how.

Each part is read by the schema it was written with, so that a key group written under one schema and its deltas under
another come together under a third one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from msgspec import Raw

from rekindle.checkpoint.part_formats import OperatorStatePart
from rekindle.errors import IncompatibleStateError
from rekindle.runtime.state.keyed_state_format import NONE_VALUE, StatePart, list_operations, map_operations
from rekindle.runtime.state.spec import Codec, StateKind, StateSpec
from rekindle.runtime.state.ttl.expiry import TimedCodec, is_timed, reader
from rekindle.serde.chunk_codecs import ChunkCodec
from rekindle.serde.column_migration import Buffer, Migration, check_same_keys, column_migration
from rekindle.serde.record_evolution import dropped_fields
from rekindle.serde.schema_changes import SchemaChangeError
from rekindle.serde.schema_evolution import conversion
from rekindle.serde.type_schema import StateSchema, decode_schema, decode_state_schema, encode_state_schema

_LOG: Final = logging.getLogger("rekindle.state")
_encode = msgspec.msgpack.Encoder().encode
_decode_timed = msgspec.msgpack.Decoder(tuple[Raw, Raw]).decode
_decode_array = msgspec.msgpack.Decoder(list[Raw]).decode
_NIL = _encode(None)


@dataclass(frozen=True)
class Migrations:
    """The ways from the columns of stored parts to those that the program's codecs read; None: the same bytes."""

    keys: Migration = None
    values: Migration = None
    fields: Migration = None

    @property
    def needed(self) -> bool:
        """Whether any column changes."""
        return any((self.keys, self.values, self.fields))


def migrations(spec: StateSpec, part: StatePart | OperatorStatePart, key_codec: Codec | None) -> Migrations:
    """The ways from a part to a state of the program; `key_codec` is None in operator state.

    :raises IncompatibleStateError: when there is none; it names the state, the field, and both types.
    """
    found = spec.migrations.get(part.schema)
    if found is None:
        found = spec.migrations[part.schema] = _migrations(spec, part, key_codec)
    return found


def _migrations(spec: StateSpec, part: StatePart | OperatorStatePart, key_codec: Codec | None) -> Migrations:
    stored, allow_pickle = decode_state_schema(part.schema), spec.allow_pickle
    values = spec.values.untimed if isinstance(spec.values, TimedCodec) else spec.values
    fields = spec.fields if stored.fields is not None else None
    subject = f"State '{spec.name}'"
    found = Migrations(
        _keys_migration(stored, key_codec, allow_pickle, f"{subject}: its key"),
        _migration(subject, stored.values, values, allow_pickle),
        _migration(f"{subject}, the keys of the map", stored.fields, fields, allow_pickle),
    )
    if values.schema.kind != "Serializer":  # the declared type is only a help to get there
        _warn_dropped(spec, stored)
    return found


def _keys_migration(stored: StateSchema, key_codec: Codec | None, allow_pickle: bool, subject: str) -> Migration:
    if stored.keys is None or key_codec is None:
        return None
    try:
        check_same_keys(stored.keys, key_codec.schema)
    except SchemaChangeError as error:
        raise IncompatibleStateError(f"{subject}: {error}") from None
    return _migration(subject, stored.keys, key_codec, allow_pickle)


def _migration(subject: str, old: Any, codec: Codec | None, allow_pickle: bool) -> Migration:
    if old is None or codec is None:
        return None
    try:
        return column_migration(old, codec, allow_pickle=allow_pickle)
    except SchemaChangeError as error:
        raise IncompatibleStateError(f"{subject}: {error}") from None


def _warn_dropped(spec: StateSpec, stored: StateSchema) -> None:
    for gone in dropped_fields(stored.values, spec.values.schema):
        _LOG.warning(
            "State '%s': the values of its saved field '%s' are dropped, because %s has no such field; if it was "
            "renamed, say so with @aliases(new_name='%s').",
            spec.name,
            gone,
            spec.type_name,
            gone.rpartition(".")[2],
        )


# -- keyed state -------------------------------------------------------------------------------------------------------


def reads_as_is(spec: StateSpec, part: StatePart, key_codec: Codec) -> bool:
    """Whether a part's bytes are what the spec's codecs would write: same schema, same codec, same use of timestamps.

    :raises IncompatibleStateError: when the program cannot read the part at all.
    """
    needed = migrations(spec, part, key_codec).needed
    return not needed and is_timed(part) is (spec.ttl is not None)


def rewritten(spec: StateSpec, part: StatePart, key_codec: Codec) -> StatePart:
    """A part decoded by the schema it was written with, and encoded anew by the spec's codecs, timestamps included.

    Raises one of `spec.UNREADABLE` for a value that does not fit.
    """
    if reads_as_is(spec, part, key_codec):
        return part
    evolved_part = evolved(spec, part, key_codec)
    read, fields = reader(spec, evolved_part), spec.fields
    operations = _with_columns(
        evolved_part,
        lambda data: spec.values.encode_all(read(data)),
        None if fields is None else lambda data: fields.encode_all(fields.decode_all(data)),
    )
    schema = spec.stored_schema(key_codec.schema)
    return msgspec.structs.replace(evolved_part, operations=operations, schema=schema)


def evolved(spec: StateSpec, part: StatePart, key_codec: Codec) -> StatePart:
    """A part under the program's schema; it has timestamps if it had some before, whatever the program wants."""
    ways = migrations(spec, part, key_codec)
    if not ways.needed:
        return part
    schema = decode_state_schema(spec.stored_schema(key_codec.schema))
    return msgspec.structs.replace(
        part,
        keys=part.keys if ways.keys is None else Raw(ways.keys(part.keys)),
        operations=_with_columns(part, _within_timed(ways.values) if is_timed(part) else ways.values, ways.fields),
        schema=encode_state_schema(replace(schema, timed=is_timed(part))),
    )


def _with_columns(part: StatePart, values: Migration, fields: Migration) -> Raw:
    """The operations of a part with other columns of values (or elements) and of map keys."""

    def column(data: Raw, migrate: Migration) -> Raw:
        return data if migrate is None else Raw(migrate(data))

    if part.kind is StateKind.LIST:
        lists = list_operations(part)
        return Raw(_encode(msgspec.structs.replace(lists, elements=column(lists.elements, values))))
    if part.kind is StateKind.MAP:
        maps = map_operations(part)
        changed = msgspec.structs.replace(maps, fields=column(maps.fields, fields), values=column(maps.values, values))
        return Raw(_encode(changed))
    return column(part.operations, values)


def _within_timed(migrate: Migration) -> Migration:
    """The same for values with timestamps, which lie in a column of their own."""
    if migrate is None:
        return None

    def migrate_timed(data: Buffer) -> bytes:
        stamps, values = _decode_timed(data)
        return _encode((stamps, Raw(migrate(values))))

    return migrate_timed


# -- timers and operator state -----------------------------------------------------------------------------------------


def evolved_keys(keys: Raw, key_schema: bytes, key_codec: Codec, allow_pickle: bool) -> Raw:
    """The keys of timers as the program's codec reads them."""
    stored = StateSchema(key_codec.schema, keys=decode_schema(key_schema))
    migrate = _keys_migration(stored, key_codec, allow_pickle, "The timers: their key")
    return keys if migrate is None else Raw(migrate(keys))


def evolved_entries(spec: StateSpec, part: OperatorStatePart) -> list[bytes]:
    """The entries of operator state as the program's codecs read them."""
    ways = migrations(spec, part, None)
    if not ways.needed:
        return part.entries
    if spec.fields is None:
        return _evolved_each(part.entries, ways.values)
    fields, values = (_evolved_each(part.entries[i::2], way) for i, way in enumerate((ways.fields, ways.values)))
    return [entry for pair in zip(fields, values, strict=True) for entry in pair]


def evolved_elements(
    subject: str, elements: list[bytes], schema: bytes, codec: Codec, allow_pickle: bool
) -> list[bytes]:
    """Elements that `codec.encode` wrote under another schema, as the program's codec reads them."""
    return _evolved_each(elements, _migration(subject, decode_schema(schema), codec, allow_pickle))


def chunk_conversion(subject: str, schema: bytes, codec: ChunkCodec) -> Migration:
    """The way from the records of stored chunks to those that the program's codec reads; None: the same bytes."""
    try:
        convert = conversion(decode_schema(schema), codec.schema)
    except SchemaChangeError as error:
        raise IncompatibleStateError(f"{subject}: {error}") from None
    return None if convert is None else lambda data: _encode(list(map(convert, msgspec.msgpack.decode(data))))


def _evolved_each(entries: list[bytes], migrate: Callable[[Buffer], bytes] | None) -> list[bytes]:
    if migrate is None:
        return entries
    array = _encode([Raw(_NIL if entry == NONE_VALUE else entry) for entry in entries])
    found = map(bytes, _decode_array(migrate(array)))
    return [NONE_VALUE if entry == _NIL else entry for entry in found]
