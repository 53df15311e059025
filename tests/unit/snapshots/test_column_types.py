"""The types of columns come from schemas or values; what a column shows is stored again unchanged."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple, TypedDict

import msgspec
import pytest

from rekindle.common import Instant, Row, Types
from rekindle.common.typeinfo import infer_type_info
from rekindle.errors import TypeMismatchError
from rekindle.runtime.state.spec import StateKind
from rekindle.serde import value_codec_for
from rekindle.serde.class_free_decoding import PickledValue, class_free_decoder
from rekindle.serde.tagged_codec import register_type
from rekindle.snapshots.column_values import python_key, to_column
from rekindle.snapshots.settle import settled
from rekindle.snapshots.shapes import UNKNOWN, described
from rekindle.snapshots.state_columns import digest_of
from rekindle.snapshots.stored_state import ClassFreeCodec, SavedState
from rekindle.snapshots.stored_types import UNTYPED, StateTypes, stored_type
from rekindle.snapshots.stored_values import from_column


class Status(enum.Enum):
    PAID = "paid"
    SENT = "sent"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Item:
    name: str
    price: Decimal
    note: str | None = None


@dataclass
class Order:
    id: int
    status: Status
    items: list[Item]
    tags: frozenset[str] = frozenset()


class Point(NamedTuple):
    x: float
    y: float


class Packed(msgspec.Struct, array_like=True):
    id: int
    at: dt.datetime


class Tagged(msgspec.Struct, tag="tagged", omit_defaults=True):
    id: int
    count: int = 7


@register_type
@dataclass
class Registered:
    name: str
    parts: tuple[int, ...]


class Sparse(msgspec.Struct, omit_defaults=True):
    a: int = 7
    b: list[int] = []


class Circle(msgspec.Struct, tag="circle"):
    radius: float


class Square(msgspec.Struct, tag="square"):
    side: float


class Depth(TypedDict, total=False):
    depth: int


@dataclass
class Node:
    value: int
    next: Node | None = None


NOON = dt.datetime(2024, 5, 1, 12, 0, 0, 5)
#: Declared type, a value of it, and what its column shows.
DECLARED = [
    (int, 7, 7),
    (str, "a", "a"),
    (bytes, b"\x00", b"\x00"),
    (Decimal, Decimal("1.50"), Decimal("1.50")),
    (dt.date, dt.date(2024, 5, 1), dt.date(2024, 5, 1)),
    (dt.time, dt.time(1, 2, 3), "01:02:03"),
    (dt.datetime, NOON, NOON),
    (dt.datetime, NOON.replace(tzinfo=dt.UTC), NOON.replace(tzinfo=dt.UTC)),
    (dt.timedelta, dt.timedelta(days=1, seconds=2), dt.timedelta(days=1, seconds=2)),
    (uuid.UUID, uuid.UUID(int=5), str(uuid.UUID(int=5))),
    (Types.INSTANT(), Instant(5, 7000), dt.datetime(1970, 1, 1, 0, 0, 5, 7, tzinfo=dt.UTC)),
    (Types.BIG_INT(), 2**80, Decimal(2**80)),
    (Status, Status.PAID, "paid"),
    (Level, Level.LOW, 1),
    (tuple[str, int], ("a", 1), {"f0": "a", "f1": 1}),
    (tuple[int, ...], (1, 2, 3), [1, 2, 3]),
    (dict[str, list[int]], {"a": [1]}, [("a", [1])]),
    (Types.ROW_NAMED(["id", "name"], [int, str]), Row(id=1, name="x"), {"id": 1, "name": "x"}),
    (Types.ROW([int, str]), Row(1, "x"), {"f0": 1, "f1": "x"}),
    (Point, Point(1.0, 2.5), {"x": 1.0, "y": 2.5}),
    (Packed, Packed(1, NOON), {"id": 1, "at": NOON}),
    (Tagged, Tagged(1), {"id": 1, "count": 7}),
    (Sparse, Sparse(), {"a": 7, "b": []}),
    (Circle | Square, Circle(2.0), {"type": "circle", "radius": 2.0}),
    (Depth, {"depth": 1}, {"depth": 1}),
    (Literal["a", "b"], "a", "a"),
    (int | str, "x", "x"),
    (set[uuid.UUID], {uuid.UUID(int=5)}, [str(uuid.UUID(int=5))]),
    (dict[tuple[int, int], str], {(1, 2): "a"}, [({"f0": 1, "f1": 2}, "a")]),
    (Types.LIST(Types.SHORT()), [1, None], [1, None]),
    (
        Order,
        Order(1, Status.SENT, [Item("pen", Decimal("2"))], frozenset({"new"})),
        {"id": 1, "status": "sent", "items": [{"name": "pen", "price": Decimal("2"), "note": None}], "tags": ["new"]},
    ),
]


@pytest.mark.parametrize(("hint", "value", "shown"), DECLARED, ids=lambda each: str(each)[:40])
class TestDeclared:
    def test_the_schema_in_the_checkpoint_is_enough_to_show_and_to_store_it(self, hint, value, shown):
        codec = value_codec_for(infer_type_info(hint))
        stored = stored_type(codec.schema)
        wire = ClassFreeCodec(stored).decode(codec.encode(value))
        shape = settled(stored.shape, [wire])
        column = to_column(shape)(wire)
        assert column == shown
        again = ClassFreeCodec(stored).encode(from_column(shape)(column))
        assert codec.decode(again) == value


#: A value without a declared type, and what its column shows.
UNDECLARED = [
    (5, 5),
    (2.5, 2.5),
    ("text", "text"),
    ((1, "a"), {"f0": 1, "f1": "a"}),
    ([1, 2], [1, 2]),
    ({"a": 1, "b": 2}, [("a", 1), ("b", 2)]),
    ({"id": 1, "name": "x"}, {"id": 1, "name": "x"}),
    ({1: 2}, [(1, 2)]),
    (Decimal("2.5"), Decimal("2.5")),
    (dt.date(2024, 5, 1), dt.date(2024, 5, 1)),
    (NOON, NOON),
    (Row(id=1, name="x"), {"id": 1, "name": "x"}),
    (Registered("a", (1, 2)), {"name": "a", "parts": {"f0": 1, "f1": 2}}),
    (2**70, Decimal(2**70)),
    (Instant(5, 0), dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC)),
]


@pytest.mark.parametrize(("value", "shown"), UNDECLARED, ids=lambda each: str(each)[:40])
def test_values_without_a_type_are_settled_by_themselves_and_stored_again(value, shown):
    codec = value_codec_for(None)
    wire = ClassFreeCodec(UNTYPED).decode(codec.encode(value))
    shape = settled(UNKNOWN, [wire])
    assert to_column(shape)(wire) == shown
    again = ClassFreeCodec(UNTYPED).encode(from_column(shape, tagged=True)(to_column(shape)(wire)))
    assert codec.decode(again) == value


def test_a_field_with_a_default_may_be_null_in_a_column_and_others_only_if_they_are_optional():
    codec = value_codec_for(infer_type_info(Order))
    shape = stored_type(codec.schema).shape
    column = {"id": 1, "status": "sent", "items": [], "tags": None}
    stored = ClassFreeCodec(stored_type(codec.schema)).encode(from_column(shape)(column))
    assert codec.decode(stored) == Order(1, Status.SENT, [], frozenset()), "the program's default"
    with pytest.raises(TypeMismatchError, match="its field 'status' is null"):
        from_column(shape)(column | {"status": None})


def test_what_is_no_member_of_an_enum_is_not_written():
    shape = stored_type(value_codec_for(infer_type_info(Status)).schema).shape
    with pytest.raises(TypeMismatchError, match="it is none of 'paid', 'sent'"):
        from_column(shape)("payed")


def test_a_class_inside_itself_is_json_from_there_on():
    codec = value_codec_for(infer_type_info(Node))
    stored = stored_type(codec.schema)
    wire = ClassFreeCodec(stored).decode(codec.encode(Node(1, Node(2))))
    column = to_column(settled(stored.shape, [wire]))(wire)
    assert column == {"value": 1, "next": '{"value":2,"next":null}'}
    again = ClassFreeCodec(stored).encode(from_column(settled(stored.shape, [wire]))(column))
    assert codec.decode(again) == Node(1, Node(2))


def test_a_struct_that_older_code_wrote_may_be_shorter():
    shape = stored_type(value_codec_for(infer_type_info(Packed)).schema).shape
    assert to_column(shape)([1]) == {"id": 1, "at": None}
    with pytest.raises(TypeMismatchError, match="does not have 2 fields"):
        to_column(shape)([1, "2024-05-01T00:00:00", 3])


def test_values_of_several_types_are_shown_as_json():
    shape = settled(UNKNOWN, [1, "a", (2, None)])
    assert [to_column(shape)(value) for value in (1, "a", (2, None))] == ["1", '"a"', "[2,null]"]


def test_a_later_value_of_another_type_is_refused_with_what_to_do():
    with pytest.raises(TypeMismatchError, match="untyped='json'"):
        to_column(settled(UNKNOWN, [1, 2]))("three")


def test_a_pickled_value_stays_its_bytes():
    codec = value_codec_for(None, allow_pickle=True)
    wire = class_free_decoder().decode(codec.encode(object))
    assert isinstance(wire, PickledValue)
    shape = settled(UNKNOWN, [wire])
    assert described(shape) == "pickled"
    column = to_column(shape)(wire)
    assert column == wire.data
    assert codec.decode(ClassFreeCodec(UNTYPED).encode(from_column(shape, tagged=True)(column))) is object
    assert class_free_decoder(allow_pickle=True).decode(codec.encode(object)) is object


def test_keys_are_hashed_as_the_program_sees_them():
    day = dt.date(2024, 5, 1)
    codec = value_codec_for(infer_type_info(tuple[str, dt.date]))
    wire = ClassFreeCodec(UNTYPED, as_keys=True).decode(codec.encode(("a", day)))
    assert python_key(stored_type(codec.schema).shape, wire) == ("a", day)


def test_equal_state_has_equal_digests_whatever_its_times_and_the_order_of_a_map():
    timed = StateTypes(UNTYPED, timed=True)
    value = SavedState("last", StateKind.VALUE, "Long", b"", timed)
    assert digest_of(value, (1, "a")) == digest_of(value, (2, "a")) != digest_of(value, (1, "b"))
    entries = SavedState("seen", StateKind.MAP, "Map", b"", StateTypes(UNTYPED))
    assert digest_of(entries, {"a": 1, "b": 2}) == digest_of(entries, {"b": 2, "a": 1}) != digest_of(entries, {"a": 1})
    assert digest_of(entries, None) is None
