"""Shapes: the types of stored values, as columns of a table show them, with the form that each has in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Plain(StrEnum):
    """Types without parts."""

    BOOLEAN = "boolean"
    BYTE = "byte"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    BIG_INT = "big int"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    #: A moment without a time zone.
    LOCAL_TIMESTAMP = "local timestamp"
    INSTANT = "instant"
    DURATION = "duration"
    UUID = "uuid"
    #: A member of an Enum whose class this process need not know, by its name.
    MEMBER = "member"


class Form(StrEnum):
    """The stored form of fields, elements or entries."""

    #: msgpack's own maps and arrays, of declared types.
    MAP = "map"
    ARRAY = "array"
    #: (kind, field, ...): rows of declared types.
    ROW = "row"
    #: Values of undeclared types, in the tagged encoding.
    TUPLE = "tuple"
    SET = "set"
    FROZENSET = "frozenset"
    DICT = "dict"
    INSTANCE = "instance"
    TAGGED_ROW = "tagged row"


@dataclass(frozen=True)
class PlainShape:
    """A value without parts; `class_name` is that of an Enum, `symbols` are the values of its members."""

    kind: Plain
    class_name: str = ""
    symbols: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class FieldsShape:
    """A value with fields: a row, a tuple, an instance."""

    names: tuple[str, ...]
    parts: tuple[Shape, ...]
    form: Form
    class_name: str = ""
    #: Name and value of a Struct's tag.
    tag: tuple[str, str | int] | None = None
    #: Fields that are not stored if they have this value, in msgpack.
    defaults: tuple[tuple[str, bytes], ...] = ()
    #: Fields that cannot be None: of these, `optional` ones have a default in the program, `required` ones have none.
    optional: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def fields(self) -> Iterator[tuple[str, Shape]]:
        """Name and shape of each field."""
        return zip(self.names, self.parts, strict=True)


@dataclass(frozen=True)
class ElementsShape:
    """A list, an array, a set, or a tuple of any length."""

    part: Shape
    form: Form


@dataclass(frozen=True)
class EntriesShape:
    """A dict of one kind of keys and one kind of values."""

    key: Shape
    value: Shape
    form: Form


@dataclass(frozen=True)
class PickledShape:
    """A pickled value, shown as its bytes."""


@dataclass(frozen=True)
class JsonShape:
    """Values of several types, shown as JSON."""


@dataclass(frozen=True)
class UnknownShape:
    """A value whose type the checkpoint does not tell; `settle` looks at values."""


Shape = PlainShape | FieldsShape | ElementsShape | EntriesShape | PickledShape | JsonShape | UnknownShape

STRING = PlainShape(Plain.STRING)
LONG = PlainShape(Plain.LONG)
INT = PlainShape(Plain.INT)
BOOLEAN = PlainShape(Plain.BOOLEAN)
INSTANT = PlainShape(Plain.INSTANT)
BYTES = PlainShape(Plain.BYTES)
UNKNOWN = UnknownShape()


def described(shape: Shape) -> str:
    """The shape as text, for people.

    >>> described(FieldsShape(("id", "tags"), (LONG, ElementsShape(STRING, Form.ARRAY)), Form.MAP))
    'fields<id: long, tags: list<string>>'
    """
    match shape:
        case PlainShape():
            return str(shape.kind)
        case FieldsShape():
            return f"fields<{', '.join(f'{name}: {described(part)}' for name, part in shape.fields())}>"
        case ElementsShape():
            return f"list<{described(shape.part)}>"
        case EntriesShape():
            return f"map<{described(shape.key)}, {described(shape.value)}>"
        case PickledShape():
            return "pickled"
        case JsonShape():
            return "json"
    return "unknown"


def fields_before(shape: FieldsShape, form: Form) -> int:
    """The number of elements of an array before the first field: a row's kind, a Struct's tag."""
    if form is Form.ARRAY:
        return 0 if shape.tag is None else 1
    return int(form is Form.ROW)
