"""Tumbling and sliding windows with their default trigger: arithmetic finds an element's windows, panes hold the rows.

A *pane* is one window: its rows by key. Consecutive elements mostly fall into the same panes, so the operator looks
them up only when an element lies outside the range of times for which they hold. A pane fires as a whole. Timers are
set for snapshots only; the operator does not wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, Final

from rekindle.common.watermark_strategy import MAX_WATERMARK, MIN_WATERMARK, NO_TIMESTAMP
from rekindle.datastream.windowing.operation import WindowOperation
from rekindle.datastream.windowing.time_assigners import AlignedWindows, event_time_of
from rekindle.datastream.windowing.windows import TimeWindow
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.key_bytes import owned_key
from rekindle.runtime.list_keys import hashable_key
from rekindle.runtime.operators.keyed import Selector
from rekindle.runtime.operators.output import OperatorFailure, failed_record
from rekindle.runtime.operators.roles import PreparesSnapshot
from rekindle.runtime.operators.windows.contents import ValueContents
from rekindle.runtime.operators.windows.firing_order import Deadlines, in_firing_order
from rekindle.runtime.operators.windows.namespaces import SHARED, Namespace
from rekindle.runtime.operators.windows.window_operator import WindowOperator
from rekindle.runtime.state.change_tracking import ROW_KEY, Row
from rekindle.runtime.state.row_columns import YOUNG, is_young
from rekindle.runtime.timers import TimerQueue

#: A range that contains no time.
_NO_TIMES: Final = (MAX_WATERMARK, MIN_WATERMARK)


class Pane:
    """One window with the rows of its keys."""

    __slots__ = ("end", "fired", "namespace", "retimed", "rows", "young")

    def __init__(self, start: int, end: int) -> None:
        self.namespace = start, end
        self.end = end
        self.rows: dict[Any, Row] = {}
        #: Keys whose rows are young.
        self.young: list[Any] = []
        #: Keys that have fired although the watermark has not passed the window: the restored watermark is earlier.
        self.fired: set[Any] = set()
        #: Whether the window has ended since the last snapshot: its timers must become clean-up timers.
        self.retimed = False


class AlignedWindowOperator(WindowOperator, PreparesSnapshot):
    """Windows that are the same for all keys, evaluated at their end and again with each late element."""

    def __init__(
        self, node: OperatorNode, context: OperatorContext, operation: WindowOperation, selector: Selector
    ) -> None:
        assigner = operation.assigner
        assert isinstance(assigner, AlignedWindows)
        self._size, self._slide, self._offset = assigner.size, assigner.slide, assigner.offset
        self.shares_elements = self._size > self._slide
        super().__init__(node, context, operation, selector)
        self._queue: TimerQueue = self.timers.event if self.event_time else self.timers.processing
        self._panes: dict[Namespace, Pane] = {}
        self._deadlines: Deadlines[Pane] = Deadlines()
        #: The panes of every time from `_low` to before `_high`; none of these panes has ended.
        self._low, self._high = _NO_TIMES
        self._current: tuple[Pane, ...] = ()

    def initialize_state(self, restored_id: int | None) -> None:
        super().initialize_state(restored_id)
        waiting = {(key, namespace) for time, key, namespace in self._queue.all() if time == namespace[1] - 1}
        for group in self.keyed.key_groups:
            for row in self.keyed.rows_of(group):
                key, namespace = row[ROW_KEY]
                if namespace is not SHARED and self.contents.present(row):
                    pane = self._find_or_add_pane(namespace)
                    pane.rows[key] = row
                    if (key, namespace) not in waiting:
                        pane.fired.add(key)
        for pane in self._panes.values():
            self._deadlines.add(pane.end - 1, pane)

    # -- elements -----------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        if self.event_time:
            # A window ends between two batches, never inside one.
            self._low, self._high = _NO_TIMES
            times: Any = timestamps if timestamps is not None else repeat(NO_TIMESTAMP)
        else:
            times = repeat(self.context.clock.wall_ms())
        remaining = iter(records)
        try:
            if isinstance(self.contents, ValueContents):
                self._combine_batch(self.contents, remaining, times)
            else:
                self._append_batch(remaining, times)
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        self.collector.flush()

    def _combine_batch(self, contents: ValueContents, records: Iterator[Any], times: Any) -> None:
        selector, combine, generation = self.selector, contents.combine, self.keyed.generation
        place, marked = contents.column.place, contents.column.mark
        low, high, panes = self._low, self._high, self._current
        for record, time in zip(records, times):  # noqa: B905 (times may be endless)
            if not low <= time < high:
                low, high, panes = self._panes_at(time, record)
            key = selector(record)
            for pane in panes:
                try:
                    row = pane.rows.get(key)
                except TypeError:
                    row = pane.rows.get(key := hashable_key(key))
                if row is None:
                    self._open_row(pane, key, record, time)
                    continue
                held = row[place]
                if held is None:
                    contents.add(row, record, time)
                    continue
                value = row[place] = combine(record, held)
                mark = row[marked]
                if (mark is not YOUNG and mark is not generation) or value is None:
                    contents.put(row, value)
        self._low, self._high, self._current = low, high, panes

    def _append_batch(self, records: Iterator[Any], times: Any) -> None:
        selector, add = self.selector, self.contents.add
        low, high, panes = self._low, self._high, self._current
        for record, time in zip(records, times):  # noqa: B905 (times may be endless)
            if not low <= time < high:
                low, high, panes = self._panes_at(time, record)
            key = selector(record)
            for pane in panes:
                try:
                    row = pane.rows.get(key)
                except TypeError:
                    row = pane.rows.get(key := hashable_key(key))
                if row is None:
                    self._open_row(pane, key, record, time)
                else:
                    add(row, record, time)
        self._low, self._high, self._current = low, high, panes

    def _panes_at(self, time: int, record: Any) -> tuple[int, int, tuple[Pane, ...]]:
        """Return the panes of an element's windows, with the range of times that have the same panes.

        If the element is in no window, or in one that has ended, this adds the element and returns an empty range.
        """
        if self.event_time:
            event_time_of(self.operation.assigner, time)
        size, slide = self._size, self._slide
        last = time - (time - self._offset) % slide
        starts = range(last, time - size, -slide)
        if not starts or (self.event_time and starts[-1] + size - 1 <= self.current_watermark):
            self._add_late(starts, time, record)
            return *_NO_TIMES, ()
        panes = tuple(self._scheduled_pane((start, start + size)) for start in starts)
        if any(pane.fired for pane in panes):
            self._add_late(starts, time, record)
            return *_NO_TIMES, ()
        first = starts[-1]
        return max(last, first - slide + size), min(last + slide, first + size), panes

    def _add_late(self, starts: range, time: int, record: Any) -> None:
        """Add an element to its windows one by one: a window that has ended fires at once, unless it was cleaned up."""
        watermark, key = self.current_watermark, hashable_key(self.selector(record))
        taken = False
        for start in starts:
            end = start + self._size
            if self.cleanup_time(end - 1) <= watermark:
                continue
            taken = True
            pane = self._scheduled_pane((start, end))
            row = pane.rows.get(key)
            if row is None:
                row = self._open_row(pane, key, record, time)
            else:
                self.contents.add(row, record, time)
            if end - 1 <= watermark:
                pane.fired.add(key)
                self._evaluate_row(key, pane, row)
            elif key in pane.fired:
                pane.fired.remove(key)
                self._queue.register(end - 1, key, pane.namespace)
        if not taken and self.event_time and time + self.lateness <= watermark:
            self.drop_late(record, time)

    def _find_or_add_pane(self, namespace: Namespace) -> Pane:
        pane = self._panes.get(namespace)
        if pane is None:
            pane = self._panes[namespace] = Pane(*namespace)
        return pane

    def _scheduled_pane(self, namespace: Namespace) -> Pane:
        pane = self._panes.get(namespace)
        if pane is None:
            pane = self._find_or_add_pane(namespace)
            end = pane.end - 1
            ended = self.event_time and end <= self.current_watermark
            self._deadlines.add(self.cleanup_time(end) if ended else end, pane)
        return pane

    def _open_row(self, pane: Pane, key: Any, record: Any, time: int) -> Row:
        key = owned_key(key)
        row = pane.rows[key] = self.contents.young(record, time)
        pane.young.append(key)
        return row

    def window_row(self, key: Any, namespace: Namespace) -> Row:
        """Return the row of a window for the function's state: a young row becomes a row of the backend first."""
        pane = self._panes.get(namespace)
        row = None if pane is None else pane.rows.get(key)
        if pane is None or row is None:
            return self.row_of(key, namespace)
        return self._adopt(pane, key, row) if is_young(row) else row

    def _adopt(self, pane: Pane, key: Any, young: Row) -> Row:
        row = pane.rows[key] = self.contents.adopt(young, key, pane.namespace)
        self._set_timer(pane, key)
        return row

    def _set_timer(self, pane: Pane, key: Any) -> None:
        end = pane.end - 1
        ended = key in pane.fired or (self.event_time and end <= self.current_watermark)
        time = self.cleanup_time(end) if ended else end
        if time < MAX_WATERMARK:
            self._queue.register(time, key, pane.namespace)

    # -- firing -------------------------------------------------------------------------------------------------------

    def first_processing_time(self) -> int | None:
        """Return the end of the first window; None in event time."""
        return None if self.event_time else self._deadlines.first()

    def fire_event_time(self, watermark: int) -> Iterator[int]:
        return self._fire_panes(watermark) if self.event_time else iter(())

    def fire_processing_time(self, passed_ms: int) -> Iterator[int]:
        return iter(()) if self.event_time else self._fire_panes(passed_ms)

    def _fire_panes(self, limit: int) -> Iterator[int]:
        self._low, self._high = _NO_TIMES
        for time, panes in self._deadlines.due(limit):
            for pane in sorted(panes, key=lambda pane: pane.namespace):
                if self._panes.get(pane.namespace) is pane:
                    self._on_deadline(pane, time)
            yield time
        self._queue.drop_due(limit)

    def _on_deadline(self, pane: Pane, time: int) -> None:
        end = pane.end - 1
        cleanup = self.cleanup_time(end)
        if time == end:
            self._evaluate_pane(pane)
            pane.fired.clear()
            pane.retimed = True
        if time == cleanup:
            self._close_pane(pane)
        elif cleanup < MAX_WATERMARK:
            self._deadlines.add(cleanup, pane)

    def _evaluate_pane(self, pane: Pane) -> None:
        rows = pane.rows
        keys = in_firing_order(rows if not pane.fired else rows.keys() - pane.fired)
        contents = self.contents
        if self.function is None and isinstance(contents, ValueContents):
            result, place = contents.result, contents.column.place
            results = self.collector.isolated(result(rows[key][place]) for key in keys)
            self.collector.extend(results, pane.end - 1)
        else:
            for key in keys:
                self._evaluate_row(key, pane, rows[key])

    def _evaluate_row(self, key: Any, pane: Pane, row: Row) -> None:
        self.evaluate(key, pane.namespace, TimeWindow(*pane.namespace), self.contents.evaluated(row))

    def _close_pane(self, pane: Pane) -> None:
        del self._panes[pane.namespace]
        clear = self.contents.clear
        if self.clears:
            window = TimeWindow(*pane.namespace)
            for key in in_firing_order(pane.rows):
                self.clear_user_state(key, pane.namespace, window)
        for row in pane.rows.values():
            if not is_young(row):
                clear(row)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Turn young rows into rows of the backend, and set the timers that the snapshot needs."""
        for pane in self._panes.values():
            for key in pane.young:
                row = pane.rows[key]
                if is_young(row):
                    self._adopt(pane, key, row)
            pane.young.clear()
            if pane.retimed:
                pane.retimed = False
                for key in pane.rows:
                    self._set_timer(pane, key)
