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
#: Declared type, value, its schema as text.
CASES: list[tuple[Any, Any, str]] = [
    (Types.INT(), 3, "Integer"),
    (Types.BIG_INT(), 2**80, "BigInteger"),
    (Types.DOUBLE(), 3, "Double"),
    (Types.BIG_DEC(), Decimal("1.50"), "BigDecimal"),
    (Types.INSTANT(), Instant(5, 6), "Instant"),
    (Types.SQL_TIMESTAMP(), NOW, "Timestamp"),
    (Types.SQL_DATE(), NOW.date(), "Date"),
    (Types.SQL_TIME(), NOW.time(), "Time"),
    (bytes, b"\x00", "Bytes"),
    (Types.LIST(Types.SHORT()), [1, None], "List<Short?>"),
    (Types.OBJECT_ARRAY(Types.STRING()), ["a"], "ObjectArray<String?>"),
    (Types.MAP(Types.STRING(), Types.BIG_DEC()), {"a": Decimal(1)}, "Map<String?, BigDecimal?>"),
    (tuple[str, int], ("a", 1), "Tuple<String?, Long?>"),
    (dict[tuple[int, int], str], {(1, 2): "a"}, "Map<Tuple<Long?, Long?>?, String?>"),
    (Types.ROW([str, int]), ("a", 1), "Row<String?, Long?>"),
    (Types.ROW_NAMED(["k", "n"], [str, int]), ("a", 1), "Row<k: String?, n: Long?>"),
    (set[uuid.UUID], {ID}, "Set<UUID>"),
    (tuple[int, ...], (1, 2), "VarTuple<Long>"),
    (dt.timedelta, dt.timedelta(hours=1), "Duration"),
    (Literal["a", "b"], "a", "Literal<'a', 'b'>"),
    (int | str | None, "x", "Long|String"),
    (Colour, Colour.BLUE, "Enum<Colour>"),
    (Pair, Pair(1, "x"), "NamedTuple<Pair>"),
    (Point, Point(1.0, 2.0), "Struct<Point>"),
    (Sparse, Sparse(), "Struct<Sparse>"),
    (Settings, {"depth": 1}, "TypedDict<Settings>"),
    (Circle | Square, Circle(2.0), "Struct<Circle>|Struct<Square>"),
    (Order, Order(1, {"a": Item("x", Decimal(2))}), "Dataclass<Order>"),
    (Node, Node(1, Node(2)), "Dataclass<Node>"),
    (TaggedUnionTypeInfo(str, int), TaggedUnion(False, None, 3), "TaggedUnion<String?, Long?>"),
    (None, {"a": (1, Decimal(2))}, "Any"),
]


@pytest.mark.parametrize(("declared", "value", "text"), CASES, ids=[case[2] for case in CASES])
class TestEveryType:
    def test_its_schema_comes_back_from_disk(self, declared, value, text):
        schema = infer_type_info(declared).schema()
        assert str(schema).removesuffix("?") == text
        assert decode_schema(encode_schema(schema)) == schema


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
