"""Tumbling and sliding windows with their own trigger: the windows of an element are arithmetic, rows are in panes.

A *pane* is one window: its rows by key. Consecutive elements mostly fall into the same windows, so these are looked up
only when an element falls out of the range in which they are the right ones. A timer is set when a key's row is opened,
not with every element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, Final

from rekindle.datastream.windowing.operation import WindowOperation
from rekindle.datastream.windowing.time_assigners import _AlignedWindows, event_time_of
from rekindle.datastream.windowing.windows import TimeWindow
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.exchange.chunk import NO_TIMESTAMP
from rekindle.runtime.keys import owned_key
from rekindle.runtime.operators.base import MAX_WATERMARK, MIN_WATERMARK, OUTPUT_RECORDS, OperatorFailure, failed_record
from rekindle.runtime.operators.keyed import Selector
from rekindle.runtime.operators.windows.contents import (
    CONTENTS,
    CONTENTS_MARK,
    AggregatedContents,
    ElementContents,
    ReducedContents,
)
from rekindle.runtime.operators.windows.operator import WindowOperator
from rekindle.runtime.state.changes import Row
from rekindle.runtime.timers import TimerQueue

#: A range that no time is in.
_NOWHERE: Final = (MAX_WATERMARK, MIN_WATERMARK)


class Pane:
    """One window: its rows by key."""

    __slots__ = ("end", "namespace", "rows")

    def __init__(self, start: int, end: int) -> None:
        self.namespace = (start, end)
        self.end = end
        self.rows: dict[Any, Row] = {}


class AlignedWindowOperator(WindowOperator):
    """Windows that are the same for all keys, evaluated at their end and with each late element."""

    def __init__(
        self, node: OperatorNode, context: OperatorContext, operation: WindowOperation, selector: Selector
    ) -> None:
        assigner = operation.assigner
        assert isinstance(assigner, _AlignedWindows)
        self._size, self._slide, self._offset = assigner._size, assigner._slide, assigner._offset
        self.shares_elements = self._size > self._slide
        super().__init__(node, context, operation, selector)
        self._queue: TimerQueue = self.timers.event if self.event_time else self.timers.processing
        self._panes: dict[tuple[int, int], Pane] = {}
        #: The panes that are right for times from `_low` to before `_high`; none of them is late.
        self._low, self._high = _NOWHERE
        self._current: tuple[Pane, ...] = ()

    def open(self) -> None:
        super().open()
        contents = self.contents
        self._add_batch: Callable[[list[Any], Any], None]
        if isinstance(contents, AggregatedContents):
            self._add_batch = self._aggregate_batch
        elif isinstance(contents, ReducedContents):
            self._add_batch = self._reduce_batch
        else:
            self._add_batch = self._append_batch

    # -- elements -----------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        if self.event_time:
            # Which windows are late changes between batches, never inside one.
            self._low, self._high = _NOWHERE
            times: Any = timestamps if timestamps is not None else repeat(NO_TIMESTAMP)
        else:
            times = repeat(self.context.clock.wall_ms())
        self._add_batch(records, times)
        self.results.flush()

    def _aggregate_batch(self, records: list[Any], times: Any) -> None:
        contents = self.contents
        assert isinstance(contents, AggregatedContents)
        selector, add, add_slowly = self.selector, contents.function.add, contents.add
        generation, mark = self.keyed.generation, self.keyed.mark
        low, high, panes = self._low, self._high, self._current
        remaining = iter(records)
        try:
            for record, time in zip(remaining, times):  # noqa: B905 (times may be endless)
                if not low <= time < high:
                    low, high, panes = self._panes_at(time, record)
                key = selector(record)
                for pane in panes:
                    row = pane.rows.get(key)
                    if row is None:
                        row = self._open_row(pane, key)
                    held = row[CONTENTS]
                    if held is None:
                        add_slowly(row, record, time)
                        continue
                    value = add(record, held)
                    if value is None:
                        contents.store(row, None)
                        continue
                    row[CONTENTS] = value
                    if row[CONTENTS_MARK] is not generation:
                        mark(row, CONTENTS_MARK)
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        self._low, self._high, self._current = low, high, panes

    def _reduce_batch(self, records: list[Any], times: Any) -> None:
        contents = self.contents
        assert isinstance(contents, ReducedContents)
        selector, reduce, add_slowly = self.selector, contents.reduce, contents.add
        generation, mark = self.keyed.generation, self.keyed.mark
        low, high, panes = self._low, self._high, self._current
        remaining = iter(records)
        try:
            for record, time in zip(remaining, times):  # noqa: B905 (times may be endless)
                if not low <= time < high:
                    low, high, panes = self._panes_at(time, record)
                key = selector(record)
                for pane in panes:
                    row = pane.rows.get(key)
                    if row is None:
                        row = self._open_row(pane, key)
                    held = row[CONTENTS]
                    if held is None:
                        add_slowly(row, record, time)
                        continue
                    value = reduce(held, record)
                    if value is None:
                        contents.store(row, None)
                        continue
                    row[CONTENTS] = value
                    if row[CONTENTS_MARK] is not generation:
                        mark(row, CONTENTS_MARK)
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        self._low, self._high, self._current = low, high, panes

    def _append_batch(self, records: list[Any], times: Any) -> None:
        contents = self.contents
        assert isinstance(contents, ElementContents)
        selector, add = self.selector, contents.add
        low, high, panes = self._low, self._high, self._current
        remaining = iter(records)
        try:
            for record, time in zip(remaining, times):  # noqa: B905 (times may be endless)
                if not low <= time < high:
                    low, high, panes = self._panes_at(time, record)
                key = selector(record)
                for pane in panes:
                    row = pane.rows.get(key)
                    if row is None:
                        row = self._open_row(pane, key)
                    add(row, record, time)
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        self._low, self._high, self._current = low, high, panes

    def _panes_at(self, time: int, record: Any) -> tuple[int, int, tuple[Pane, ...]]:
        """The panes of an element's windows, and from when to when they are the right ones for others.

        An element that is late for some of its windows is added here, and one after it asks again.
        """
        if self.event_time:
            event_time_of(self.operation.assigner, time)
        size, slide = self._size, self._slide
        last = time - (time - self._offset) % slide
        starts = range(last, time - size, -slide)
        if not starts or (self.event_time and starts[-1] + size - 1 <= self.current_watermark):
            self._add_late(starts, time, record)
            return *_NOWHERE, ()
        first = starts[-1]
        low, high = max(last, first - slide + size), min(last + slide, first + size)
        return low, high, tuple(self._pane((start, start + size)) for start in starts)

    def _add_late(self, starts: range, time: int, record: Any) -> None:
        """Add an element that has no windows, or some that have ended: those fire at once, if they have not gone."""
        watermark, key = self.current_watermark, self.selector(record)
        taken = False
        for start in starts:
            end = start + self._size
            if self.cleanup_time(end - 1) <= watermark:
                continue
            taken = True
            pane = self._pane((start, end))
            row = pane.rows.get(key) or self._open_row(pane, key)
            self.contents.add(row, record, time)
            if end - 1 <= watermark:
                self._evaluate_row(key, pane, row)
        if not taken and self.event_time and time + self.lateness <= watermark:
            self.drop_late(record, time)

    def _pane(self, namespace: tuple[int, int]) -> Pane:
        pane = self._panes.get(namespace)
        if pane is None:
            pane = self._panes[namespace] = Pane(*namespace)
        return pane

    def _open_row(self, pane: Pane, key: Any) -> Row:
        """The key's row of a window: a new one, with its timer, or one that was restored."""
        key = owned_key(key)
        row = self.keyed.load_row((key, pane.namespace))
        if not self.contents.present(row):
            time = pane.end - 1
            if self.event_time and time <= self.current_watermark:
                time = self.cleanup_time(time)
            self._queue.register(time, key, pane.namespace)
        pane.rows[key] = row
        return row

    # -- firing -------------------------------------------------------------------------------------------------------

    def fire_event_time(self, watermark: int) -> Iterator[int]:
        return self._fire_panes(watermark) if self.event_time else iter(())

    def fire_processing_time(self, now_ms: int) -> Iterator[int]:
        return iter(()) if self.event_time else self._fire_panes(now_ms)

    def _fire_panes(self, limit: int) -> Iterator[int]:
        self._low, self._high = _NOWHERE
        for time, entries in self._queue.buckets_due(limit):
            for key, namespace in entries:
                pane = self._pane(namespace)
                row = pane.rows.get(key) or self.keyed.load_row((key, namespace))
                end = namespace[1] - 1
                if time == end:
                    self._evaluate_row(key, pane, row)
                if time == self.cleanup_time(end):
                    self._close_row(key, pane, row)
                elif (cleanup := self.cleanup_time(end)) < MAX_WATERMARK:
                    self._queue.register(cleanup, key, namespace)
            yield time

    def _evaluate_row(self, key: Any, pane: Pane, row: Row) -> None:
        contents = self.contents
        if not contents.present(row):
            return
        if self.function is None:
            results = self.results
            results.add(contents.evaluated(row)[0], pane.end - 1)
            if len(results.values) >= OUTPUT_RECORDS:
                results.flush()
        else:
            self.evaluate(key, pane.namespace, TimeWindow(*pane.namespace), contents.evaluated(row))

    def _close_row(self, key: Any, pane: Pane, row: Row) -> None:
        self.contents.clear(row)
        pane.rows.pop(key, None)
        if not pane.rows:
            self._panes.pop(pane.namespace, None)
        if self._clear is not None:
            self.clear_user_state(key, pane.namespace, TimeWindow(*pane.namespace))
