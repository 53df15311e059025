"""What is to be looked at when event time comes to a certain point: a calendar in memory, without keys or names."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Deadlines(Generic[T]):
    """Items by time. Entries are never removed: whoever gets an item checks whether it is still meant.

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
        """One more item for a time."""
        items = self._items.get(time)
        if items is None:
            self._items[time] = [item]
            heappush(self._times, time)
        else:
            items.append(item)

    def first(self) -> int | None:
        """The earliest time that has items."""
        return self._times[0] if self._times else None

    def due(self, limit: int) -> Iterator[tuple[int, list[T]]]:
        """Remove and yield the items of each time up to `limit`; meanwhile added ones come, too, if they are later."""
        times, items = self._times, self._items
        while times and times[0] <= limit:
            time = heappop(times)
            yield time, items.pop(time)
