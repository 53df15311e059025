"""The parts of a value-like state in one key group, merged to the entries that go into the database.

A whole part, as RocksDB's own snapshots have it, is in order: it is read some entries at a time, and the changes since
are merged into these. So a key group is never in memory, only its changes. A part that is not in order, as the
in-memory backend writes it, is sorted in memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import itemgetter, lt
from typing import Final

from rekindle.runtime.state.rocksdb.element_codecs import NIL, Element
from rekindle.runtime.state.rocksdb.scratch_database import Entries, Write

#: Where entries lie, the elements of their keys, and of their values, or nil. Of one place the last entry counts.
Columns = tuple[list[bytes], list[Element], list[Element]]
#: The elements of a key and its value.
Pair = tuple[Element, Element]
#: By the place of the entry.
Pairs = dict[bytes, Pair]

_place = itemgetter(0)
_join: Final = b"".join


class MergedValues:
    """The entries of one key group: of its whole part, with its changes applied.

    >>> merged = MergedValues([([b"a", b"c"], [b"A", b"C"], [b"1", b"3"])], [([b"b", b"a"], [b"B", b"A"], [b"2", NIL])])
    >>> list(merged.entries()), merged.count
    ([(b'b', b'B2'), (b'c', b'C3')], 2)
    """

    def __init__(self, whole: Iterable[Columns], changes: Iterable[Columns]) -> None:
        self._whole = iter(whole)
        self._changes = changes
        #: The number of entries that were given.
        self.count = 0
        #: When all entries were given: what has to be written after them, because it came too late for their order.
        self.late: list[Write] = []

    def entries(self) -> Entries:
        """The entries, in order."""
        return chain.from_iterable(self._runs())  # in C: millions of entries go through here

    def _runs(self) -> Iterator[Entries]:
        changes = SortedChanges(self._changes)
        last = b""
        for columns in self._whole:
            places, keys, elements = columns
            if not _ascends(last, places):
                yield self._out_of_order(last, chain((columns,), self._whole), changes)
                return
            last = places[-1]
            changed = changes.up_to(last)
            if changes.has_removed or _has_removed(elements) or not _replace(columns, changed):
                pairs = dict(zip(places, zip(keys, elements, strict=True), strict=True))
                pairs.update(changed)
                yield self._kept(pairs)
            else:
                self.count += len(places)
                yield zip(places, map(_join, zip(keys, elements, strict=True)), strict=True)
        yield self._kept(dict(changes.others()))

    def _out_of_order(self, last: bytes, whole: Iterable[Columns], changes: SortedChanges) -> Entries:
        """The entries behind `last`, which was given; those before it are too late."""
        pairs: Pairs = {}
        for places, keys, elements in whole:
            pairs.update(zip(places, zip(keys, elements, strict=True), strict=True))
        for place in [place for place in pairs if place <= last]:
            pair = pairs.pop(place)
            if place not in changes:
                self.late.append((place, None if _is_nil(pair[1]) else _join(pair)))
        pairs.update(changes.others())
        return self._kept(pairs)

    def _kept(self, pairs: Pairs) -> Entries:
        """The entries that are not removed, in order."""
        pairs = dict(sorted(pairs.items(), key=_place))
        if _has_removed([element for _, element in pairs.values()]):
            pairs = {place: pair for place, pair in pairs.items() if not _is_nil(pair[1])}
        self.count += len(pairs)
        return zip(pairs, map(_join, pairs.values()), strict=True)


class SortedChanges:
    """The last change at each place, given out in the order of the places."""

    def __init__(self, parts: Iterable[Columns]) -> None:
        self._pairs: Pairs = {}
        for places, keys, elements in parts:
            self._pairs.update(zip(places, zip(keys, elements, strict=True), strict=True))
        self._places = sorted(self._pairs)
        self._next = 0
        self.has_removed = _has_removed([element for _, element in self._pairs.values()])

    def __contains__(self, place: bytes) -> bool:
        return place in self._pairs

    def up_to(self, place: bytes) -> list[tuple[bytes, Pair]]:
        """The next changes, this place included."""
        return self._given(bisect_right(self._places, place, self._next))

    def others(self) -> list[tuple[bytes, Pair]]:
        """The changes that were not given yet."""
        return self._given(len(self._places))

    def _given(self, end: int) -> list[tuple[bytes, Pair]]:
        places = self._places[self._next : end]
        self._next = end
        return list(zip(places, map(self._pairs.__getitem__, places), strict=True))


def _ascends(last: bytes, places: list[bytes]) -> bool:
    """Whether each place is greater than the one before it, and the first one greater than `last`."""
    return last < places[0] and all(map(lt, places, islice(places, 1, None)))


def _replace(columns: Columns, changed: list[tuple[bytes, Pair]]) -> bool:
    """Replace elements where they lie. False, and some may be replaced, if there are new entries."""
    places, keys, elements = columns
    index = 0
    for place, pair in changed:
        index = bisect_left(places, place, index)  # changes are sorted, too
        if places[index] != place:
            return False
        keys[index], elements[index] = pair
    return True


def _has_removed(elements: list[Element]) -> bool:
    return len(NIL) in map(len, elements) and any(map(_is_nil, elements))


def _is_nil(element: Element) -> bool:
    return len(element) == len(NIL) and bytes(element) == NIL
