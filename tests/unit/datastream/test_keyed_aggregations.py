"""sum, min, max, min_by and max_by over every kind of record."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import msgspec
import pytest

from rekindle.common import Row, Types
from rekindle.datastream import ReduceFunction, StreamExecutionEnvironment
from rekindle.datastream.data_stream import KeyedStream
from rekindle.errors import GraphError, TypeMismatchError


@dataclass
class Sale:
    item: str
    amount: int


class SaleStruct(msgspec.Struct):
    item: str
    amount: int


class SaleTuple(NamedTuple):
    item: str
    amount: int


def keyed(records: list[Any], type_info: Any = None) -> KeyedStream:
    env = StreamExecutionEnvironment.get_execution_environment()
    return env.from_collection(records, type_info).key_by(lambda record: 0)


def rolled(method: str, field: int | str, records: list[Any]) -> Any:
    """Return the result of the rolling aggregation after all records of one key."""
    stream = getattr(keyed(records), method)(field)
    function: ReduceFunction = stream._operator.function
    return reduce(function.reduce, records)


SHAPES: list[tuple[Any, int | str]] = [
    (lambda item, amount: (item, amount), 1),
    (lambda item, amount: [item, amount], 1),
    (lambda item, amount: {"item": item, "amount": amount}, "amount"),
    (lambda item, amount: Row(item, amount), 1),
    (lambda item, amount: Row(item=item, amount=amount), "amount"),
    (Sale, "amount"),
    (Sale, 1),
    (SaleStruct, "amount"),
    (SaleStruct, 1),
    (SaleTuple, "amount"),
    (SaleTuple, 1),
]


@pytest.mark.parametrize(("make", "field"), SHAPES)
def test_aggregations_of_each_shape(make: Any, field: int | str) -> None:
    records = [make("a", 3), make("b", 5), make("c", 1), make("d", 5)]
    assert rolled("sum", field, records) == make("a", 14)
    assert rolled("min", field, records) == make("a", 1)
    assert rolled("max", field, records) == make("a", 5)
    assert rolled("min_by", field, records) == make("c", 1)
    assert rolled("max_by", field, records) == make("b", 5)  # of equal ones the first is kept


def test_a_plain_value_is_its_own_field() -> None:
    assert (rolled("sum", 0, [1, 2, 3]), rolled("max", 0, [1, 3, 2]), rolled("min_by", 0, [2, 1])) == (6, 3, 1)


def test_the_first_record_is_not_changed() -> None:
    first = ["a", 1]
    assert rolled("sum", 1, [first, ["b", 2]]) == ["a", 3]
    assert first == ["a", 1]


def test_names_and_types() -> None:
    stream = keyed([("a", 1)], tuple[str, int])
    assert (stream.sum(1).get_name(), stream.max_by(1).get_name()) == ("Sum", "Max By")
    assert stream.sum(1).get_type() == Types.TUPLE([Types.STRING(), Types.LONG()])


def test_fields_that_the_declared_type_lacks_are_refused() -> None:
    pairs = keyed([("a", 1)], tuple[str, int])
    with pytest.raises(TypeMismatchError, match="has no field 2, only 0 to 1"):
        pairs.sum(2)
    with pytest.raises(TypeMismatchError, match="has no field 'n'"):
        keyed([Row(a=1)], Types.ROW_NAMED(["a"], [Types.LONG()])).max("n")
    rows = keyed([Row("a", 1)], Types.ROW([Types.STRING(), Types.LONG()]))
    for refused in (rows.sum, rows.min, rows.max, rows.min_by, rows.max_by):
        with pytest.raises(TypeMismatchError, match="has no field 'f2'"):
            refused("f2")
    with pytest.raises(TypeMismatchError, match="has no field 'price'; its fields are item, amount"):
        keyed([SaleTuple("a", 1)], SaleTuple).min_by("price")
    with pytest.raises(TypeMismatchError, match="ListTypeInfo<Long> has no field 'n'; its elements have positions"):
        keyed([[1]], Types.LIST(Types.LONG())).sum("n")
    with pytest.raises(TypeMismatchError, match="has no field 'price'; its fields are item, amount"):
        keyed([Sale("a", 1)], Sale).max("price")
    with pytest.raises(TypeMismatchError, match="has no fields; its value is field 0"):
        keyed([1], int).sum(1)


def test_texts_cannot_be_summed_but_compared() -> None:
    with pytest.raises(TypeMismatchError, match="a String cannot be summed"):
        keyed([("a", 1)], tuple[str, int]).sum(0)
    assert keyed([("a", 1)], tuple[str, int]).max(0).get_name() == "Max"


@pytest.mark.parametrize("field", [-1, 1.5, None, True])
def test_a_field_is_a_position_or_a_name(field: Any) -> None:
    with pytest.raises(GraphError, match="field"):
        keyed([(1, 2)]).sum(field)
