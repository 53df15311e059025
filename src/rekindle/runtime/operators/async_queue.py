"""Queues of elements in flight, in the order in which their results may be emitted. Pure: the caller holds the lock.

Marks (watermarks, idleness, the end) stand between elements. No result passes a mark in either direction. Between two
marks an ordered queue keeps the order of the elements, an unordered queue does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol


class Element:
    """An input element whose results are not emitted yet."""

    __slots__ = ("deadline", "done", "error", "record", "results", "segment", "timestamp")

    def __init__(self, record: Any, timestamp: int) -> None:
        self.record = record
        self.timestamp = timestamp
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.done = False
        self.deadline = 0.0
        self.segment: _Segment | None = None


class Marks:
    """The marks between two elements; of several marks of one kind only the last counts."""

    __slots__ = ("end", "idle", "watermark")

    def __init__(self) -> None:
        self.watermark: int | None = None
        self.idle = False
        self.end = False

    def advance(self, watermark: int) -> None:
        """Advance the watermark: the stream is not idle any more."""
        self.watermark = watermark if self.watermark is None else max(self.watermark, watermark)
        self.idle = False


Item = Element | Marks


class StreamElementQueue(Protocol):
    """The interface of both kinds of queues; `ready` is the list of items that may be emitted now."""

    def put(self, element: Element) -> None:
        """Append an element."""

    def last_marks(self, ready: list[Item]) -> Marks:
        """Return the marks behind all elements, for the caller to change; the caller then calls `release`."""
        ...

    def completed(self, element: Element, ready: list[Item]) -> int:
        """Complete an element that has its results; return how many elements became ready."""
        ...

    def release(self, ready: list[Item]) -> int:
        """Move all items that need not wait to `ready`; return how many of them are elements."""
        ...

    def __iter__(self) -> Iterator[Item]:
        """Iterate over the items that are not ready, in order."""
        ...

    def __bool__(self) -> bool:
        """Whether any item is not ready."""
        ...


class OrderedQueue:
    """Emits results in the order of their elements.

    >>> queue, ready = OrderedQueue(), []
    >>> first, second = Element("a", 0), Element("b", 0)
    >>> queue.put(first), queue.put(second)
    (None, None)
    >>> queue.completed(second, ready), queue.completed(first, ready)
    (0, 2)
    """

    def __init__(self) -> None:
        self._items: deque[Item] = deque()

    def put(self, element: Element) -> None:
        self._items.append(element)

    def last_marks(self, ready: list[Item]) -> Marks:
        last = self._items[-1] if self._items else ready[-1] if ready else None
        if isinstance(last, Marks):
            return last
        marks = Marks()
        self._items.append(marks)
        return marks

    def completed(self, element: Element, ready: list[Item]) -> int:
        element.done = True
        return self.release(ready) if self._items[0] is element else 0

    def release(self, ready: list[Item]) -> int:
        items, released = self._items, 0
        while items:
            item = items[0]
            if isinstance(item, Element):
                if not item.done:
                    break
                released += 1
            ready.append(items.popleft())
        return released

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __bool__(self) -> bool:
        return bool(self._items)


class _Segment:
    """The elements between two marks."""

    __slots__ = ("completed", "elements", "marks")

    def __init__(self) -> None:
        self.elements: dict[Element, None] = {}
        self.completed: list[Element] = []
        self.marks: Marks | None = None


class UnorderedQueue:
    """Emits results as they become ready, but none across a mark.

    >>> queue, ready = UnorderedQueue(), []
    >>> early, late = Element("a", 0), Element("b", 0)
    >>> queue.put(early)
    >>> queue.last_marks(ready).advance(10)
    >>> queue.put(late)
    >>> queue.completed(late, ready), queue.completed(early, ready)
    (0, 2)
    """

    def __init__(self) -> None:
        self._segments: deque[_Segment] = deque([_Segment()])

    def put(self, element: Element) -> None:
        segment = self._segments[-1]
        if segment.marks is not None:
            segment = _Segment()
            self._segments.append(segment)
        segment.elements[element] = None
        element.segment = segment

    def last_marks(self, ready: list[Item]) -> Marks:
        last = self._segments[-1]
        if last.marks is None:
            if not last.elements and ready and isinstance(ready[-1], Marks):
                return ready[-1]
            last.marks = Marks()
        return last.marks

    def completed(self, element: Element, ready: list[Item]) -> int:
        element.done = True
        segment = element.segment
        assert segment is not None, "an element that is in no queue"
        segment.completed.append(element)
        return self.release(ready) if segment is self._segments[0] else 0

    def release(self, ready: list[Item]) -> int:
        released = 0
        while True:
            first = self._segments[0]
            for element in first.completed:
                del first.elements[element]
            released += len(first.completed)
            ready.extend(first.completed)
            first.completed.clear()
            if first.elements or first.marks is None:
                return released
            ready.append(first.marks)
            self._segments.popleft()
            if not self._segments:
                self._segments.append(_Segment())

    def __iter__(self) -> Iterator[Item]:
        for segment in self._segments:
            yield from segment.elements
            if segment.marks is not None:
                yield segment.marks

    def __bool__(self) -> bool:
        return any(segment.elements or segment.marks is not None for segment in self._segments)
