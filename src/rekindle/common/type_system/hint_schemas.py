"""The schemas of type hints and classes, from what msgspec finds in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec
import msgspec.inspect as mi

from rekindle.common.type_system.aliases import aliases_of
from rekindle.serde.type_schema import FieldSchema, TypeSchema

_LEAVES: Final[dict[type[mi.Type], str]] = {
    mi.NoneType: "Null",
    mi.BoolType: "Boolean",
    mi.IntType: "Long",
    mi.FloatType: "Double",
    mi.StrType: "String",
    mi.BytesType: "Bytes",
    mi.ByteArrayType: "ByteArray",
    mi.MemoryViewType: "MemoryView",
    mi.DateTimeType: "Timestamp",
    mi.DateType: "Date",
    mi.TimeType: "Time",
    mi.TimeDeltaType: "Duration",
    mi.UUIDType: "UUID",
    mi.DecimalType: "BigDecimal",
}
_COLLECTIONS: Final[dict[type[mi.Type], str]] = {
    mi.ListType: "List",
    mi.SetType: "Set",
    mi.FrozenSetType: "FrozenSet",
    mi.VarTupleType: "VarTuple",
}
_CLASS_KINDS: Final[dict[type[mi.Type], str]] = {
    mi.DataclassType: "Dataclass",
    mi.StructType: "Struct",
    mi.NamedTupleType: "NamedTuple",
    mi.TypedDictType: "TypedDict",
}
_EMPTY: Final = (list, dict, set, frozenset, tuple, bytearray)
_encode = msgspec.msgpack.Encoder().encode


def schema_of_hint(hint: Any) -> TypeSchema:
    """The schema of a hint that msgspec restores unchanged.

    >>> schema_of_hint(dict[str, int | None])
    Map<String, Long?>
    """
    return _schema(mi.type_info(hint), ())


def class_name_of(cls: type) -> str:
    """The name of a class without its module, and without the function that it is defined in.

    >>> class_name_of(msgspec.msgpack.Ext)
    'Ext'
    """
    return cls.__qualname__.rpartition("<locals>.")[2]


def _schema(node: mi.Type, inside: tuple[type, ...]) -> TypeSchema:
    def sub(child: mi.Type) -> TypeSchema:
        return _schema(child, inside)

    kind = type(node)
    if kind in _LEAVES:
        return TypeSchema(_LEAVES[kind])
    if isinstance(node, mi.Metadata):
        return sub(node.type)
    if isinstance(node, mi.UnionType):
        return _union([sub(each) for each in node.types])
    if isinstance(node, mi.TupleType):
        return TypeSchema("Tuple", parts=tuple(map(sub, node.item_types)))
    if isinstance(node, mi.DictType):
        return TypeSchema("Map", parts=(sub(node.key_type), sub(node.value_type)))
    if isinstance(node, mi.CollectionType):
        return TypeSchema(_COLLECTIONS[kind], parts=(sub(node.item_type),))
    if isinstance(node, mi.LiteralType):
        symbols = sorted((str(value), value) for value in node.values if value is not None)
        return TypeSchema("Literal", nullable=None in node.values, symbols=tuple(symbols))
    if isinstance(node, mi.EnumType):
        return _enum(node.cls)
    return _record(node, inside)


def _union(alternatives: list[TypeSchema]) -> TypeSchema:
    """Alternatives in a canonical order; None is no alternative but makes the type nullable."""
    given = [each for each in alternatives if each.kind != "Null"]
    nullable = len(given) < len(alternatives)
    if len(given) == 1:
        return replace(given[0], nullable=nullable or given[0].nullable)
    return TypeSchema("Union", nullable=nullable, parts=tuple(sorted(given, key=str)))


def _enum(cls: Any) -> TypeSchema:
    symbols = tuple((name, member.value) for name, member in cls.__members__.items())
    return TypeSchema("Enum", class_name_of(cls), symbols=symbols, aliases=aliases_of(cls).names)


def _record(node: Any, inside: tuple[type, ...]) -> TypeSchema:
    cls = node.cls
    name, aliases = class_name_of(cls), aliases_of(cls)
    if cls in inside:
        return TypeSchema("Ref", name)
    omits = isinstance(node, mi.StructType) and cls.__struct_config__.omit_defaults
    fields = tuple(
        FieldSchema(
            field.encode_name,
            _schema(field.type, (*inside, cls)),
            optional=not field.required,
            omitted=_default(field)() if omits and _may_be_omitted(field) else None,
            aliases=aliases.fields.get(field.name, ()),
            make_default=None if field.required else _default(field),
        )
        for field in node.fields
    )
    positional = isinstance(node, mi.NamedTupleType) or getattr(node, "array_like", False)
    tag = (node.tag_field, node.tag) if getattr(node, "tag", None) is not None else None
    return TypeSchema(
        _CLASS_KINDS[type(node)], name, fields=fields, positional=positional, tag=tag, aliases=aliases.names
    )


def _may_be_omitted(field: mi.Field) -> bool:
    """Whether msgspec leaves the field out when it has its default: a constant, or a new empty collection."""
    return field.default is not msgspec.NODEFAULT or field.default_factory in _EMPTY


def _default(field: mi.Field) -> Callable[[], bytes]:
    """The default of a field, in msgpack; nil for a key that a TypedDict need not have."""

    def encoded() -> bytes:
        if field.default is not msgspec.NODEFAULT:
            return _encode(field.default)
        if field.default_factory is not msgspec.NODEFAULT:
            return _encode(field.default_factory())
        return _encode(None)

    return encoded
