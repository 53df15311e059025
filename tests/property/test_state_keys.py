"""Python's equality of keys is the equality of their bytes (I11): the engine relies on it in every dict."""

from __future__ import annotations

from datetime import timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rekindle.common.types import Row
from rekindle.runtime.key_bytes import canonical_bytes
from rekindle.runtime.key_hash import key_group

# Few distinct values in many disguises, so that equal keys of different types meet.
_numbers = st.one_of(
    st.integers(-3, 3),
    st.booleans(),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 0.1, 2.0**70, 1e300, float("inf"), float("-inf")]),
    st.sampled_from([2**63, 2**64, 2**70, -(2**63), 10**300]),
    st.sampled_from([Decimal(x) for x in ("0", "-0", "1.0", "0.50", "0.1", "1e1", "10", "1e300", "-Infinity")]),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=True).filter(lambda d: d.is_infinite() or abs(d.adjusted()) < 4000),
)
_zones = st.sampled_from([None, timezone(timedelta(0)), timezone(timedelta(hours=2)), timezone(timedelta(minutes=-90))])
_leaves = st.one_of(
    st.none(),
    _numbers,
    st.text(alphabet="ab\x00\xff", max_size=3),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.datetimes(timezones=_zones),
    st.dates(),
    st.times(timezones=_zones),
    st.timedeltas(),
    st.uuids(),
)
_keys = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(lambda values: Row(*values)),
        st.dictionaries(st.sampled_from(["a", "b", "f0", "f1"]), inner, min_size=1).map(lambda named: Row(**named)),
    ),
    max_leaves=4,
)


@given(_keys, _keys)
def test_equality_of_keys_is_equality_of_bytes(one: Any, other: Any) -> None:
    assert (one == other) == (canonical_bytes(one) == canonical_bytes(other))


@given(_numbers, _numbers)
def test_numbers_meet_across_types(one: Any, other: Any) -> None:
    assert (one == other) == (canonical_bytes(one) == canonical_bytes(other))
    assert ((one,) == (other,)) == (canonical_bytes((one,)) == canonical_bytes((other,)))
    if one == other:
        assert key_group(one, 32768) == key_group(other, 32768)
        assert hash(one) == hash(other)


@given(st.lists(_keys, max_size=12))
def test_a_dict_and_the_bytes_count_the_same_distinct_keys(keys: list[Any]) -> None:
    assert len(set(keys)) == len(set(map(canonical_bytes, keys)))


@given(st.text(), st.text())
def test_texts_keep_their_order(one: str, other: str) -> None:
    assert (one < other) == (canonical_bytes(one) < canonical_bytes(other))


@given(st.integers(), st.integers())
def test_ints_keep_their_order(one: int, other: int) -> None:
    assert (one < other) == (canonical_bytes(one) < canonical_bytes(other))
