"""How stored records and rows are read under a changed schema: field by field, by name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from rekindle.serde.schema_changes import Between, Conversion, SchemaChangeError, field_path
from rekindle.serde.type_schema import FieldSchema, TypeSchema

_decode = msgspec.msgpack.decode


class _Step(NamedTuple):
    """Where the value of a new field comes from."""

    field: FieldSchema
    #: The stored field; None: there is none.
    source: FieldSchema | None
    convert: Conversion = None

    def moved(self, stored: dict[str, Any]) -> tuple[bool, Any]:
        """Whether the new record has a value of its own here, and the value."""
        if self.source is None:
            return False, None
        if self.source.name in stored:
            value = stored[self.source.name]
        elif self.source.omitted is not None:
            value = _decode(self.source.omitted)
        else:
            return False, None
        return True, value if self.convert is None else self.convert(value)


def record_conversion(old: TypeSchema, new: TypeSchema, path: str, between: Between) -> Conversion:
    """The conversion of a dataclass, Struct, NamedTuple or TypedDict into any of them."""
    steps = [_step(old, new, each, path, between) for each in new.fields]
    if _keeps_bytes(old, new, steps):
        return None
    read = _fields_reader(old)
    write = _array_writer(new, steps) if new.positional else _map_writer(new, steps)
    return lambda value: write(read(value))


def _step(old: TypeSchema, new: TypeSchema, field: FieldSchema, path: str, between: Between) -> _Step:
    inner = field_path(path, field.name)
    source = _source(old, field)
    if source is None:
        if not field.optional:
            raise SchemaChangeError(
                path, old, new, f"it has a new field '{inner}' of {field.type} without a default, so give it one."
            )
        return _Step(field, None)
    if old.kind == "TypedDict" and source.optional and not field.optional:
        raise SchemaChangeError(inner, source.type, field.type, "it may be missing in stored values.")
    return _Step(field, source, between(source.type, field.type, inner))


def _source(old: TypeSchema, field: FieldSchema) -> FieldSchema | None:
    by_name = {each.name: each for each in old.fields}
    return next((by_name[name] for name in (field.name, *field.aliases) if name in by_name), None)


def _keeps_bytes(old: TypeSchema, new: TypeSchema, steps: list[_Step]) -> bool:
    """Whether the new class reads the stored bytes as they are, without an unknown field among them."""
    if (old.positional, old.tag) != (new.positional, new.tag):
        return False
    found = [step for step in steps if step.source is not None]
    if len(found) < len(old.fields):
        return False
    for step in found:
        assert step.source is not None
        same = step.source.name == step.field.name and step.source.omitted == step.field.omitted
        if not same or step.convert is not None:
            return False
    if not new.positional:
        return True
    # Fields that come last may be missing: their defaults are taken.
    return [step.source for step in steps[: len(old.fields)]] == list(old.fields)


def dropped_fields(old: TypeSchema, new: TypeSchema, path: str = "") -> Iterator[str]:
    """The paths of stored fields that the new schema does not have, under any name.

    >>> one, two = FieldSchema("a", TypeSchema("Long")), FieldSchema("b", TypeSchema("Long"))
    >>> list(dropped_fields(TypeSchema("Dataclass", fields=(one, two)), TypeSchema("Dataclass", fields=(two,))))
    ['a']
    """
    for was, now in zip(old.parts, new.parts, strict=False):
        yield from dropped_fields(was, now, f"{path}[]")
    if old.kind == "Row" and (old.positional or new.positional):
        sources: list[FieldSchema | None] = list(old.fields)
    else:
        sources = [_source(old, each) for each in new.fields]
    for source, field in zip(sources, new.fields, strict=False):
        if source is not None:
            yield from dropped_fields(source.type, field.type, field_path(path, source.name))
    yield from (field_path(path, each.name) for each in old.fields if each not in sources)


def _map_writer(new: TypeSchema, steps: list[_Step]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Fields without a stored value are left out: the class then takes their defaults."""
    tag = {} if new.tag is None else dict([new.tag])

    def write(stored: dict[str, Any]) -> dict[str, Any]:
        written: dict[str, Any] = dict(tag)
        for step in steps:
            given, value = step.moved(stored)
            if given:
                written[step.field.name] = value
        return written

    return write


def _array_writer(new: TypeSchema, steps: list[_Step]) -> Callable[[dict[str, Any]], list[Any]]:
    """The last fields are left out if they have no stored value; the default of one in between is written."""
    tag = [] if new.tag is None else [new.tag[1]]

    def write(stored: dict[str, Any]) -> list[Any]:
        moved = [step.moved(stored) for step in steps]
        while moved and not moved[-1][0]:
            moved.pop()
        filled = [value if given else _default(step.field) for step, (given, value) in zip(steps, moved, strict=False)]
        return tag + filled

    return write


def _default(field: FieldSchema) -> Any:
    return None if field.make_default is None else _decode(field.make_default())


def row_conversion(old: TypeSchema, new: TypeSchema, path: str, between: Between) -> Conversion:
    """The conversion of rows: by name, or by position if either type has no names. A new field is None."""
    if old.positional or new.positional:
        if len(old.fields) != len(new.fields):
            raise SchemaChangeError(path, old, new, "only rows with field names can get or lose fields.")
        sources: list[FieldSchema | None] = list(old.fields)
    else:
        sources = [_source(old, each) for each in new.fields]
    steps = [
        _Step(field, source, None if source is None else between(source.type, field.type, field_path(path, field.name)))
        for field, source in zip(new.fields, sources, strict=True)
    ]
    unchanged = sources == list(old.fields) and not any(step.convert for step in steps)
    if unchanged:
        return None
    read = _fields_reader(old)

    def convert(value: list[Any]) -> list[Any]:
        stored = read(value)
        return [value[0], *(step.moved(stored)[1] for step in steps)]

    return convert


def _fields_reader(schema: TypeSchema) -> Callable[[Any], dict[str, Any]]:
    """The reader of the fields of a stored record or row, by name; their values stay as msgpack carries them."""
    names = [each.name for each in schema.fields]
    if schema.kind == "Row":
        return lambda wired: dict(zip(names, wired[1:], strict=True))
    if schema.positional:
        start = 0 if schema.tag is None else 1
        # A Struct that older code wrote may be shorter: its last fields have defaults.
        return lambda wired: dict(zip(names, wired[start:], strict=False))
    return dict
