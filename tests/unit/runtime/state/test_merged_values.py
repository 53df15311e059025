"""Merged parts of a value-like state equal the same parts applied to a dict, whatever their order and their size."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from rekindle.runtime.state.rocksdb.element_codecs import NIL
from rekindle.runtime.state.rocksdb.merged_values import Columns, MergedValues

PLACES = st.integers(0, 60).map(lambda number: b"%03d" % number)
VALUES = st.one_of(st.just(NIL), st.binary(min_size=1, max_size=3), st.just(b"\x01"))
PART = st.lists(st.tuples(PLACES, VALUES), max_size=12)
Part = list[tuple[bytes, bytes]]
WHOLE = st.dictionaries(PLACES, st.binary(min_size=1, max_size=3).filter(lambda value: value != NIL), max_size=60)


def columns(part: list[tuple[bytes, bytes]]) -> Columns:
    places = [place for place, _ in part]
    return places, [b"<%s>" % place for place in places], [value for _, value in part]


def cut_up(part: list[tuple[bytes, bytes]], size: int) -> Iterator[Columns]:
    return (columns(part[begin : begin + size]) for begin in range(0, len(part), size))


@given(WHOLE, st.booleans(), st.integers(1, 20), st.lists(PART, max_size=2), st.lists(PART, max_size=3))
def test_merged_parts_equal_a_dict(
    whole: dict[bytes, bytes], ordered: bool, size: int, carried: list[Part], later: list[Part]
) -> None:
    """Also if changes are in the whole part: a snapshot carries those of a state that nobody has claimed."""
    first = sorted(whole.items()) if ordered else list(whole.items())
    merged = MergedValues(
        chain(cut_up(first, size), (columns(part) for part in carried if part)),
        (columns(part) for part in later if part),
    )
    expected = {}
    for part in [first, *carried, *later]:
        for place, value in part:
            expected[place] = b"<%s>%s" % (place, value)
            if value == NIL:
                del expected[place]
    found = list(merged.entries())
    assert [place for place, _ in found] == sorted({place for place, _ in found})
    written: dict[bytes, bytes | None] = {**dict(found), **dict(merged.late)}
    assert {place: entry for place, entry in written.items() if entry is not None} == expected
    assert merged.count == len(found)
    if not carried:
        assert merged.late == []


def test_entries_are_joined_one_by_one() -> None:
    keys, size = 20_000, 500
    places = [b"%08d" % (number * 7919 % keys) for number in range(keys)]
    elements = [b"x" * size] * keys
    merged = MergedValues([(places, places, elements)], [(places[:100], places[:100], elements[:100])])
    tracemalloc.start()
    joined = sum(len(entry) for _, entry in merged.entries())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert joined == merged.count * (size + 8) == keys * (size + 8)
    assert peak < joined // 2


def test_of_an_ordered_part_a_piece_at_a_time_is_in_memory() -> None:
    keys, size, piece = 50_000, 100, 1_000

    def whole() -> Iterator[Columns]:
        for begin in range(0, keys, piece):
            places = [b"%08d" % number for number in range(begin, begin + piece)]
            yield places, places, [b"x" * size for _ in places]

    changed = [b"%08d" % number for number in range(0, keys, 50)]
    merged = MergedValues(whole(), [(changed, changed, [b"y"] * len(changed))])
    tracemalloc.start()
    joined = sum(len(entry) for _, entry in merged.entries())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert joined == (keys - len(changed)) * (size + 8) + len(changed) * 9
    assert peak < joined // 5
