"""When windows fire: a calendar of deadlines in memory, and the order of the keys that fire at the same time (I1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Any, Final, Generic, TypeVar

from rekindle.runtime.key_bytes import canonical_bytes

T = TypeVar("T")

# Types whose values Python sorts as their canonical bytes sort: their keys need no encoding.
_SORTED_LIKE_BYTES: Final = ({str}, {int})


class Deadlines(Generic[T]):
    """Items by time. Entries are never removed: the caller checks whether an item that is due is still valid.

    >>> deadlines = Deadlines()
    >>> deadlines.add(5, "b"), deadlines.add(3, "a"), deadlines.add(9, "c")
    (None, None, None)
    >>> list(deadlines.due(5)), deadlines.first()
    ([(3, ['a']), (5, ['b'])], 9)
    """

    __slots__ = ("_items", "_times")

    def __init__(self) -> None:
        self._items: dict[int, list[T]] = {}
        self._times: list[int] = []

    def add(self, time: int, item: T) -> None:
        """Add an item for a time."""
        items = self._items.get(time)
        if items is None:
            self._items[time] = [item]
            heappush(self._times, time)
        else:
            items.append(item)

    def first(self) -> int | None:
        """Return the earliest time that has items; None if there is none."""
        return self._times[0] if self._times else None

    def due(self, limit: int) -> Iterator[tuple[int, list[T]]]:
        """Remove and yield the items of each time up to `limit`, including later items that are added meanwhile."""
        times, items = self._times, self._items
        while times and times[0] <= limit:
            time = heappop(times)
            yield time, items.pop(time)


def in_firing_order(keys: Collection[Any]) -> list[Any]:
    """Return the keys of one time in the order in which their timers fire: by their canonical bytes.

    >>> in_firing_order([3, 1, 2]), in_firing_order(["b", "a"]), in_firing_order([1, "a", 0.5])
    ([1, 2, 3], ['a', 'b'], [1, 0.5, 'a'])
    """
    if len(keys) > 1 and set(map(type, keys)) in _SORTED_LIKE_BYTES:
        return sorted(keys)
    return sorted(keys, key=canonical_bytes)
