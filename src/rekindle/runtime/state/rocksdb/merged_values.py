"""The parts of a value-like state in one key group, merged to the entries that go into the database.

Entries are joined one by one as the database takes them: those of a key group are never in memory together. A whole
part, as RocksDB's own snapshots have it, is in order and is taken as it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress, islice
from operator import lt, ne

from rekindle.runtime.state.rocksdb.element_codecs import NIL, Element
from rekindle.runtime.state.rocksdb.scratch_database import Entries


class MergedValues:
    """The entries of one key group; `apply` the parts in their order.

    >>> merged = MergedValues()
    >>> merged.apply([b"a", b"c"], [b"A", b"C"], [b"1", b"3"])
    >>> merged.apply([b"b", b"a"], [b"B", b"A"], [b"2", NIL])
    >>> count, entries = merged.entries()
    >>> count, list(entries)
    (2, [(b'b', b'B2'), (b'c', b'C3')])
    """

    def __init__(self) -> None:
        self._places: list[bytes] = []
        self._keys: list[Element] = []
        self._elements: list[Element] = []

    def apply(self, places: list[bytes], keys: Sequence[Element], elements: Sequence[Element]) -> None:
        """Apply a part: where its entries lie, the elements of their keys, and of their values, or nil.

        A key may stand in a part several times; the last one counts.
        """
        if not len(places) == len(keys) == len(elements):
            raise ValueError(f"{len(keys)} keys were saved, but {len(elements)} values")
        self._places += places
        self._keys += keys
        self._elements += elements

    def entries(self) -> tuple[int, Entries]:
        """The number of entries, and the entries in order."""
        # Bound to C functions: millions of entries go through here.
        places, keys, elements = self._places, self._keys, self._elements
        has_removed = len(NIL) in map(len, elements) and any(map(_is_nil, elements))
        if has_removed or not all(map(lt, places, islice(places, 1, None))):
            order = self._order()
            if has_removed:
                order = [index for index in order if not _is_nil(elements[index])]
            return len(order), zip(
                map(places.__getitem__, order),
                map(b"".join, zip(map(keys.__getitem__, order), map(elements.__getitem__, order), strict=True)),
                strict=True,
            )
        return len(places), zip(places, map(b"".join, zip(keys, elements, strict=True)), strict=True)

    def _order(self) -> list[int]:
        """The index of the last entry at each place, in the order of the places."""
        place = self._places.__getitem__
        order = sorted(range(len(self._places)), key=place)  # of one place the later one stays behind the earlier
        is_last = chain(map(ne, map(place, order), map(place, islice(order, 1, None))), (True,))
        return list(compress(order, is_last))


def _is_nil(element: Element) -> bool:
    return len(element) == len(NIL) and bytes(element) == NIL
