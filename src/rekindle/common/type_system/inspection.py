"""Inspects type hints with msgspec: whether it restores values unchanged, and the hint's canonical form."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import msgspec.inspect as mi


class Inspection(NamedTuple):
    """The result of inspecting a type hint."""

    name: str
    fingerprint: str
    pickle_reason: str | None


def inspect_hint(hint: Any) -> Inspection:
    """Inspect a type hint; the calling type keeps the result.

    >>> inspect_hint(list[int])
    Inspection(name='List<Long>', fingerprint='List<Long>', pickle_reason=None)
    >>> inspect_hint(list).pickle_reason
    'an element of it can be anything'
    """
    plain = getattr(hint, "__name__", str(hint))
    try:
        tree = mi.type_info(hint)
        msgspec.msgpack.Decoder(hint)
    except (TypeError, NameError, AttributeError) as error:
        return Inspection(plain, f"Pickled<{plain}>", str(error))
    reason = _loss(tree, "it", set())
    if reason is not None:
        return Inspection(plain, f"Pickled<{plain}>", reason)
    return Inspection(_canonical(tree, ", ", details=False), _canonical(tree, ",", details=True), None)


def is_custom_class(hint: Any) -> bool:
    """Whether this is a class of a kind that msgspec does not know."""
    try:
        return isinstance(mi.type_info(hint), mi.CustomType)
    except (TypeError, NameError, AttributeError):
        return False


def _loss(node: mi.Type, what: str, seen: set[int]) -> str | None:
    """A phrase for the first part that msgspec would not restore unchanged; None when it restores everything."""
    if id(node) in seen:
        return None
    seen.add(id(node))
    if isinstance(node, mi.AnyType | mi.RawType):
        return f"{what} can be anything"
    if isinstance(node, mi.CustomType | mi.ExtType):
        return f"{what} is a {getattr(node, 'cls', type(node)).__name__}, of which only pickle knows the fields"
    for part, child in _parts(node):
        named = part if what == "it" and part.startswith("field") else f"{part} of {what}"
        reason = _loss(child, what if isinstance(node, mi.Metadata) else named, seen)
        if reason is not None:
            return reason
    return None


def _parts(node: mi.Type) -> list[tuple[str, mi.Type]]:
    if isinstance(node, mi.Metadata):
        return [("it", node.type)]
    if isinstance(node, mi.UnionType):
        return [("an alternative", alternative) for alternative in node.types]
    if isinstance(node, mi.TupleType):
        return [(f"position {i}", item) for i, item in enumerate(node.item_types)]
    if isinstance(node, mi.DictType):
        return [("a key", node.key_type), ("a value", node.value_type)]
    if isinstance(node, mi.CollectionType):
        return [("an element", node.item_type)]
    if isinstance(node, _WITH_FIELDS):
        return [(f"field {field.name!r}", field.type) for field in node.fields]
    return []


_WITH_FIELDS = (mi.DataclassType, mi.StructType, mi.NamedTupleType, mi.TypedDictType)
_LEAVES: dict[type[mi.Type], str] = {
    mi.NoneType: "Null",
    mi.BoolType: "Boolean",
    mi.IntType: "Long",
    mi.FloatType: "Double",
    mi.StrType: "String",
    mi.BytesType: "PrimitiveArray<Byte>",
    mi.ByteArrayType: "ByteArray",
    mi.MemoryViewType: "MemoryView",
    mi.DateTimeType: "Timestamp",
    mi.DateType: "Date",
    mi.TimeType: "Time",
    mi.TimeDeltaType: "Duration",
    mi.UUIDType: "UUID",
    mi.DecimalType: "BigDecimal",
}
_COLLECTIONS: dict[type[mi.Type], str] = {mi.ListType: "List", mi.SetType: "Set", mi.FrozenSetType: "FrozenSet"}
_CLASS_KINDS: dict[type[mi.Type], str] = {
    mi.DataclassType: "Dataclass",
    mi.StructType: "Struct",
    mi.NamedTupleType: "NamedTuple",
    mi.TypedDictType: "TypedDict",
}


def _canonical(node: mi.Type, comma: str, details: bool, inside: tuple[type, ...] = ()) -> str:
    """The type as a string; with `details` also the fields of classes, so that the string changes with them."""

    def sub(child: mi.Type) -> str:
        return _canonical(child, comma, details, inside)

    kind = type(node)
    if kind in _LEAVES:
        return _LEAVES[kind]
    if isinstance(node, mi.Metadata):
        return sub(node.type)
    if isinstance(node, mi.UnionType):
        return "|".join(sorted(map(sub, node.types)))
    if isinstance(node, mi.TupleType):
        return f"Tuple<{comma.join(map(sub, node.item_types))}>"
    if isinstance(node, mi.VarTupleType):
        return f"Tuple<{sub(node.item_type)}...>"
    if isinstance(node, mi.DictType):
        return f"Map<{sub(node.key_type)}{comma}{sub(node.value_type)}>"
    if isinstance(node, mi.CollectionType):
        return f"{_COLLECTIONS[kind]}<{sub(node.item_type)}>"
    if isinstance(node, mi.LiteralType):
        return f"Literal<{comma.join(sorted(map(repr, node.values)))}>"
    if isinstance(node, mi.EnumType):
        members = f"{{{comma.join(node.cls.__members__)}}}" if details else ""
        return f"Enum<{node.cls.__qualname__}>{members}"
    assert isinstance(node, _WITH_FIELDS), node
    return _canonical_class(node, comma, details, inside)


def _canonical_class(node: Any, comma: str, details: bool, inside: tuple[type, ...]) -> str:
    name = f"{_CLASS_KINDS[type(node)]}<{node.cls.__qualname__.rpartition('<locals>.')[2]}>"
    if not details or node.cls in inside:
        return name
    fields = [
        f"{field.encode_name}:{_canonical(field.type, comma, details, (*inside, node.cls))}"
        f"{'' if field.required else '='}"
        for field in node.fields
    ]
    return f"{name}{{{comma.join(fields)}}}"
