"""Chunk codecs: records are restored unchanged, and errors name the record that does not fit."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import threading
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.common import Instant, Row, RowKind, Types
from rekindle.common.typeinfo import infer_type_info
from rekindle.errors import SerializationError, TypeMismatchError
from rekindle.serde import codec_for

INT64 = st.integers(-(2**63), 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FLOATS = st.floats(allow_nan=False)


class Side(enum.Enum):
    BUY = 1
    SELL = 2


@dataclasses.dataclass
class Trade:
    symbol: str
    price: float
    side: Side
    tags: dict[str, int]
    when: dt.datetime | None = None


@dataclasses.dataclass
class BigTrade(Trade):
    extra: int = 0


class Quote(msgspec.Struct):
    symbol: str
    bid: Decimal


class Pair(NamedTuple):
    left: str
    right: int


def round_trip(type_info: Any, records: list[Any]) -> list[Any]:
    codec = codec_for(infer_type_info(type_info))
    return codec.decode(memoryview(codec.encode(records)))


TRADES = st.builds(Trade, TEXT, FLOATS, st.sampled_from(Side), st.dictionaries(TEXT, INT64), st.none() | st.datetimes())
ROWS = st.builds(
    lambda kind, a, b: Row.of_kind(kind, a=a, b=b), st.sampled_from(RowKind), st.none() | TEXT, st.none() | INT64
)


@given(st.lists(st.none() | st.tuples(st.none() | TEXT, st.none() | INT64)))
def test_tuples(records: list[Any]) -> None:
    assert round_trip(tuple[str, int], records) == records


@given(st.lists(TRADES))
def test_dataclasses(records: list[Trade]) -> None:
    assert round_trip(Trade, records) == records


@given(st.lists(st.builds(Quote, TEXT, st.decimals(allow_nan=False))))
def test_structs(records: list[Quote]) -> None:
    assert round_trip(Quote, records) == records


@given(st.lists(st.builds(Pair, TEXT, INT64)))
def test_named_tuples_come_back_as_named_tuples(records: list[Pair]) -> None:
    again = round_trip(Pair, records)
    assert again == records
    assert all(type(record) is Pair for record in again)


@given(st.lists(st.none() | ROWS))
def test_named_rows(records: list[Row]) -> None:
    assert round_trip(Types.ROW_NAMED(["a", "b"], [str, int]), records) == records


@given(st.lists(st.builds(Row, st.none() | TEXT, st.lists(INT64))))
def test_rows_have_the_names_that_their_type_reports(records: list[Row]) -> None:
    again = round_trip(Types.ROW([str, list[int]]), records)
    assert again == records
    assert all(record.as_dict() == {"f0": record[0], "f1": record[1]} for record in again)


@given(st.lists(st.integers()))
def test_big_integers_of_any_size(records: list[int]) -> None:
    assert round_trip(Types.BIG_INT(), records) == records


@given(st.lists(st.dictionaries(TEXT, st.tuples(st.integers(), st.builds(Instant, INT64, st.integers(0, 10**9))))))
def test_converted_types_inside_others(records: list[Any]) -> None:
    type_info = Types.MAP(Types.STRING(), Types.TUPLE([Types.BIG_INT(), Types.INSTANT()]))
    assert round_trip(type_info, records) == records


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (bytes, b"\x00\xff"),
        (Types.INSTANT(), Instant(-1, 5)),
        (Types.SQL_DATE(), dt.date(2024, 2, 29)),
        (Types.SQL_TIME(), dt.time(1, 2, 3, 4)),
        (Types.SQL_TIMESTAMP(), dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
        (dt.timedelta, dt.timedelta(days=-1, microseconds=3)),
        (uuid.UUID, uuid.UUID(int=7)),
        (Side, Side.SELL),
        (Types.LIST(Types.LIST(Types.INT())), [[1, None], []]),
        (set[int], {1, 2}),
        (tuple[int, ...], (1, 2, 3)),
        (int | str, "x"),
        (Types.ROW_NAMED(["r"], [Types.ROW_NAMED(["x"], [int])]), Row(r=Row(x=1))),
        (Types.TUPLE([]), ()),
    ],
)
def test_other_types(hint: Any, value: Any) -> None:
    again = round_trip(hint, [value, None])
    assert again == [value, None]
    assert type(again[0]) is type(value)


def test_a_row_type_takes_what_stands_for_a_row() -> None:
    named = Types.ROW_NAMED(["a", "b"], [int, str])
    records = [Row(b="x", a=1), Row(2, "y"), {"a": 3}, (4, "z"), [5, "w"]]
    assert round_trip(named, records) == [Row(a=n, b=s) for n, s in [(1, "x"), (2, "y"), (3, None), (4, "z"), (5, "w")]]


def test_a_row_type_without_names_takes_positions_and_its_own_names_in_any_order() -> None:
    records = [Row(1, "x"), Row(f0=2, f1="y"), Row(f1="z", f0=3), {"f0": 4}, (5, "w"), [6, "v"]]
    again = round_trip(Types.ROW([int, str]), records)
    assert list(map(repr, again)) == [
        f"Row(f0={n}, f1={s!r})" for n, s in [(1, "x"), (2, "y"), (3, "z"), (4, None), (5, "w"), (6, "v")]
    ]
    with pytest.raises(TypeMismatchError, match=r"Field names \['f0'\] do not exist in \['a'\]"):
        round_trip(Types.ROW([int]), [Row(a=1)])


def test_a_named_row_type_takes_a_row_of_positions_whatever_it_calls_them() -> None:
    assert round_trip(Types.ROW_NAMED(["a", "b"], [int, str]), [Row(f0=1, f1="x")]) == [Row(a=1, b="x")]


def test_an_aware_datetime_comes_back_as_the_same_instant() -> None:
    moment = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert round_trip(dt.datetime, [moment]) == [moment]


def test_which_codec() -> None:
    assert codec_for(infer_type_info(tuple[str, int])).name == "msgpack"
    assert codec_for(infer_type_info(list)).name == "pickle"
    assert codec_for(None).name == "pickle"


def test_an_integer_beyond_64_bits_is_named_with_its_path_and_a_way_out() -> None:
    with pytest.raises(TypeMismatchError, match=r"Record 1 .*Tuple<String, List<Long>>.*\$\[1\]\[1\]\[2\].*BIG_INT"):
        codec_for(infer_type_info(tuple[str, list[int]])).encode([("a", [1]), ("b", [1, 2, 2**70])])


def test_an_unexpected_object_is_named_with_its_path() -> None:
    trade = Trade("A", 1.0, Side.BUY, {"x": object()})  # type: ignore[dict-item]
    with pytest.raises(TypeMismatchError, match=r"\$\[0\]\.tags\['x'\].*a object"):
        codec_for(infer_type_info(Trade)).encode([trade])


def test_text_that_is_no_unicode_is_named() -> None:
    with pytest.raises(TypeMismatchError, match=r"\$\[0\]\[0\].*not valid Unicode"):
        codec_for(infer_type_info(tuple[str, int])).encode([("\ud800", 1)])


def test_another_class_than_the_declared_one_is_named() -> None:
    with pytest.raises(TypeMismatchError, match=r"Record 1 is a .*BigTrade, but .*Dataclass<Trade>"):
        codec_for(infer_type_info(Trade)).encode([Trade("A", 1, Side.BUY, {}), BigTrade("A", 1, Side.BUY, {})])


@pytest.mark.parametrize(
    ("record", "why"), [(Row(1, 2), "it has 2 fields where the type has 1"), (3, "neither a Row nor a dict")]
)
def test_what_is_no_row_of_the_type_is_named(record: Any, why: str) -> None:
    with pytest.raises(TypeMismatchError, match=rf"Record 1 .*Row<a: Long>.*{why}"):
        codec_for(Types.ROW_NAMED(["a"], [int])).encode([Row(a=1), record])


def test_a_named_row_with_other_names_is_named() -> None:
    with pytest.raises(TypeMismatchError, match=r"Record 0 .*'a'.*do not exist"):
        codec_for(Types.ROW_NAMED(["a"], [int])).encode([Row(b=1)])


def test_decoding_names_element_path_and_declared_type() -> None:
    codec = codec_for(infer_type_info(tuple[str, int]))
    data = codec.encode([("a", 1), ("b", "two")])
    with pytest.raises(TypeMismatchError, match=r"Record 1 .*Tuple<String, Long>: Expected `int \| null`, got `str`"):
        codec.decode(data)


def test_a_damaged_chunk_is_no_type_error() -> None:
    codec = codec_for(infer_type_info(int))
    with pytest.raises(SerializationError, match="damaged"):
        codec.decode(codec.encode([1, 2, 3])[:-1])


def test_pickle_keeps_what_types_would_not() -> None:
    records = [{1, 2}, Row(a=(1, 2)), {(1, 2): "x"}, 2**100, None, threading.main_thread]
    codec = codec_for(None)
    assert codec.decode(codec.encode(records)) == records


def test_pickle_carries_classes_that_cannot_be_imported() -> None:
    class Local:
        def __init__(self, x: int) -> None:
            self.x = x

    codec = codec_for(None)
    again = codec.decode(codec.encode([Local(3)]))
    assert again[0].x == 3
    assert type(again[0]) is Local


def test_what_cannot_be_pickled_is_named_with_its_path() -> None:
    with pytest.raises(SerializationError, match=r"Record 1 .*\$\[1\]\['a'\]\[0\] is a _thread.lock"):
        codec_for(None).encode([1, {"a": [threading.Lock()]}])
