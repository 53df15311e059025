"""The schema of a type as it lies in a checkpoint: enough to read stored values without the program that wrote them.

A schema is a tree. On disk a node is the name of its kind, `"Long"`, with a question mark where None is allowed,
`"Long?"`; a node with more is a list: the kind, its parts, and its other attributes by name.

    ["Dataclass", [], {"name": "Order", "fields": [["id", "Long"], ["note", "String?", {"optional": true}]]}]

The kinds, and the msgpack form of their values:

- numbers, strings, times and the like: `SCALARS`; one msgpack value each, as msgspec writes it
- `List`, `ObjectArray`, `BasicArray`, `PrimitiveArray`, `Set`, `FrozenSet`, `VarTuple` of one part, `Tuple` of many:
  an array; `Map` of two parts: a map
- `Row`: an array that begins with the row's kind; that of a row type without names is positional
- `Dataclass`, `Struct`, `NamedTuple`, `TypedDict`: a map by field name, or an array if it is positional; a Struct's tag
  is an entry of the map, or the first element
- `Enum`, `Literal`: the value of a symbol
- `Union`: a value of any part; `TaggedUnion`: an array of a bool, which says whether it is a value of the first part,
  and one element per part
- `Ref`: the class of that name in which the node lies
- `Tagged`: any value, by the tagged codec; classes that it does not know are pickled in it
- `Serializer`: the bytes that a user's serializer of this name and version wrote
- `Other`: a type of the user's own, known by its fingerprint only
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from rekindle.errors import SerializationError

#: Kinds without parts whose values are single msgpack values.
# fmt: off
SCALARS: Final = frozenset({
    "Null", "Boolean", "Byte", "Short", "Integer", "Long", "BigInteger", "Float", "Double", "Char", "String",
    "BigDecimal", "Bytes", "ByteArray", "MemoryView", "Timestamp", "Date", "Time", "LocalDate", "LocalTime",
    "LocalDateTime", "Duration", "UUID", "Instant",
})
# fmt: on
#: Kinds with named fields.
RECORDS: Final = frozenset({"Dataclass", "Struct", "NamedTuple", "TypedDict"})
#: Kinds that are arrays of any number of equal parts.
COLLECTIONS: Final = frozenset(
    {"List", "ObjectArray", "BasicArray", "PrimitiveArray", "Set", "FrozenSet", "VarTuple"},
)
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.decode
_T = TypeVar("_T")


@dataclass(frozen=True)
class FieldSchema:
    """A field of a record or of a row."""

    name: str
    type: TypeSchema
    #: Whether the class has a default for it.
    optional: bool = False
    #: The value, in msgpack, of a field that was left out when it was written; None: no field is left out.
    omitted: bytes | None = None
    #: Of the program's own types only, not on disk: former names, and the default in msgpack.
    aliases: tuple[str, ...] = field(default=(), compare=False)
    make_default: Callable[[], bytes] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class TypeSchema:
    """The schema of a type.

    >>> TypeSchema("Map", parts=(TypeSchema("String"), TypeSchema("Long", nullable=True)))
    Map<String, Long?>
    """

    kind: str
    #: Of a class, an enum, a reference, a serializer: its name without its module.
    name: str = ""
    nullable: bool = False
    parts: tuple[TypeSchema, ...] = ()
    fields: tuple[FieldSchema, ...] = ()
    #: Fields are found by position: a row type without names, a NamedTuple, a Struct that is written as an array.
    positional: bool = False
    #: Name and value of a Struct's tag.
    tag: tuple[str, str | int] | None = None
    #: The members of an enum or literal: name and value.
    symbols: tuple[tuple[str, str | int], ...] = ()
    #: The version of a serializer.
    version: int = 0
    #: Of the program's own types only, not on disk: former names of the class.
    aliases: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return self._shown() + "?" * self.nullable

    def _shown(self) -> str:
        match self.kind:
            case "Union":
                return "|".join(map(str, self.parts))
            case "Serializer":
                return f"{self.name} (version {self.version})"
            case "Ref" | "Other":
                return self.name
            case "Tagged":
                return "Any"
            case "Row" if self.positional:
                return f"Row<{', '.join(str(each.type) for each in self.fields)}>"
            case "Row":
                return f"Row<{', '.join(f'{each.name}: {each.type}' for each in self.fields)}>"
            case "Literal":
                return f"Literal<{', '.join(repr(value) for _, value in self.symbols)}>"
        inner = self.name or ", ".join(map(str, self.parts))
        return f"{self.kind}<{inner}>" if inner else self.kind


@dataclass(frozen=True)
class StateSchema:
    """The schemas of one state: of its values (elements, accumulators, values of a map), map keys, and row keys.

    >>> schema = StateSchema(TypeSchema("Long"), keys=TypeSchema("String"))
    >>> decode_state_schema(encode_state_schema(schema)) == schema
    True
    """

    values: TypeSchema
    #: The keys of a map; None in other states.
    fields: TypeSchema | None = None
    #: The type of the key; with windows a tuple of the key and the window. None in operator state.
    keys: TypeSchema | None = None
    #: Whether each value has the time of its last access (time to live): then the array of values in a part of keyed
    #: state is an array of two arrays, the times in ms and the values.
    timed: bool = False


def encode_schema(schema: TypeSchema) -> bytes:
    """Encode the schema of a type."""
    return _encode(_plain(schema))


@lru_cache(maxsize=4096)
def decode_schema(data: bytes) -> TypeSchema:
    """Decode the bytes of `encode_schema`; the results are kept."""
    return _checked(data, _type_of)


def encode_state_schema(schema: StateSchema) -> bytes:
    """Encode the schema of a state."""
    fields = None if schema.fields is None else _plain(schema.fields)
    keys = None if schema.keys is None else _plain(schema.keys)
    return _encode([_plain(schema.values), fields, keys, schema.timed])


@lru_cache(maxsize=4096)
def decode_state_schema(data: bytes) -> StateSchema:
    """Decode the bytes of `encode_state_schema`; the results are kept."""
    return _checked(data, _state_of)


def _plain(schema: TypeSchema) -> Any:
    kind = schema.kind + "?" * schema.nullable
    attributes: dict[str, Any] = {
        "name": schema.name,
        "fields": [_plain_field(each) for each in schema.fields],
        "positional": schema.positional,
        "tag": schema.tag,
        "symbols": schema.symbols,
        "version": schema.version,
    }
    attributes = {name: value for name, value in attributes.items() if value}
    if attributes:
        return [kind, [_plain(part) for part in schema.parts], attributes]
    return [kind, [_plain(part) for part in schema.parts]] if schema.parts else kind


def _plain_field(each: FieldSchema) -> list[Any]:
    attributes = {"optional": each.optional, "omitted": each.omitted}
    given = {name: value for name, value in attributes.items() if value}
    return [each.name, _plain(each.type), given] if given else [each.name, _plain(each.type)]


def _type_of(plain: Any) -> TypeSchema:
    kind, parts, attributes = (plain, (), {}) if isinstance(plain, str) else (*plain, {})[:3]
    tag = attributes.get("tag")
    return TypeSchema(
        kind=kind.removesuffix("?"),
        name=attributes.get("name", ""),
        nullable=kind.endswith("?"),
        parts=tuple(map(_type_of, parts)),
        fields=tuple(map(_field_of, attributes.get("fields", ()))),
        positional=attributes.get("positional", False),
        tag=None if tag is None else (tag[0], tag[1]),
        symbols=tuple((name, value) for name, value in attributes.get("symbols", ())),
        version=attributes.get("version", 0),
    )


def _field_of(plain: list[Any]) -> FieldSchema:
    name, type_of_field, attributes = (*plain, {})[:3]
    return FieldSchema(name, _type_of(type_of_field), attributes.get("optional", False), attributes.get("omitted"))


def _state_of(plain: Any) -> StateSchema:
    values, fields, keys, timed = plain[:4]
    return StateSchema(
        _type_of(values),
        None if fields is None else _type_of(fields),
        None if keys is None else _type_of(keys),
        bool(timed),
    )


def _checked(data: bytes, build: Callable[[Any], _T]) -> _T:
    try:
        return build(_decode(data))
    except (msgspec.DecodeError, TypeError, ValueError, AttributeError, LookupError, RecursionError) as error:
        raise SerializationError(f"The schema of a stored type is damaged: {error}.") from error
