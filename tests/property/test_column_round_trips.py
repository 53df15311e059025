"""Any value of any declared type is shown in a column, and stored again as it was, by its schema alone."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from rekindle.common import Types
from rekindle.common.typeinfo import infer_type_info
from rekindle.serde import value_codec_for
from rekindle.snapshots.column_values import to_column
from rekindle.snapshots.settle import settled
from rekindle.snapshots.stored_state import ClassFreeCodec
from rekindle.snapshots.stored_types import UNTYPED, stored_type
from rekindle.snapshots.stored_values import from_column

Typed = tuple[Any, st.SearchStrategy[Any]]

PLAIN: list[Typed] = [
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, st.floats(allow_nan=False)),
    (str, st.text()),
    (bool, st.booleans()),
    (bytes, st.binary()),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9)),
    (dt.date, st.dates()),
    (dt.time, st.times()),
    (dt.datetime, st.datetimes()),
    (uuid.UUID, st.uuids()),
    (Types.BIG_INT(), st.integers(-(10**30), 10**30)),
]
KEYS: list[Typed] = [each for each in PLAIN if each[0] in (int, str)]


def _composite(parts: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        parts.map(lambda part: (Types.LIST(part[0]), st.lists(part[1], max_size=3))),
        st.lists(parts, min_size=1, max_size=3).map(
            lambda several: (Types.TUPLE([each[0] for each in several]), st.tuples(*(each[1] for each in several)))
        ),
        st.tuples(st.sampled_from(KEYS), parts).map(
            lambda pair: (Types.MAP(pair[0][0], pair[1][0]), st.dictionaries(pair[0][1], pair[1][1], max_size=3))
        ),
    )


TYPED = st.recursive(st.sampled_from(PLAIN), _composite, max_leaves=5)


@given(st.data())
def test_declared_types(data: st.DataObject) -> None:
    declared, strategy = data.draw(TYPED)
    values = data.draw(st.lists(strategy, min_size=1, max_size=4))
    codec = value_codec_for(infer_type_info(declared))
    stored = stored_type(codec.schema)
    plain = ClassFreeCodec(stored)
    wires = [plain.decode(codec.encode(value)) for value in values]
    shape = settled(stored.shape, wires)
    show, store = to_column(shape), from_column(shape)
    again = [codec.decode(plain.encode(store(show(wire)))) for wire in wires]
    assert again == values


ANYTHING = st.recursive(
    st.one_of(*(strategy for _, strategy in PLAIN)),
    lambda parts: st.one_of(st.lists(parts, max_size=3), st.tuples(parts, parts), st.dictionaries(st.text(), parts)),
    max_leaves=4,
)


@given(ANYTHING)
def test_undeclared_types_of_one_value(value: Any) -> None:
    """A value alone settles its column, so that nothing of it is lost, unless it is shown as JSON in part."""
    codec, plain = value_codec_for(None), ClassFreeCodec(UNTYPED)
    wire = plain.decode(codec.encode(value))
    assert wire == value
    shape = settled(UNTYPED.shape, [wire])
    column = to_column(shape)(wire)
    if "Json" not in repr(shape):
        assert codec.decode(plain.encode(from_column(shape, tagged=True)(column))) == value
