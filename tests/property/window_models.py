"""Models of windows in plain Python, and the random actions that they and the operators take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from rekindle.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)

Window = tuple[int, int]


@dataclass(frozen=True)
class Aligned:
    """Tumbling or sliding windows."""

    size: int
    slide: int
    offset: int

    def assigner(self) -> WindowAssigner[Any, Any]:
        if self.size == self.slide:
            return TumblingEventTimeWindows.of(self.size, self.offset % self.size)
        return SlidingEventTimeWindows.of(self.size, self.slide, self.offset)

    def windows(self, time: int) -> list[Window]:
        candidates = range(time - self.size - self.slide, time + self.slide + 1)
        starts = [start for start in candidates if (start - self.offset) % self.slide == 0]
        return [(start, start + self.size) for start in reversed(starts) if start <= time < start + self.size]


@dataclass(frozen=True)
class Sessions:
    """Session windows; with an odd number the gap of an element is longer, if gaps are dynamic."""

    gap: int
    dynamic: bool

    def assigner(self) -> WindowAssigner[Any, Any]:
        gap = self.gap
        if self.dynamic:
            return EventTimeSessionWindows.with_dynamic_gap(lambda element: gap + element[1] % 2 * 3)
        return EventTimeSessionWindows.with_gap(gap)

    def gap_of(self, number: int) -> int:
        return self.gap + number % 2 * 3 if self.dynamic else self.gap


class Model:
    """Windows as lists of numbers in one dict."""

    def __init__(self, windows: Aligned | Sessions, lateness: int, shown: Callable[[str, Window, list[int]], Any]):
        self._windows = windows
        self._lateness = lateness
        self._shown = shown
        self._held: dict[tuple[str, Window], list[int]] = {}
        self._watermark = -(2**63)

    def element(self, key: str, time: int, number: int) -> list[Any]:
        windows = self._windows
        if isinstance(windows, Aligned):
            found = [(key, window) for window in windows.windows(time)]
        else:
            found = [self._session(key, (time, time + windows.gap_of(number)))]
        found = [(key, window) for key, window in found if window[1] - 1 + self._lateness > self._watermark]
        out = []
        for pane in found:
            self._held.setdefault(pane, []).append(number)
            if pane[1][1] - 1 <= self._watermark:
                out.append(self._fired(pane))
        if not found and time + self._lateness <= self._watermark:
            out.append(("late", (key, number), time))
        return out

    def _session(self, key: str, new: Window) -> tuple[str, Window]:
        met = sorted(w for k, w in self._held if k == key and w[0] <= new[1] and w[1] >= new[0])
        merged = min([new, *met])[0], max(end for _, end in [new, *met])
        if met:
            numbers = [number for window in met for number in self._held.pop((key, window))]
            self._held[key, merged] = numbers
        return key, merged

    def watermark(self, watermark: int) -> list[Any]:
        due = [pane for pane in self._held if self._watermark < pane[1][1] - 1 <= watermark]
        self._watermark = watermark
        out = [self._fired(pane) for pane in sorted(due, key=lambda pane: (pane[1][1], pane[0]))]
        for pane in [pane for pane in self._held if pane[1][1] - 1 + self._lateness <= watermark]:
            del self._held[pane]
        return out

    def _fired(self, pane: tuple[str, Window]) -> Any:
        key, window = pane
        return self._shown(key, window, list(self._held[pane])), window[1] - 1


keys = st.sampled_from(["a", "b", "c"])
elements = st.tuples(st.just("element"), keys, st.integers(-5, 60))
watermarks = st.tuples(st.just("watermark"), st.integers(0, 15))
hand_overs = st.tuples(st.just("hand over"), st.integers(0, 2))
actions = st.lists(st.one_of(elements, elements, elements, watermarks, hand_overs), max_size=60)
aligned = st.one_of(
    st.builds(lambda size, offset: Aligned(size, size, offset % size), st.integers(1, 20), st.integers(0, 30)),
    st.builds(Aligned, st.integers(1, 20), st.integers(1, 12), st.integers(-5, 5)),
)
lateness = st.sampled_from([0, 0, 1, 7, 100])
