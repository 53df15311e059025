"""Time, count and global windows, and their serializers."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from rekindle.common.serializer import TypeSerializer
from rekindle.common.watermark_strategy import MAX_WATERMARK

if TYPE_CHECKING:
    from rekindle.datastream.windowing.assigners import MergingWindowAssigner

_TWO_LONGS: Final = struct.Struct(">qq")
_LONG: Final = struct.Struct(">q")


class Window(ABC):
    """Base of windows. A window class of your own needs `__eq__` and `__hash__`."""

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the largest timestamp in the window. The window's results get this timestamp."""


class TimeWindow(Window):
    """A window from `start` (inclusive) to `end` (exclusive), in milliseconds.

    >>> window = TimeWindow(0, 5000)
    >>> window.max_timestamp(), window.intersects(TimeWindow(5000, 6000)), window.cover(TimeWindow(7000, 8000))
    (4999, True, TimeWindow(start=0, end=8000))
    """

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        """Return `end` - 1."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Return whether two windows overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that covers both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window that contains a timestamp, for windows of this size from `offset` on.

        >>> TimeWindow.get_window_start_with_offset(7, 0, 5), TimeWindow.get_window_start_with_offset(-1, 2, 5)
        (5, -3)
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        """Call the callback for each group of windows that overlap or touch, with the window that covers the group."""
        group: list[TimeWindow] = []
        covered: TimeWindow | None = None
        for window in sorted(set(windows)):
            if covered is not None and covered.intersects(window):
                covered = covered.cover(window)
                group.append(window)
                continue
            if covered is not None and len(group) > 1:
                callback.merge(group, covered)
            covered, group = window, [window]
        if covered is not None and len(group) > 1:
            callback.merge(group, covered)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __eq__(self, other: object) -> bool:
        return type(other) is TimeWindow and (self.start, self.end) == (other.start, other.end)

    def __lt__(self, other: TimeWindow) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __le__(self, other: TimeWindow) -> bool:
        return (self.start, self.end) <= (other.start, other.end)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class CountWindow(Window):
    """A window of a number of elements. `id` counts the windows of a key.

    >>> CountWindow(3)
    CountWindow(id=3)
    """

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """Return the largest timestamp: no clock closes the window."""
        return MAX_WATERMARK

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return type(other) is CountWindow and self.id == other.id

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


class GlobalWindow(Window):
    """The single window that holds all elements of a key.

    >>> GlobalWindow.get() == GlobalWindow.get()
    True
    """

    __slots__ = ()

    def __init__(self) -> None:
        pass

    @staticmethod
    def get() -> GlobalWindow:
        """Return the global window."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """Return the largest timestamp."""
        return MAX_WATERMARK

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return type(other) is GlobalWindow

    def __repr__(self) -> str:
        return "GlobalWindow"


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes a `TimeWindow` as two 64-bit integers.

    >>> stream = BytesIO()
    >>> TimeWindowSerializer().serialize(TimeWindow(1, 2), stream)
    >>> TimeWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    TimeWindow(start=1, end=2)
    """

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Write start and end."""
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Read start and end."""
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Writes a `CountWindow` as its number."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Write the number."""
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Read the number."""
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes a `GlobalWindow` as one byte."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        """Write the byte."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Read the byte."""
        stream.read(1)
        return GlobalWindow()


def window_repr(name: str, *parameters: Any) -> str:
    """Return the `repr` of an assigner, as plans show it: `Name(parameter, ...)`."""
    return f"{name}({', '.join(map(str, parameters))})"
