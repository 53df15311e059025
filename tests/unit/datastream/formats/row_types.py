"""Row types and rows that fit them, for the property tests of the formats."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import strategies as st

from rekindle.common import Instant, Row, Types
from rekindle.common.typeinfo import LocalTimeTypeInfo, TypeInformation

TIMESTAMPS = st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9000, 1, 1))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_LOCAL = LocalTimeTypeInfo.TimeType


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


LEAVES: list[tuple[TypeInformation, st.SearchStrategy[Any]]] = [
    (Types.STRING(), TEXTS),
    (Types.BOOLEAN(), st.booleans()),
    (Types.BYTE(), _integers(8)),
    (Types.SHORT(), _integers(16)),
    (Types.INT(), _integers(32)),
    (Types.LONG(), _integers(64)),
    (Types.DOUBLE(), st.floats(allow_nan=False)),
    (Types.FLOAT(), st.floats(allow_nan=False, width=32)),
    (Types.BIG_INT(), st.integers()),
    (Types.BIG_DEC(), st.decimals(allow_nan=False, allow_infinity=False)),
    (Types.SQL_DATE(), st.dates(dt.date(1000, 1, 1))),
    (Types.SQL_TIME(), st.times()),
    (Types.SQL_TIMESTAMP(), TIMESTAMPS),
    (LocalTimeTypeInfo(_LOCAL.LOCAL_DATE_TIME), TIMESTAMPS),
    (Types.INSTANT(), st.builds(Instant, st.integers(-(10**10), 10**11), st.integers(0, 10**9 - 1))),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary(max_size=30)),
]
NAMES = st.lists(st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True), min_size=1, max_size=5, unique=True)


@st.composite
def row_and_type(draw: Any, fields: st.SearchStrategy[Any]) -> tuple[Row, TypeInformation]:
    """Draw a row type whose fields are pairs of a type and a strategy of `fields`, and a row of that type."""
    names = draw(NAMES)
    chosen = [draw(fields) for _ in names]
    values = [draw(st.none() | strategy) for _, strategy in chosen]
    return Row(**dict(zip(names, values, strict=True))), Types.ROW_NAMED(names, [part for part, _ in chosen])
