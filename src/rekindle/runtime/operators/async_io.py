"""The operator of `AsyncDataStream`: elements wait for asynchronous calls, the task's thread emits their results.

Elements in flight at the barrier are state: after a restore the function is called for them again. A result belongs to
the epoch that emits it (I4).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, NoReturn, TypeAlias

from rekindle.common.watermark_strategy import MAX_WATERMARK, MIN_WATERMARK, NO_TIMESTAMP
from rekindle.datastream.functions import AsyncFunctionDescriptor, RuntimeContext
from rekindle.datastream.operator_details import AsyncWaitDetails
from rekindle.datastream.state import ListState, ListStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.errors import JobCancelledError, StateAccessError
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext, RuntimeContextImpl
from rekindle.runtime.copy_on_emit import isolator
from rekindle.runtime.operators.async_event_loop import EventLoopThread
from rekindle.runtime.operators.async_queue import Element, Item, Marks
from rekindle.runtime.operators.async_runner import AsyncRunner
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.operators.roles import Cancellable, Timed
from rekindle.runtime.operators.stateless import FunctionOperator
from rekindle.runtime.snapshot import SnapshotContext
from rekindle.runtime.state.evolution import evolved_elements
from rekindle.serde import value_codec_for
from rekindle.serde.type_schema import encode_schema

#: How long an epoch waits until the calls for all of its elements have started. Longer than an epoch's target, so that
#: the sources emit less; limited, so that a barrier passes: elements whose calls have not started are in flight too.
_START_WAIT_S = 2.0
#: With more waiting elements than this the epoch waits in any case (I5).
_MAX_WAITING = 1 << 16

_IN_FLIGHT_STATE = "in-flight"
_SUBTASKS_STATE = "in-flight-subtasks"
# Kinds of entries in the snapshot: (kind, timestamp or watermark, record).
_ELEMENT, _WATERMARK, _IDLE, _END = range(4)
_Entry: TypeAlias = tuple[int, int, bytes]


class AsyncWaitOperator(FunctionOperator, Timed, Cancellable):
    """Runs an `AsyncFunction`, with ordered or unordered results."""

    yields_tagged = False

    def __init__(
        self,
        node: OperatorNode,
        context: OperatorContext,
        descriptor: AsyncFunctionDescriptor,
        wake: Callable[[], None],
    ) -> None:
        super().__init__(node, context, descriptor.async_function)
        input_type = node.described_as(AsyncWaitDetails).input_type
        self._codec = value_codec_for(input_type, allow_pickle=context.operator_state.allow_pickle)
        self._descriptor = descriptor
        self._wake = wake
        self._isolate_input = isolator(input_type, context.settings.object_reuse)
        self._restored: list[_Entry] = []
        self._loop: EventLoopThread | None = None
        self._epoch_started = 0.0
        self._cancelled = False
        self._ended = False  # whether the end of the input has come in; `end_held`: and was not passed on

    def make_runtime_context(self) -> RuntimeContext:
        """Return a runtime context without keyed state."""
        return _AsyncRuntimeContext(self.context)

    # -- life ---------------------------------------------------------------------------------------------------------

    def initialize_state(self, restored_id: int | None) -> None:
        self._in_flight: ListState[Any] = self._list(_IN_FLIGHT_STATE)
        self._subtasks: ListState[Any] = self.context.operator_state.get_union_list_state(
            reserved(ListStateDescriptor(_SUBTASKS_STATE, None))
        )
        super().initialize_state(restored_id)
        subtasks = self._subtasks.get()
        ended = {subtask: flag for subtask, flag, _ in subtasks}
        schemas = {subtask: schema for subtask, _, schema in subtasks}
        self._restored = self._evolved(list(self._in_flight.get()), schemas)
        if len(ended) == self.node.parallelism:
            self._ended = ended[self.context.subtask]
        elif ended:
            self._restored = _rescaled(self._restored, self.current_watermark, all(ended.values()))

    def _list(self, name: str) -> ListState[Any]:
        return self.context.operator_state.get_list_state(reserved(ListStateDescriptor(name, None)))

    def _evolved(self, entries: list[_Entry], schemas: dict[int, bytes]) -> list[_Entry]:
        """The entries with elements as this program's codec reads them; `schemas` are by subtask."""
        if not entries:
            return entries
        schema = schemas.get(self.context.subtask, next(iter(schemas.values())))
        elements = [data for kind, _, data in entries if kind == _ELEMENT]
        allow_pickle = self.context.operator_state.allow_pickle
        read = iter(evolved_elements("The elements in flight", elements, schema, self._codec, allow_pickle))
        return [(kind, number, next(read) if kind == _ELEMENT else data) for kind, number, data in entries]

    def open(self) -> None:
        """Open the function on the loop's thread, inside the running loop, to which its clients then belong."""
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
        self._call_again()

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
        self._subtasks.update([(self.context.subtask, self._ended, encode_schema(self._codec.schema))])

    def _notify_function(self, method: str, checkpoint_id: int) -> None:
        if callable(getattr(self.function, method, None)):
            self._on_loop(lambda: super(AsyncWaitOperator, self)._notify_function(method, checkpoint_id))

    def _on_loop(self, call: Callable[[], None]) -> None:
        """Run a call on the loop's thread, between two steps of the function's coroutines."""
        assert self._loop is not None, "open comes first"
        self._loop.call(call)

    def _entries(self, item: Item) -> list[_Entry]:
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

    def _call_again(self) -> None:
        """Call the function again for the elements that were in flight."""
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
        self._emit_ready(listening=False)
        deadline = self._epoch_started + _START_WAIT_S
        while self._runner.wait_for_start(deadline, _MAX_WAITING):
            self._emit_ready(listening=False)
        self._emit_ready(listening=True)

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
        """Queue the end behind the elements in flight, over several epochs if need be; repeat it without effect."""
        if not self.end_held:
            self._queue_end()

    def _queue_end(self) -> None:
        self._ended = self.end_held = True
        self._runner.mark(_set_end)

    def release_end(self) -> None:
        while self._runner.wait_for_end():
            self._emit_ready(listening=False)
        self._emit_ready(listening=True)

    # -- processing time ----------------------------------------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """Return 0 (at once) if a result is ready."""
        return 0 if self._runner.has_ready() else None

    def on_processing_time(self, now_ms: int) -> None:
        self._epoch_started = self._runner.now()
        self._emit_ready(listening=True)

    def _emit_ready(self, listening: bool) -> None:
        self._raise_if_failed()
        for item in self._runner.take(listening):
            if isinstance(item, Element):
                self.collector.extend(item.results, item.timestamp)  # isolated when they became ready
            else:
                self.collector.flush()
                self._emit_marks(item)
        self.collector.flush()

    def _raise_if_failed(self) -> None:
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


def _rescaled(entries: list[_Entry], watermark: int, ended: bool) -> list[_Entry]:
    """Return the elements of several subtasks, followed only by marks that hold for all of these subtasks (I6)."""
    elements = [entry for entry in entries if entry[0] == _ELEMENT]
    if ended:
        return [*elements, (_WATERMARK, MAX_WATERMARK, b""), (_END, 0, b"")]
    return [*elements, (_WATERMARK, watermark, b"")] if watermark > MIN_WATERMARK else elements


class _AsyncRuntimeContext(RuntimeContextImpl):
    """A runtime context without keyed state: elements of many keys are in flight at a time."""

    def _keyed(self, state: str) -> NoReturn:
        raise StateAccessError(
            f"Operator '{self._context.node.name}' asks for keyed state '{state}', but an AsyncFunction has none: "
            "elements of many keys are in flight at a time. Use state in a process function before or after it."
        )
