"""TypeInformation: equality, text form, fingerprints, msgspec's types, and inference from hints."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import pickle
import typing
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest

from rekindle.common import Instant, Row
from rekindle.common.typeinfo import (
    BasicTypeInfo,
    DataclassTypeInfo,
    EnumTypeInfo,
    LocalTimeTypeInfo,
    NamedTupleTypeInfo,
    PickledBytesTypeInfo,
    RowTypeInfo,
    StructTypeInfo,
    TypeInformation,
    Types,
    infer_type_info,
)
from rekindle.errors import TypeMismatchError


@dataclasses.dataclass
class Item:
    sku: str
    quantity: int = 1


@dataclasses.dataclass
class Order:
    id: int
    items: list[Item]
    note: str | None = None


@dataclasses.dataclass
class Node:
    value: int
    children: list[Node]


@dataclasses.dataclass
class Anything:
    payload: Any


class Plain:
    pass


@dataclasses.dataclass
class HasPlain:
    plain: Plain


class Point(NamedTuple):
    x: float
    y: float


class Event(msgspec.Struct):
    id: int
    at: dt.datetime


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Odd(enum.Enum):
    PAIR = (1, 2)


ALL_TYPES = [
    (Types.STRING(), "String", str),
    (Types.BYTE(), "Byte", int),
    (Types.BOOLEAN(), "Boolean", bool),
    (Types.SHORT(), "Short", int),
    (Types.INT(), "Integer", int),
    (Types.LONG(), "Long", int),
    (Types.FLOAT(), "Float", float),
    (Types.DOUBLE(), "Double", float),
    (Types.CHAR(), "Char", str),
    (Types.BIG_DEC(), "BigDecimal", Decimal),
    (Types.SQL_DATE(), "Date", dt.date),
    (Types.SQL_TIME(), "Time", dt.time),
    (Types.SQL_TIMESTAMP(), "Timestamp", dt.datetime),
    (Types.PICKLED_BYTE_ARRAY(), "Pickled", None),
    (Types.TUPLE([Types.STRING(), Types.INT()]), "Tuple<String, Integer>", tuple[str | None, int | None]),
    (Types.LIST(Types.INT()), "List<Integer>", list[int | None]),
    (Types.MAP(Types.STRING(), Types.INT()), "Map<String, Integer>", dict[str | None, int | None]),
    (Types.PRIMITIVE_ARRAY(Types.INT()), "PrimitiveArray<Integer>", list[int | None]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), "PrimitiveArray<Byte>", bytes),
    (Types.BASIC_ARRAY(Types.STRING()), "BasicArray<String>", list[str | None]),
    (Types.OBJECT_ARRAY(Types.SQL_DATE()), "ObjectArray<Date>", list[dt.date | None]),
    (LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE), "LocalDate", dt.date),
]


@pytest.mark.parametrize(("info", "words", "python_type"), ALL_TYPES)
def test_a_type_says_what_it_is_and_what_it_decodes_to(info: TypeInformation, words: str, python_type: Any) -> None:
    assert repr(info) == words
    assert info.python_type() == python_type


def test_types_are_equal_and_hash_alike_when_they_describe_the_same() -> None:
    infos = [info for info, _, _ in ALL_TYPES]
    for i, one in enumerate(infos):
        for j, other in enumerate(infos):
            assert (one == other) is (i == j)
            if i == j:
                assert hash(one) == hash(pickle.loads(pickle.dumps(one)))


def test_row_types_are_equal_when_their_fields_are_whatever_the_names() -> None:
    assert Types.ROW([Types.STRING()]) == Types.ROW_NAMED(["a"], [Types.STRING()])
    assert Types.ROW([Types.STRING()]) != Types.ROW([Types.INT()])
    assert hash(Types.ROW([Types.STRING()])) == hash(Types.ROW_NAMED(["a"], [Types.STRING()]))
    assert Types.ROW([Types.STRING()]).fingerprint() != Types.ROW_NAMED(["a"], [Types.STRING()]).fingerprint()


def test_row_type_names() -> None:
    assert RowTypeInfo([Types.STRING(), Types.STRING()]).get_field_names() == ["f0", "f1"]
    named = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()])
    assert named.get_field_names() == ["a", "b"]
    assert named.get_field_index("b") == 1
    assert named.get_field_types() == [Types.STRING(), Types.INT()]
    assert repr(named) == "Row<a: String, b: Integer>"
    with pytest.raises(TypeMismatchError, match="as many names as types"):
        Types.ROW_NAMED(["a"], [Types.STRING(), Types.INT()])
    with pytest.raises(TypeMismatchError, match="must differ"):
        Types.ROW_NAMED(["a", "a"], [Types.STRING(), Types.INT()])


def test_arrays_refuse_elements_that_they_cannot_hold() -> None:
    with pytest.raises(TypeMismatchError, match="PrimitiveArray cannot hold String"):
        Types.PRIMITIVE_ARRAY(Types.STRING())
    with pytest.raises(TypeMismatchError, match="BasicArray cannot hold Date"):
        Types.BASIC_ARRAY(Types.SQL_DATE())


@pytest.mark.parametrize(
    ("hint", "info"),
    [
        (None, Types.PICKLED_BYTE_ARRAY()),
        (Any, Types.PICKLED_BYTE_ARRAY()),
        (object, Types.PICKLED_BYTE_ARRAY()),
        (str, Types.STRING()),
        (int, Types.LONG()),
        (float, Types.DOUBLE()),
        (bool, Types.BOOLEAN()),
        (bytes, Types.PRIMITIVE_ARRAY(Types.BYTE())),
        (Decimal, Types.BIG_DEC()),
        (dt.datetime, Types.SQL_TIMESTAMP()),
        (dt.date, Types.SQL_DATE()),
        (dt.time, Types.SQL_TIME()),
        (Instant, Types.INSTANT()),
        (list[int], Types.LIST(Types.LONG())),
        (dict[str, list[float]], Types.MAP(Types.STRING(), Types.LIST(Types.DOUBLE()))),
        (tuple[str, int], Types.TUPLE([Types.STRING(), Types.LONG()])),
        (tuple[()], Types.TUPLE([])),
        (typing.Optional[str], Types.STRING()),  # noqa: UP045  the old spelling is what is tested
        (int | None, Types.LONG()),
        (typing.Annotated[str, "a name"], Types.STRING()),
        (typing.NewType("UserId", int), Types.LONG()),
        (Order, DataclassTypeInfo(Order)),
        (Point, NamedTupleTypeInfo(Point)),
        (Event, StructTypeInfo(Event)),
        (Colour, EnumTypeInfo(Colour)),
        (Types.STRING(), Types.STRING()),
    ],
)
def test_hints_become_types(hint: Any, info: TypeInformation) -> None:
    assert infer_type_info(hint) == info


def test_types_take_hints_wherever_they_take_types() -> None:
    assert Types.TUPLE([str, Order]) == Types.TUPLE([Types.STRING(), DataclassTypeInfo(Order)])
    assert Types.MAP(str, list[int]) == Types.MAP(Types.STRING(), Types.LIST(Types.LONG()))


@pytest.mark.parametrize("hint", [set[int], frozenset[str], tuple[int, ...], int | str, dt.timedelta, uuid.UUID])
def test_other_hints_that_msgspec_knows_are_typed(hint: Any) -> None:
    info = infer_type_info(hint)
    assert info.python_type() == hint
    assert info.pickle_reason() is None


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (5, "5 is no type"),
        ("str", "'str' is no type"),
        ([str], "is no type"),
        (Types.STRING, r"write Types.STRING\(\)"),
        (Row, r"Types.ROW\(\[...\]\)"),
        (Plain, "Plain does not say which fields it has"),
        (lambda x: x, "is no type"),
    ],
)
def test_a_wrong_hint_is_refused_by_name(hint: Any, message: str) -> None:
    with pytest.raises(TypeMismatchError, match=message):
        infer_type_info(hint)
    with pytest.raises(TypeMismatchError, match=message):
        Types.LIST(hint)


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        (list, "can be anything"),
        (Anything, "field 'payload' can be anything"),
        (HasPlain, "field 'plain' is a Plain"),
        (Odd, "str or all int"),
        (tuple[str, Anything], "field 'payload' can be anything"),
        (list[dict[str, list]], "can be anything"),  # type: ignore[type-arg]
    ],
)
def test_what_would_lose_something_is_pickled_and_says_why(hint: Any, reason: str) -> None:
    info = infer_type_info(hint)
    assert info.python_type() is None
    assert reason in str(info.pickle_reason())
    assert "pickled:" in info.describe()


def test_fingerprints_name_fields_types_and_defaults() -> None:
    assert DataclassTypeInfo(Order).fingerprint() == (
        "Dataclass<Order>{id:Long,items:List<Dataclass<Item>{sku:String,quantity:Long=}>,note:Null|String=}"
    )
    assert Types.ROW_NAMED(["a"], [Types.LIST(Types.INT())]).fingerprint() == "Row<a:List<Integer>>"
    assert EnumTypeInfo(Colour).fingerprint() == "Enum<Colour>{RED,BLUE}"


def test_a_class_that_contains_itself_has_a_fingerprint() -> None:
    info = infer_type_info(Node)
    assert info.fingerprint() == "Dataclass<Node>{value:Long,children:List<Dataclass<Node>>}"
    assert info.python_type() is Node


def test_a_type_survives_pickling_after_it_was_used() -> None:
    info = infer_type_info(tuple[str, Order])
    assert info.python_type() is not None
    assert pickle.loads(pickle.dumps(info)) == info


def test_internal_forms() -> None:
    day, time, moment = dt.date(1970, 1, 3), dt.time(0, 0, 1, 5), dt.datetime(2024, 2, 3, 4, 5, 6, 7)
    assert Types.SQL_DATE().to_internal_type(day) == 2
    assert Types.SQL_TIME().to_internal_type(time) == 1_000_005
    assert Types.INSTANT().to_internal_type(Instant(1, 0)) == 1_000_000
    for info, value in [
        (Types.SQL_DATE(), day),
        (Types.SQL_TIME(), time),
        (Types.SQL_TIMESTAMP(), moment),
        (Types.INSTANT(), Instant(1, 2_000_000)),
        (Types.TUPLE([dt.date, str]), (day, "x")),
        (Types.ROW_NAMED(["d"], [dt.date]), Row(d=day)),
    ]:
        assert info.need_conversion()
        assert info.from_internal_type(info.to_internal_type(value)) == value
        assert info.to_internal_type(None) is None
    assert Types.ROW_NAMED(["d"], [dt.date]).to_internal_type({"d": day}) == (0, 2)


def test_untyped_is_pickled() -> None:
    assert isinstance(infer_type_info(None), PickledBytesTypeInfo)
    assert infer_type_info(None).describe() == "Pickled (pickled: no type was declared)"
    assert isinstance(BasicTypeInfo.BIG_INT_TYPE_INFO(), BasicTypeInfo)


@pytest.mark.parametrize("wrong", ["ff", 1.5])
def test_a_big_int_that_is_none_is_refused_at_once(wrong: object) -> None:
    """A brute-force search for it among all 64-bit numbers would take centuries."""
    to_wire = Types.BIG_INT().to_wire()
    assert to_wire is not None
    assert to_wire(2**80) == format(2**80, "x")
    with pytest.raises(TypeMismatchError, match="not an int"):
        to_wire(wrong)
