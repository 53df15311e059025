"""Elements in flight, in the order in which their results may leave. Pure: whoever calls holds the lock.

Marks (watermarks, idleness, the end) stand between elements. No result passes a mark in either direction; between two
marks results keep the order of their elements, or not, as was asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol


class Element:
    """An input element that is not emitted yet."""

    __slots__ = ("deadline", "done", "error", "record", "results", "stretch", "timestamp")

    def __init__(self, record: Any, timestamp: int) -> None:
        self.record = record
        self.timestamp = timestamp
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.done = False
        self.deadline = 0.0
        self.stretch: _Stretch | None = None


class Marks:
    """What stands between two elements: several marks in a row say no more than the last of each kind."""

    __slots__ = ("end", "idle", "watermark")

    def __init__(self) -> None:
        self.watermark: int | None = None
        self.idle = False
        self.end = False

    def advance(self, watermark: int) -> None:
        """Time went on, so the stream is not idle any more."""
        self.watermark = watermark if self.watermark is None else max(self.watermark, watermark)
        self.idle = False


Item = Element | Marks


class StreamElementQueue(Protocol):
    """What both kinds of queues do; `ready` gets what may leave now."""

    def put(self, element: Element) -> None:
        """An element behind all others."""

    def last_marks(self, ready: list[Item]) -> Marks:
        """The marks behind all elements, to be changed; then call `release`."""
        ...

    def completed(self, element: Element, ready: list[Item]) -> int:
        """An element has its results; how many elements may leave now."""
        ...

    def release(self, ready: list[Item]) -> int:
        """Let go of what waits for nothing; how many elements that were."""
        ...

    def __iter__(self) -> Iterator[Item]:
        """All that has not left, in order."""
        ...

    def __bool__(self) -> bool:
        """Whether anything has not left."""
        ...


class OrderedQueue:
    """Results in the order of their elements.

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


class _Stretch:
    """The elements between two marks."""

    __slots__ = ("completed", "elements", "marks")

    def __init__(self) -> None:
        self.elements: dict[Element, None] = {}
        self.completed: list[Element] = []
        self.marks: Marks | None = None


class UnorderedQueue:
    """Results as they come, but none across a mark.

    >>> queue, ready = UnorderedQueue(), []
    >>> early, late = Element("a", 0), Element("b", 0)
    >>> queue.put(early)
    >>> queue.last_marks(ready).advance(10)
    >>> queue.put(late)
    >>> queue.completed(late, ready), queue.completed(early, ready)
    (0, 2)
    """

    def __init__(self) -> None:
        self._stretches: deque[_Stretch] = deque([_Stretch()])

    def put(self, element: Element) -> None:
        stretch = self._stretches[-1]
        if stretch.marks is not None:
            stretch = _Stretch()
            self._stretches.append(stretch)
        stretch.elements[element] = None
        element.stretch = stretch

    def last_marks(self, ready: list[Item]) -> Marks:
        last = self._stretches[-1]
        if last.marks is None:
            if not last.elements and ready and isinstance(ready[-1], Marks):
                return ready[-1]
            last.marks = Marks()
        return last.marks

    def completed(self, element: Element, ready: list[Item]) -> int:
        element.done = True
        stretch = element.stretch
        assert stretch is not None, "an element that is in no queue"
        stretch.completed.append(element)
        return self.release(ready) if stretch is self._stretches[0] else 0

    def release(self, ready: list[Item]) -> int:
        released = 0
        while True:
            first = self._stretches[0]
            for element in first.completed:
                del first.elements[element]
            released += len(first.completed)
            ready.extend(first.completed)
            first.completed.clear()
            if first.elements or first.marks is None:
                return released
            ready.append(first.marks)
            self._stretches.popleft()
            if not self._stretches:
                self._stretches.append(_Stretch())

    def __iter__(self) -> Iterator[Item]:
        for stretch in self._stretches:
            yield from stretch.elements
            if stretch.marks is not None:
                yield stretch.marks

    def __bool__(self) -> bool:
        return any(stretch.elements or stretch.marks is not None for stretch in self._stretches)
