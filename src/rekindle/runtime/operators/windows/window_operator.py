"""The base of the window operators: life cycle, clocks, lateness, evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream.windowing.operation import WindowOperation
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.copy_on_emit import isolator
from rekindle.runtime.key_bytes import owned_key
from rekindle.runtime.operators.keyed import Selector
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.operators.roles import Timed
from rekindle.runtime.operators.stateless import FunctionOperator, set_runtime_context_of
from rekindle.runtime.operators.windows.contents import Contents, contents_of
from rekindle.runtime.operators.windows.contexts import WindowContext
from rekindle.runtime.operators.windows.evaluation import clearing_of, evaluation_of
from rekindle.runtime.operators.windows.namespaces import SHARED, Namespace, Namespaces, namespaces_of
from rekindle.runtime.state.change_tracking import Row

LATE_RECORDS_DROPPED = "numLateRecordsDropped"


class WindowOperator(FunctionOperator, Timed):
    """Base of the window operators. `self.function` is the user's window function, or None."""

    #: Whether an element may be in several windows: then each window gets its own copy of an element that can change.
    shares_elements = True

    def __init__(
        self, node: OperatorNode, context: OperatorContext, operation: WindowOperation, selector: Selector
    ) -> None:
        super().__init__(node, context, operation.function)
        set_runtime_context_of(operation.contents.function, self.runtime_context)
        assert context.keyed is not None
        assert context.timers is not None
        self.operation = operation
        self.keyed = context.keyed
        self.timers = context.timers
        self.selector = selector
        self.lateness = operation.allowed_lateness_ms
        self.event_time = operation.assigner.is_event_time()
        self.namespaces: Namespaces = namespaces_of(operation.namespaces, operation.assigner.get_window_serializer())
        self.contents: Contents
        self.late_records = context.metrics.counter(LATE_RECORDS_DROPPED)

    # -- life ---------------------------------------------------------------------------------------------------------

    def initialize_state(self, restored_id: int | None) -> None:
        """Register the contents first: their columns are fixed."""
        isolate = isolator(self.operation.input_type, self.context.settings.object_reuse)
        self.contents = contents_of(self.operation, self.keyed, isolate if self.shares_elements else None)
        super().initialize_state(restored_id)

    def open(self) -> None:
        super().open()
        combining = self.operation.contents.function
        opener = getattr(combining, "open", None)
        if callable(opener):
            try:
                opener(self.runtime_context)
            except Exception as error:
                raise OperatorFailure(self.name) from error
        self.window_context = WindowContext(
            self.context, self, self.collector, self.window_row, merging=self.operation.merging
        )
        self._evaluate = evaluation_of(self.function, self.window_context)
        self._clear = clearing_of(self.function)
        self.clears = self._clear is not None

    def close(self) -> None:
        closer = getattr(self.operation.contents.function, "close", None)
        if callable(closer):
            closer()
        super().close()

    # -- time ---------------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """Fire the event-time timers that are due, at the end of BATCH mode all timers; pass the watermark on."""
        self.current_watermark = watermark
        due = [self.fire_event_time(watermark)]
        if self.context.ends_batch(watermark):
            due.append(self.fire_processing_time(watermark))
        for times in due:
            self._fire(times)
        self.output.emit_watermark(watermark)

    def next_due_ms(self) -> int | None:
        """Return when the millisecond of the earliest processing-time timer is over: until then it may get elements.

        In BATCH mode these timers wait for the end of the input.
        """
        first = None if self.context.batch else self.first_processing_time()
        return None if first is None else first + 1

    def first_processing_time(self) -> int | None:
        """Return the time of the earliest processing-time timer."""
        return self.timers.next_processing_time()

    def on_processing_time(self, now_ms: int) -> None:
        """Fire the processing-time timers that are due."""
        due = self.next_due_ms()
        if due is not None and due <= now_ms:
            self._fire(self.fire_processing_time(now_ms - 1))

    def _fire(self, times: Iterator[int]) -> None:
        """Exhaust an iterator that fires timers and yields each time after its windows are evaluated."""
        time: int | None = None
        try:
            for time in times:  # noqa: B007 (for the error)
                pass
        except OperatorFailure:
            raise
        except Exception as error:
            raise OperatorFailure(self.name, f"a window's timer after {time}", True) from error
        self.keyed.clear_current_key()
        self.collector.flush()

    def fire_event_time(self, watermark: int) -> Iterator[int]:
        """Fire event-time timers; yield each time when its timers have fired."""
        raise NotImplementedError

    def fire_processing_time(self, passed_ms: int) -> Iterator[int]:
        """Fire processing-time timers up to a millisecond that is over; yield each time when its timers have fired."""
        raise NotImplementedError

    def cleanup_time(self, max_timestamp: int) -> int:
        """Return when a window is cleaned up."""
        return min(max_timestamp + self.lateness, MAX_WATERMARK) if self.event_time else max_timestamp

    # -- rows ---------------------------------------------------------------------------------------------------------

    def row_of(self, key: Any, namespace: Namespace) -> Row:
        """Return the row of a key and namespace, which may be new."""
        row_key = (key, namespace)
        return self.keyed.front.get(row_key) or self.keyed.load_row((owned_key(key), namespace))

    def window_row(self, key: Any, namespace: Namespace) -> Row:
        """Return the row of a window that holds the state of the window function."""
        return self.row_of(key, namespace)

    # -- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, key: Any, namespace: Namespace, window: Any, elements: list[Any]) -> None:
        """Call the window function. While it runs, the current row is that of the key, not of the window."""
        time = window.max_timestamp()
        self._set_context(key, namespace, window, time)
        self.collector.add_all(self._evaluate(key, window, elements), time)

    def clear_user_state(self, key: Any, namespace: Namespace, window: Any) -> None:
        """Call the function's `clear` before the window is cleaned up."""
        if self._clear is not None:
            self._set_context(key, namespace, window, window.max_timestamp())
            self._clear(self.window_context)

    def _set_context(self, key: Any, namespace: Namespace, window: Any, time: int) -> None:
        context = self.window_context
        context.key, context.namespace, context.current_window, context.time = key, namespace, window, time
        self.keyed.row = self.row_of(key, SHARED)

    def drop_late(self, record: Any, timestamp: int) -> None:
        """Drop an element that is too late for all its windows, or emit it to the side output of late elements."""
        if self.operation.late_tag is None:
            self.late_records.inc()
        else:
            self.collector.add_without_isolation((self.operation.late_tag, record), timestamp)
