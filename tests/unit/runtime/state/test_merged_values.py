"""Merged parts of a value-like state equal the same parts applied to a dict, whatever their order and their size."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from rekindle.runtime.state.rocksdb.element_codecs import NIL
from rekindle.runtime.state.rocksdb.merged_values import MergedValues

PLACES = st.integers(0, 60).map(lambda number: b"%03d" % number)
VALUES = st.one_of(st.just(NIL), st.binary(min_size=1, max_size=3), st.just(b"\x01"))
PART = st.lists(st.tuples(PLACES, VALUES), max_size=12)
WHOLE = st.dictionaries(PLACES, st.binary(min_size=1, max_size=3).filter(lambda value: value != NIL), max_size=60)


@given(WHOLE, st.booleans(), st.lists(PART, max_size=3))
def test_merged_parts_equal_a_dict(whole: dict[bytes, bytes], ordered: bool, later: list[list[tuple[bytes, bytes]]]):
    first = sorted(whole.items()) if ordered else list(whole.items())
    merged, expected = MergedValues(), {}
    for part in [first, *later]:
        places, elements = [place for place, _ in part], [value for _, value in part]
        merged.apply(places, [b"<%s>" % place for place in places], elements)
        for place, value in part:
            expected[place] = b"<%s>%s" % (place, value)
            if value == NIL:
                del expected[place]
    count, entries = merged.entries()
    assert list(entries) == sorted(expected.items())
    assert count == len(expected)


def test_entries_are_joined_one_by_one() -> None:
    keys, size = 20_000, 200
    places = [b"%08d" % (number * 7919 % keys) for number in range(keys)]
    merged, elements = MergedValues(), [b"x" * size] * keys
    merged.apply(places, places, elements)
    merged.apply(places[:100], places[:100], elements[:100])
    tracemalloc.start()
    count, entries = merged.entries()
    joined = sum(len(entry) for _, entry in entries)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert joined == count * (size + 8) == keys * (size + 8)
    assert peak < joined // 2
