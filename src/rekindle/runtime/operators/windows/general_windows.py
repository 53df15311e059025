"""The general window operator: every assigner, trigger and evictor, the user's own included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from rekindle.common.watermark_strategy import MAX_WATERMARK, NO_TIMESTAMP
from rekindle.datastream.windowing.triggers import TriggerResult
from rekindle.runtime.context import user_timestamp
from rekindle.runtime.list_keys import hashable_key
from rekindle.runtime.operators.output import OperatorFailure, failed_record
from rekindle.runtime.operators.windows.contents import TimestampedContents
from rekindle.runtime.operators.windows.contexts import AssignerContext, RuntimeEvictorContext, RuntimeTriggerContext
from rekindle.runtime.operators.windows.evaluation import Eviction, combination_of
from rekindle.runtime.operators.windows.merging_windows import MergingWindows
from rekindle.runtime.operators.windows.namespaces import SHARED, Namespace
from rekindle.runtime.operators.windows.window_operator import WindowOperator
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.timers import Timer

CONTINUE = TriggerResult.CONTINUE


class GeneralWindowOperator(WindowOperator):
    """Flink's window operator, step by step: assign, merge, add, ask the trigger, evaluate, clean up."""

    def initialize_state(self, restored_id: int | None) -> None:
        super().initialize_state(restored_id)
        self._merging = MergingWindows(self) if self.operation.merging else None

    def open(self) -> None:
        operation = self.operation
        self._assigner_context = AssignerContext(self.context)
        self._trigger_context = RuntimeTriggerContext(self.context, self, self.row_of)
        self._eviction: Eviction | None = None
        if operation.evictor is not None:
            assert isinstance(self.contents, TimestampedContents)
            combine = combination_of(operation.contents)
            clocks = RuntimeEvictorContext(self.context, self)
            self._eviction = Eviction(operation.evictor, self.contents, combine, clocks)
        super().open()

    # -- elements -----------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        selector, element = self.selector, self._process_element
        remaining = iter(records)
        try:
            for record, timestamp in zip(remaining, timestamps or repeat(NO_TIMESTAMP)):  # noqa: B905 (repeat is endless)
                element(selector(record), record, timestamp)
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        self.collector.flush()

    def _process_element(self, key: Any, record: Any, timestamp: int) -> None:
        try:
            self.keyed.row = self.row_of(key, SHARED)
        except TypeError:
            self.keyed.row = self.row_of(key := hashable_key(key), SHARED)
        known = user_timestamp(timestamp)
        windows = self.operation.assigner.assign_windows(record, known, self._assigner_context)  # type: ignore[arg-type]
        if self._merging is None:
            taken = self._add_to_all(key, windows, record, timestamp)
        else:
            taken = self._add_merging(self._merging, key, windows, record, timestamp)
        if not taken and self.event_time and timestamp + self.lateness <= self.current_watermark:
            self.drop_late(record, timestamp)

    def _add_to_all(self, key: Any, windows: Iterable[Any], record: Any, timestamp: int) -> bool:
        taken = False
        for window in windows:
            if self.is_late(window):
                continue
            taken = True
            namespace = self.namespaces.pack(window)
            row = self.row_of(key, namespace)
            self.contents.add(row, record, timestamp)
            self._on_element(key, namespace, window, row, record, timestamp)
        return taken

    def _add_merging(
        self, merging: MergingWindows, key: Any, windows: Iterable[Any], record: Any, timestamp: int
    ) -> bool:
        taken = False
        for window in windows:
            added = merging.add(key, window, self._on_merge)
            if self.is_late(added.window):
                continue
            taken = True
            merging.persist(key, added)
            row = self.row_of(key, added.state)
            self.contents.add(row, record, timestamp)
            self._on_element(key, added.namespace, added.window, row, record, timestamp)
        return taken

    def is_late(self, window: Any) -> bool:
        """Whether the window was already cleaned up."""
        return self.event_time and self.cleanup_time(window.max_timestamp()) <= self.current_watermark

    def _on_element(self, key: Any, namespace: Namespace, window: Any, row: Row, record: Any, timestamp: int) -> None:
        context = self._set_trigger_context(key, namespace)
        result = self.operation.trigger.on_element(record, user_timestamp(timestamp), window, context)  # type: ignore[arg-type]
        if result is not CONTINUE:
            self._apply_result(result, key, namespace, window, row)
        self._register_cleanup(key, namespace, window)

    def _set_trigger_context(self, key: Any, namespace: Namespace) -> RuntimeTriggerContext:
        context = self._trigger_context
        context.key, context.namespace = key, namespace
        self.keyed.row = self.row_of(key, namespace)
        return context

    def _on_merge(self, key: Any, window: Any, namespace: Namespace, merged: list[tuple[Namespace, Any]]) -> None:
        """Tell the trigger that windows were merged; delete timers and trigger state of the old windows."""
        context = self._set_trigger_context(key, namespace)
        context.merged = [each for each, _ in merged]
        self.operation.trigger.on_merge(window, context)
        for old, old_window in merged:
            if old != namespace:
                self.operation.trigger.clear(old_window, self._set_trigger_context(key, old))
                self._delete_cleanup(key, old, old_window)

    # -- firing -------------------------------------------------------------------------------------------------------

    def fire_event_time(self, watermark: int) -> Iterator[int]:
        timers = self.timers
        due = timers.event.drain() if self.context.ends_batch(watermark) else timers.advance_watermark(watermark)
        return self._fire_timers(due, self.operation.trigger.on_event_time, self.event_time)

    def fire_processing_time(self, passed_ms: int) -> Iterator[int]:
        timers = self.timers
        due = timers.processing.drain() if self.context.ends_batch(passed_ms) else timers.due_processing_time(passed_ms)
        return self._fire_timers(due, self.operation.trigger.on_processing_time, not self.event_time)

    def _fire_timers(
        self, due: Iterator[Timer], ask: Callable[[int, Any, Any], TriggerResult], cleans_up: bool
    ) -> Iterator[int]:
        for time, key, namespace in due:
            state = namespace if self._merging is None else self._merging.state_of(key, namespace)
            if state is None:
                continue  # the window was merged or cleaned up, but its trigger left a timer
            window = self.namespaces.unpack(namespace)
            result = ask(time, window, self._set_trigger_context(key, namespace))
            row = self.row_of(key, state)
            if result is not CONTINUE:
                self._apply_result(result, key, namespace, window, row)
            if cleans_up:
                if time == self.cleanup_time(window.max_timestamp()):
                    self._clear_all(key, namespace, window, row)
                else:
                    # A fast operator may have written this state: it sets the clean-up timer when a window has ended.
                    self._register_cleanup(key, namespace, window)
            yield time

    def _apply_result(self, result: TriggerResult, key: Any, namespace: Namespace, window: Any, row: Row) -> None:
        if type(result) is not TriggerResult:
            raise TypeError(f"{self.operation.trigger} must return a TriggerResult, not {result!r}")
        fire, purge = result.value
        if fire and self.contents.present(row):
            if self._eviction is None:
                self.evaluate(key, namespace, window, self.contents.evaluated(row))
            else:
                self._eviction.evaluate(row, window, lambda elements: self.evaluate(key, namespace, window, elements))
        if purge:
            self.contents.clear(row)

    def _clear_all(self, key: Any, namespace: Namespace, window: Any, row: Row) -> None:
        self.contents.clear(row)
        self.operation.trigger.clear(window, self._set_trigger_context(key, namespace))
        self.clear_user_state(key, namespace, window)
        if self._merging is not None:
            self._merging.retire(key, namespace)

    # -- clean-up timers ----------------------------------------------------------------------------------------------

    def _register_cleanup(self, key: Any, namespace: Namespace, window: Any) -> None:
        time = self.cleanup_time(window.max_timestamp())
        if time < MAX_WATERMARK:
            timers = self.timers
            register = timers.register_event_time if self.event_time else timers.register_processing_time
            register(time, key, namespace)

    def _delete_cleanup(self, key: Any, namespace: Namespace, window: Any) -> None:
        time = self.cleanup_time(window.max_timestamp())
        timers = self.timers
        delete = timers.delete_event_time if self.event_time else timers.delete_processing_time
        delete(time, key, namespace)
