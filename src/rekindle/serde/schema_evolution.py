"""How values that were stored under one schema are read under another: Avro's rules for a changed schema. Pure.

Allowed are fields added with a default, removed or in another order, numbers and enums that became wider, plain types
that became optional, and names that have an alias. All else raises SchemaChangeError with the path to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from rekindle.serde.record_evolution import record_conversion, row_conversion
from rekindle.serde.schema_changes import Conversion, SchemaChangeError, check_class_name
from rekindle.serde.type_schema import COLLECTIONS, RECORDS, SCALARS, TypeSchema

_INTS: Final = ("Byte", "Short", "Integer", "Long", "BigInteger")
_FLOATS: Final = ("Float", "Double")
#: Kinds of the same values, and kinds that hold all values of another one: their bytes stay as they are.
_SAME: Final = (
    {"Date", "LocalDate"},
    {"Time", "LocalTime"},
    {"Timestamp", "LocalDateTime"},
    {"Bytes", "ByteArray", "MemoryView"},
)
_WIDENED: Final = {("Char", "String"), ("Float", "Double")}
_SETS: Final = frozenset({"Set", "FrozenSet"})


def conversion(old: TypeSchema, new: TypeSchema) -> Conversion:
    """The conversion of values from the old to the new schema; None if the bytes stay as they are.

    >>> to_float = conversion(TypeSchema("Integer"), TypeSchema("Double"))
    >>> to_float(3)
    3.0
    >>> conversion(TypeSchema("Integer"), TypeSchema("Long")) is None
    True

    :raises SchemaChangeError: when there is none. The conversion raises ValueError for a value that would change.
    """
    # A state may always hold None, whatever its type.
    old, new = replace(old, nullable=False), replace(new, nullable=False)
    if old == new or _Resolution(converts_inner=False).between(old, new, "") is None:
        return None
    return _unless_none(_Resolution(converts_inner=True).between(old, new, ""))


class _Resolution:
    """Resolves one pair of schemas. A class may contain itself: `_open` are the pairs that are being resolved."""

    def __init__(self, converts_inner: bool) -> None:
        # False: an inner value of a class needs no conversion unless the outer one does. A first pass finds that out.
        self._converts_inner = converts_inner
        self._old: dict[str, TypeSchema] = {}
        self._new: dict[str, TypeSchema] = {}
        self._open: dict[tuple[str, str], list[Conversion]] = {}

    def between(self, old: TypeSchema, new: TypeSchema, path: str) -> Conversion:
        """The conversion of a part; see `Between`."""
        if old.nullable and not new.nullable:
            raise SchemaChangeError(path, old, new, "None may be among its values, so keep it optional.")
        convert = self._some(_resolved(old, self._old), _resolved(new, self._new), path)
        return _unless_none(convert) if old.nullable else convert

    def _some(self, old: TypeSchema, new: TypeSchema, path: str) -> Conversion:
        """The conversion of values that are not None."""
        if old.kind in SCALARS and new.kind in SCALARS:
            return _scalar(old, new, path)
        if old.kind in RECORDS and new.kind in RECORDS:
            return self._class(old, new, path)
        if "Union" in (old.kind, new.kind):
            return self._union(old, new, path)
        if old.kind in COLLECTIONS and new.kind in COLLECTIONS and (old.kind in _SETS) == (new.kind in _SETS):
            return _each(self.between(old.parts[0], new.parts[0], f"{path}[]"))
        if old.kind == "Literal" and new.kind in ("Literal", "String", "Long"):
            _check_literal(old, new, path)
            return None
        if old.kind != new.kind:
            raise _changed(path, old, new)
        match old.kind:
            case "Row":
                return row_conversion(old, new, path, self.between)
            case "Map":
                return self._map(old, new, path)
            case "Tuple" | "TaggedUnion":
                return self._tuple(old, new, path)
            case "Enum":
                check_class_name(old, new, path)
                _check_symbols(old, new, path)
                return None
        if old.name != new.name:
            raise _changed(path, old, new)
        return None

    def _class(self, old: TypeSchema, new: TypeSchema, path: str) -> Conversion:
        pair = old.name, new.name
        if pair in self._open:
            found = self._open[pair]
            return (lambda value: found[0](value) if found[0] else value) if self._converts_inner else None
        check_class_name(old, new, path)
        outer = self._old, self._new
        self._old, self._new = {**self._old, old.name: old}, {**self._new, new.name: new}
        cell: list[Conversion] = [None]
        self._open[pair] = cell
        cell[0] = record_conversion(old, new, path, self.between)
        del self._open[pair]
        self._old, self._new = outer
        return cell[0]

    def _map(self, old: TypeSchema, new: TypeSchema, path: str) -> Conversion:
        key = self.between(old.parts[0], new.parts[0], f"{path}{{key}}") or _same
        item = self.between(old.parts[1], new.parts[1], f"{path}{{value}}") or _same
        if key is _same and item is _same:
            return None
        return lambda value: {key(each): item(held) for each, held in value.items()}

    def _tuple(self, old: TypeSchema, new: TypeSchema, path: str) -> Conversion:
        if len(old.parts) != len(new.parts):
            raise SchemaChangeError(
                path, old, new, "a tuple keeps its length; a row, a NamedTuple or a dataclass can get more fields."
            )
        first = 1 if old.kind == "TaggedUnion" else 0
        pairs = enumerate(zip(old.parts, new.parts, strict=True))
        converts = [self.between(was, now, f"{path}[{index}]") for index, (was, now) in pairs]
        if not any(converts):
            return None
        steps = [_same] * first + [convert or _same for convert in converts]
        return lambda value: [convert(each) for convert, each in zip(steps, value, strict=True)]

    def _union(self, old: TypeSchema, new: TypeSchema, path: str) -> Conversion:
        """Every old alternative must be a new one; those that change must be Structs with tags, to tell them apart."""
        alternatives = old.parts if old.kind == "Union" else (old,)
        converts = [(each, self._alternative(each, new, path)) for each in alternatives]
        changed = [(each, convert) for each, convert in converts if convert is not None]
        if not changed:
            return None
        if old.kind != "Union":
            return changed[0][1]
        by_tag: dict[str | int, Callable[[Any], Any]] = {}
        for each, convert in changed:
            if each.tag is None:
                raise SchemaChangeError(path, old, new, "alternatives of a union change only as Structs with tags.")
            by_tag[each.tag[1]] = convert
        tag_field = next(each.tag[0] for each, _ in changed if each.tag is not None)
        return lambda value: by_tag.get(_tag_of(value, tag_field), _same)(value)

    def _alternative(self, old: TypeSchema, new: TypeSchema, path: str) -> Conversion:
        candidates = new.parts if new.kind == "Union" else (new,)
        if old in candidates:
            return None
        # First those of the same name and kind: an int must not become a float where there is a wider int.
        for candidate in sorted(candidates, key=lambda each: (each.name != old.name, each.kind != old.kind)):
            try:
                return self.between(old, replace(candidate, nullable=True), path)
            except SchemaChangeError:
                continue
        raise _changed(path, old, new)


def _resolved(schema: TypeSchema, classes: dict[str, TypeSchema]) -> TypeSchema:
    return classes.get(schema.name, schema) if schema.kind == "Ref" else schema


def _scalar(old: TypeSchema, new: TypeSchema, path: str) -> Conversion:
    was, now = old.kind, new.kind
    if was == now or (was, now) in _WIDENED or any(was in group and now in group for group in _SAME):
        return None
    if was in _INTS and now in _INTS and _INTS.index(was) < _INTS.index(now):
        return None
    if was in _INTS[:-1] and now in _FLOATS:
        return _exact_float
    if was in _INTS and now == "BigDecimal":
        return lambda value: str(int(value, 16) if isinstance(value, str) else value)
    if was in _INTS + _FLOATS and now in _INTS + _FLOATS:
        raise SchemaChangeError(path, old, new, "numbers can only become wider.")
    raise _changed(path, old, new)


def _exact_float(value: int) -> float:
    if int(converted := float(value)) != value:
        raise ValueError(f"{value} cannot become a float without a loss")
    return converted


def _check_symbols(old: TypeSchema, new: TypeSchema, path: str) -> None:
    """Refuse an enum or literal that lacks a former value: some state may hold it."""
    values = {value for _, value in new.symbols}
    gone = [name for name, value in old.symbols if value not in values]
    if gone:
        raise SchemaChangeError(path, old, new, f"it has no {gone[0]} any more, which may be among the values.")


def _check_literal(old: TypeSchema, new: TypeSchema, path: str) -> None:
    if new.kind == "Literal":
        _check_symbols(old, new, path)
    elif not all(isinstance(value, str) is (new.kind == "String") for _, value in old.symbols):
        raise _changed(path, old, new)


def _unless_none(convert: Conversion) -> Conversion:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _each(convert: Conversion) -> Conversion:
    return None if convert is None else lambda values: [convert(value) for value in values]


def _tag_of(value: Any, tag_field: str) -> Any:
    if isinstance(value, dict):
        return value.get(tag_field)
    return value[0] if isinstance(value, Sequence) and not isinstance(value, str | bytes) and value else None


def _changed(path: str, old: TypeSchema, new: TypeSchema) -> SchemaChangeError:
    return SchemaChangeError(path, old, new, "declare the former type, or give the new one another name.")


def _same(value: Any) -> Any:
    return value
