"""Schemas: what they say of each type, how they lie on disk, and how values are read by them alone."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest

from rekindle.common import Instant, Types
from rekindle.common.typeinfo import infer_type_info
from rekindle.datastream.streams.tagged_union import TaggedUnion, TaggedUnionTypeInfo
from rekindle.errors import SerializationError
from rekindle.serde import value_codec_for
from rekindle.serde.plain_values import plain_value, plain_values
from rekindle.serde.type_schema import (
    StateSchema,
    TypeSchema,
    decode_schema,
    decode_state_schema,
    encode_schema,
    encode_state_schema,
)


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


@dataclass
class Item:
    sku: str
    price: Decimal
    tags: list[str] = field(default_factory=list)


@dataclass
class Order:
    id: int
    items: dict[str, Item]
    colour: Colour = Colour.RED
    note: str | None = None


@dataclass
class Node:
    value: int
    next: Node | None = None


class Point(msgspec.Struct, array_like=True, tag="point"):
    x: float
    y: float = 0.0


class Sparse(msgspec.Struct, omit_defaults=True):
    a: int = 7
    b: list[int] = []


class Circle(msgspec.Struct, tag="circle"):
    radius: float


class Square(msgspec.Struct, tag="square"):
    side: float


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Settings(TypedDict, total=False):
    depth: int


NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678)
ID = uuid.UUID(int=5)
#: Declared type, value, its schema as text, the value as it is read without the program.
CASES: list[tuple[Any, Any, str, Any]] = [
    (Types.INT(), 3, "Integer", 3),
    (Types.BIG_INT(), 2**80, "BigInteger", 2**80),
    (Types.DOUBLE(), 3, "Double", 3.0),
    (Types.BIG_DEC(), Decimal("1.50"), "BigDecimal", Decimal("1.50")),
    (Types.INSTANT(), Instant(5, 6), "Instant", [5, 6]),
    (Types.SQL_TIMESTAMP(), NOW, "Timestamp", NOW),
    (Types.SQL_DATE(), NOW.date(), "Date", NOW.date()),
    (Types.SQL_TIME(), NOW.time(), "Time", NOW.time()),
    (bytes, b"\x00", "Bytes", b"\x00"),
    (Types.LIST(Types.SHORT()), [1, None], "List<Short?>", [1, None]),
    (Types.OBJECT_ARRAY(Types.STRING()), ["a"], "ObjectArray<String?>", ["a"]),
    (Types.MAP(Types.STRING(), Types.BIG_DEC()), {"a": Decimal(1)}, "Map<String?, BigDecimal?>", {"a": Decimal(1)}),
    (tuple[str, int], ("a", 1), "Tuple<String?, Long?>", ("a", 1)),
    (dict[tuple[int, int], str], {(1, 2): "a"}, "Map<Tuple<Long?, Long?>?, String?>", {(1, 2): "a"}),
    (Types.ROW([str, int]), ("a", 1), "Row<String?, Long?>", {"f0": "a", "f1": 1}),
    (Types.ROW_NAMED(["k", "n"], [str, int]), ("a", 1), "Row<k: String?, n: Long?>", {"k": "a", "n": 1}),
    (set[uuid.UUID], {ID}, "Set<UUID>", [ID]),
    (tuple[int, ...], (1, 2), "VarTuple<Long>", [1, 2]),
    (dt.timedelta, dt.timedelta(hours=1), "Duration", dt.timedelta(hours=1)),
    (Literal["a", "b"], "a", "Literal<'a', 'b'>", "a"),
    (int | str | None, "x", "Long|String", "x"),
    (Colour, Colour.BLUE, "Enum<Colour>", "b"),
    (Pair, Pair(1, "x"), "NamedTuple<Pair>", {"left": 1, "right": "x"}),
    (Point, Point(1.0, 2.0), "Struct<Point>", {"x": 1.0, "y": 2.0}),
    (Sparse, Sparse(), "Struct<Sparse>", {"a": 7, "b": []}),
    (Settings, {"depth": 1}, "TypedDict<Settings>", {"depth": 1}),
    (Circle | Square, Circle(2.0), "Struct<Circle>|Struct<Square>", {"type": "circle", "radius": 2.0}),
    (
        Order,
        Order(1, {"a": Item("x", Decimal(2))}),
        "Dataclass<Order>",
        {"id": 1, "items": {"a": {"sku": "x", "price": Decimal(2), "tags": []}}, "colour": "r", "note": None},
    ),
    (Node, Node(1, Node(2)), "Dataclass<Node>", {"value": 1, "next": {"value": 2, "next": None}}),
    (TaggedUnionTypeInfo(str, int), TaggedUnion(False, None, 3), "TaggedUnion<String?, Long?>", 3),
    (None, {"a": (1, Decimal(2))}, "Any", {"a": (1, Decimal(2))}),
]


@pytest.mark.parametrize(("declared", "value", "text", "plain"), CASES, ids=[case[2] for case in CASES])
class TestEveryType:
    def test_its_schema_comes_back_from_disk(self, declared, value, text, plain):
        schema = infer_type_info(declared).schema()
        assert str(schema).removesuffix("?") == text
        assert decode_schema(encode_schema(schema)) == schema

    def test_its_values_are_read_without_the_program(self, declared, value, text, plain):
        codec = value_codec_for(infer_type_info(declared))
        schema = decode_schema(encode_schema(codec.schema))
        assert plain_values(schema, codec.encode_all([value, None])) == [plain, None]
        assert plain_value(schema, codec.encode(value)) == plain


def test_a_schema_names_fields_with_their_types_and_defaults():
    order = infer_type_info(Order).schema()
    assert [(each.name, str(each.type), each.optional) for each in order.fields] == [
        ("id", "Long", False),
        ("items", "Map<String, Dataclass<Item>>", False),
        ("colour", "Enum<Colour>", True),
        ("note", "String?", True),
    ]
    assert order.fields[2].type.symbols == (("RED", "r"), ("BLUE", "b"))


def test_a_class_inside_itself_is_a_reference():
    (_, following) = infer_type_info(Node).schema().fields
    assert following.type == TypeSchema("Ref", "Node", nullable=True)


def test_the_schema_of_a_state_comes_back_from_disk():
    schema = StateSchema(TypeSchema("Long"), TypeSchema("String"), TypeSchema("Tagged"), timed=True)
    assert decode_state_schema(encode_state_schema(schema)) == schema


def test_the_bytes_of_a_schema_are_a_format():
    """Checkpoints hold them: a change here must still read the old form."""
    assert msgspec.msgpack.decode(encode_schema(infer_type_info(Item).schema())) == [
        "Dataclass",
        [],
        {
            "name": "Item",
            "fields": [["sku", "String"], ["price", "BigDecimal"], ["tags", ["List", ["String"]], {"optional": True}]],
        },
    ]


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93\x01", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({})])
def test_damaged_schemas_are_refused(data):
    with pytest.raises(SerializationError, match="schema of a stored type is damaged"):
        decode_schema(data)
    with pytest.raises(SerializationError, match="schema of a stored type is damaged"):
        decode_state_schema(data)


def test_pickled_values_are_not_unpickled_unasked():
    codec = value_codec_for(None, allow_pickle=True)
    data = codec.encode_all([Item("x", Decimal(1))])
    with pytest.raises(SerializationError, match="pickle"):
        plain_values(codec.schema, data)
    assert plain_values(codec.schema, data, lambda pickled: len(pickled) > 10) == [True]


def test_values_of_another_type_are_refused():
    with pytest.raises(SerializationError, match="not of their type List<BigDecimal>"):
        plain_values(TypeSchema("List", parts=(TypeSchema("BigDecimal"),)), msgspec.msgpack.encode([["x"]]))
