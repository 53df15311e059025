"""`AsyncDataStream`: elements wait for answers from elsewhere, results leave on the task's thread.

What is in flight at the barrier is state, and is asked for again after a restore. What becomes ready belongs to the
epoch that emits it (I4).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from time import monotonic
from typing import Any, NoReturn

from rekindle.common.watermark_strategy import MAX_WATERMARK, MIN_WATERMARK, NO_TIMESTAMP
from rekindle.datastream.functions import AsyncFunctionDescriptor, RuntimeContext
from rekindle.datastream.state import ListState, ListStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.errors import JobCancelledError, StateAccessError
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext, RuntimeContextImpl
from rekindle.runtime.event_loop import EventLoopThread
from rekindle.runtime.isolation import isolator
from rekindle.runtime.operators.async_queue import Element, Item, Marks
from rekindle.runtime.operators.async_runner import AsyncRunner
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.operators.roles import Cancellable, Timed
from rekindle.runtime.operators.stateless import FunctionOperator
from rekindle.runtime.snapshot import SnapshotContext
from rekindle.serde import value_codec_for

#: How long an epoch waits until all of its elements are started. Longer than an epoch's target, so that the sources
#: give less; not for ever, so that a barrier passes: what is not started then is in flight too.
_PATIENCE_S = 2.0
#: With more elements than this that are not started the epoch waits all the same (I5).
_BACKLOG = 1 << 16

_IN_FLIGHT = "in-flight"
_SUBTASKS = "in-flight-subtasks"
# Kinds of entries in the snapshot: (kind, timestamp or watermark, record).
_ELEMENT, _WATERMARK, _IDLE, _END = range(4)


class AsyncWaitOperator(FunctionOperator, Timed, Cancellable):
    """`AsyncFunction`, ordered or not."""

    yields_tagged = False

    def __init__(
        self,
        node: OperatorNode,
        context: OperatorContext,
        descriptor: AsyncFunctionDescriptor,
        wake: Callable[[], None],
    ) -> None:
        super().__init__(node, context, descriptor.async_function)
        input_type = node.options.get("input_type")
        self._codec = value_codec_for(input_type, allow_pickle=context.operator_state.allow_pickle)
        self._descriptor = descriptor
        self._wake = wake
        self._isolate_input = isolator(input_type, context.settings.object_reuse)
        self._restored: list[tuple[int, int, bytes]] = []
        self._loop: EventLoopThread | None = None
        self._epoch_started = 0.0
        self._cancelled = False
        self._ended = False  # the end has come in; `end_held`: and has not gone out

    def make_runtime_context(self) -> RuntimeContext:
        """Without keyed state."""
        return _AsyncRuntimeContext(self.context)

    # -- life ---------------------------------------------------------------------------------------------------------

    def initialize_state(self, restored_id: int | None) -> None:
        self._in_flight: ListState[Any] = self._list(_IN_FLIGHT)
        self._subtasks: ListState[Any] = self.context.operator_state.get_union_list_state(
            reserved(ListStateDescriptor(_SUBTASKS, None))
        )
        super().initialize_state(restored_id)
        self._restored, ended = list(self._in_flight.get()), dict(self._subtasks.get())
        if len(ended) == self.node.parallelism:
            self._ended = ended[self.context.subtask]
        elif ended:
            self._restored = _rescaled(self._restored, self.current_watermark, all(ended.values()))

    def _list(self, name: str) -> ListState[Any]:
        return self.context.operator_state.get_list_state(reserved(ListStateDescriptor(name, None)))

    def open(self) -> None:
        """On the loop's thread, inside the running loop: what is made there belongs to it."""
        loop = EventLoopThread(f"async {self.context.task_name}")
        self._runner = AsyncRunner(self._descriptor, loop, self._wake, self._isolate_input, self.isolate)
        self._loop = loop
        if self._cancelled:
            self._runner.cancel()
        try:
            loop.call(lambda: self.function.open(self.runtime_context))
        except Exception as error:
            self._runner.cancel()
            raise OperatorFailure(self.name) from error
        self._put_back()

    def close(self) -> None:
        if self._loop is None:
            return
        self._runner.cancel()
        try:
            self._loop.call(self.function.close)
        finally:
            self._loop.close()

    def cancel(self) -> None:
        self._cancelled = True
        if self._loop is not None:
            self._runner.cancel()

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        if callable(getattr(self.function, "snapshot_state", None)):
            self._on_loop(lambda: super(AsyncWaitOperator, self).snapshot_user_state(context))
        entries = [entry for item in self._runner.in_flight() for entry in self._entries(item)]
        self._in_flight.update(entries)
        self._subtasks.update([(self.context.subtask, self._ended)])

    def _tell(self, method: str, checkpoint_id: int) -> None:
        if callable(getattr(self.function, method, None)):
            self._on_loop(lambda: super(AsyncWaitOperator, self)._tell(method, checkpoint_id))

    def _on_loop(self, call: Callable[[], None]) -> None:
        """Between two steps of the function's coroutines, so that neither sees the other's work half done."""
        assert self._loop is not None, "open comes first"
        self._loop.call(call)

    def _entries(self, item: Item) -> list[tuple[int, int, bytes]]:
        if isinstance(item, Element):
            return [(_ELEMENT, item.timestamp, self._codec.encode(item.record))]
        entries = []
        if item.watermark is not None:
            entries.append((_WATERMARK, item.watermark, b""))
        if item.idle:
            entries.append((_IDLE, 0, b""))
        if item.end:
            entries.append((_END, 0, b""))
        return entries

    def _put_back(self) -> None:
        """What was in flight is asked for again."""
        entries, self._restored = self._restored, []
        elements: list[Element] = []
        for kind, number, data in entries:
            if kind == _ELEMENT:
                elements.append(Element(self._codec.decode(data), number))
                continue
            self._runner.put(elements)
            elements = []
            if kind == _WATERMARK:
                self._queue_watermark(number)
            elif kind == _IDLE:
                self._runner.mark(_set_idle)
            else:
                self._queue_end()
        self._runner.put(elements)

    # -- data ---------------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        self._runner.put(list(map(Element, records, timestamps or repeat(NO_TIMESTAMP))))
        self._take(listening=False)
        deadline = self._epoch_started + _PATIENCE_S
        while self._runner.wait_for_start(deadline, _BACKLOG):
            self._take(listening=False)
        self._take(listening=True)

    def process_watermark(self, watermark: int) -> None:
        if not self.end_held and watermark > self.current_watermark:
            self._queue_watermark(watermark)

    def _queue_watermark(self, watermark: int) -> None:
        self.current_watermark = max(self.current_watermark, watermark)
        self._runner.mark(lambda marks: marks.advance(watermark))

    def process_idle(self) -> None:
        if not self.end_held:
            self._runner.mark(_set_idle)

    def emit_end(self) -> None:
        """The end waits for what is in flight, over several epochs if need be; said again it changes nothing."""
        if not self.end_held:
            self._queue_end()

    def _queue_end(self) -> None:
        self._ended = self.end_held = True
        self._runner.mark(_set_end)

    def release_end(self) -> None:
        while self._runner.wait_for_end():
            self._take(listening=False)
        self._take(listening=True)

    # -- time that passes by itself -----------------------------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """At once, when something is ready."""
        return 0 if self._runner.has_ready() else None

    def on_processing_time(self, now_ms: int) -> None:
        self._epoch_started = monotonic()
        self._take(listening=True)

    def _take(self, listening: bool) -> None:
        self._check()
        for item in self._runner.take(listening):
            if isinstance(item, Element):
                self.collector.extend(item.results, item.timestamp)  # isolated when they were ready
            else:
                self.collector.flush()
                self._emit_marks(item)
        self.collector.flush()

    def _check(self) -> None:
        failed = self._runner.failed()
        if failed is not None:
            raise OperatorFailure(self.name, failed.record, True) from failed.error
        if self._cancelled:
            raise JobCancelledError(f"{self.context.task_name} was cancelled")

    def _emit_marks(self, marks: Marks) -> None:
        if marks.watermark is not None:
            self.output.emit_watermark(marks.watermark)
        if marks.idle:
            self.output.emit_idle()
        if marks.end:
            self.end_held = False
            self.output.emit_end()


def _set_idle(marks: Marks) -> None:
    marks.idle = True


def _set_end(marks: Marks) -> None:
    marks.end = True


def _rescaled(entries: list[tuple[int, int, bytes]], watermark: int, ended: bool) -> list[tuple[int, int, bytes]]:
    """Elements of several subtasks: only what holds for all of them may follow (I6)."""
    elements = [entry for entry in entries if entry[0] == _ELEMENT]
    if ended:
        return [*elements, (_WATERMARK, MAX_WATERMARK, b""), (_END, 0, b"")]
    return [*elements, (_WATERMARK, watermark, b"")] if watermark > MIN_WATERMARK else elements


class _AsyncRuntimeContext(RuntimeContextImpl):
    """Without keyed state: many elements, of many keys, are in flight at a time."""

    def _keyed(self, state: str) -> NoReturn:
        raise StateAccessError(
            f"Operator '{self._context.node.name}' asks for keyed state '{state}', but an AsyncFunction has none: "
            "elements of many keys are in flight at a time. Use state in a process function before or after it."
        )
