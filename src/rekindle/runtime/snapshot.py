"""The snapshot of an operator and of a task: captured at the barrier, encoded and written later.

An operator's state is captured in this order: timers (they go to raw keyed state), the user's `snapshot_state` with its
own raw state, managed operator state, managed keyed state; then the committables that wait for their commit. An error
cancels the captured parts, closes the context and declines the checkpoint; errors of this cleanup are kept as
suppressed ones. `snapshot_upload` writes what was captured.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from rekindle.checkpoint.committables import StoredCommittable
from rekindle.checkpoint.compaction import Rewrites
from rekindle.checkpoint.manifest import PartKind
from rekindle.checkpoint.part_formats import SourceState, TaskState, holds_union
from rekindle.checkpoint.parts import CapturedOperator, write_subtask
from rekindle.checkpoint.statefile import Part, PartWriter
from rekindle.clock import Clock
from rekindle.crash_points import CrashPoint, reach
from rekindle.datastream.functions import KeyedStateStore
from rekindle.datastream.functions.checkpointed import StateInitializationContext, StateSnapshotContext
from rekindle.datastream.functions.raw_state import KeyGroupStatePartitionStreamProvider, StatePartitionStreamProvider
from rekindle.datastream.state import OperatorStateStore
from rekindle.errors import RekindleError, StateAccessError
from rekindle.protocol import CheckpointOrder, WrittenOperator
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.raw_streams import RawKeyedOutput, RawOperatorOutput
from rekindle.runtime.state.keyed_state_format import GroupCapture

_encode = msgspec.msgpack.Encoder().encode

_CUSTOM_RAW_KEYED = (
    "Attempting to snapshot timers to raw keyed state, but this operator has custom raw keyed state to write. "
    "Keep that in managed keyed state, or set the timers in another operator."
)


class SnapshotDeclinedError(RekindleError):
    """A snapshot failed (reason CHECKPOINT_DECLINED); `__cause__` is the error, `suppressed` those of the cleanup."""

    def __init__(self, checkpoint_id: int, operator: str) -> None:
        super().__init__(f"Could not complete snapshot {checkpoint_id} for operator {operator}.")
        self.operator = operator
        self.suppressed: list[Exception] = []

    def clean_up(self, work: Callable[[], None]) -> None:
        """Do some cleanup after the failure; keep its error as suppressed, so that it does not hide the cause."""
        try:
            work()
        except Exception as error:
            self.suppressed.append(error)

    def full_message(self) -> str:
        """The message with the cause and the suppressed errors.

        >>> declined = SnapshotDeclinedError(7, "count (1/2)")
        >>> declined.__cause__ = ValueError("no")
        >>> declined.clean_up(lambda: {}["x"])
        >>> declined.full_message()
        "Could not complete snapshot 7 for operator count (1/2). ValueError: no (suppressed: KeyError: 'x')"
        """
        cause = self.__cause__
        messages = [str(self)] if cause is None else [str(self), _one_line(cause)]
        if self.suppressed:
            messages.append(f"(suppressed: {'; '.join(map(_one_line, self.suppressed))})")
        return " ".join(messages)


def _one_line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


class SnapshotContext(StateSnapshotContext):
    """The context of a function's `snapshot_state`; closed when that returns."""

    def __init__(self, order: CheckpointOrder, context: OperatorContext) -> None:
        self._order = order
        self._context = context
        self._raw_keyed: RawKeyedOutput | None = None
        self._raw_operator: RawOperatorOutput | None = None
        self.closed = False

    def get_checkpoint_id(self) -> int:
        return self._order.id

    def get_checkpoint_timestamp(self) -> int:
        return self._order.timestamp_ms

    def get_raw_keyed_operator_state_output(self) -> RawKeyedOutput:
        keyed, timers = self._context.keyed, self._context.timers
        if keyed is None:
            raise StateAccessError(
                f"Operator '{self._context.node.name}' writes raw keyed state, but its input is not keyed: call "
                "key_by(...) before it, or write raw operator state."
            )
        if timers is not None and timers.any():
            raise StateAccessError(_CUSTOM_RAW_KEYED)
        if self._raw_keyed is None:
            self._check_open()
            self._raw_keyed = RawKeyedOutput(keyed.key_groups, self._context.node.max_parallelism)
        return self._raw_keyed

    def get_raw_operator_state_output(self) -> RawOperatorOutput:
        if self._raw_operator is None:
            self._check_open()
            self._raw_operator = RawOperatorOutput()
        return self._raw_operator

    def _check_open(self) -> None:
        if self.closed:
            raise StateAccessError(f"Snapshot {self._order.id} is over: raw state is written in snapshot_state().")

    def written(self) -> tuple[RawKeyedOutput | None, RawOperatorOutput | None]:
        """The streams that the function has asked for."""
        return self._raw_keyed, self._raw_operator

    def close(self) -> None:
        """Close the raw streams: `snapshot_state` has returned."""
        self.closed = True
        for output in self.written():
            if output is not None:
                output.close()


class InitializationContext(StateInitializationContext):
    """The context of a function's `initialize_state`, for a new or a restored function."""

    def __init__(self, context: OperatorContext, restored_id: int | None) -> None:
        self._context = context
        self._restored_id = restored_id if context.has_restored_state else None

    def is_restored(self) -> bool:
        return self._restored_id is not None

    def get_restored_checkpoint_id(self) -> int | None:
        return self._restored_id

    def is_checkpointing_enabled(self) -> bool:
        return self._context.checkpointed

    def get_operator_state_store(self) -> OperatorStateStore:
        return self._context.operator_state

    def get_keyed_state_store(self) -> KeyedStateStore:
        return self._context.runtime_context()

    def get_raw_keyed_state_inputs(self) -> list[KeyGroupStatePartitionStreamProvider]:
        return self._context.raw_inputs.take_keyed()

    def get_raw_operator_state_inputs(self) -> list[StatePartitionStreamProvider]:
        return self._context.raw_inputs.take_operator()


@dataclass
class CaptureInput:
    """The sources of an operator's snapshot: its context, the user's method, and the engine's own parts."""

    uid: str
    name: str
    context: OperatorContext
    user_snapshot: Callable[[SnapshotContext], None]
    source: Callable[[], SourceState | None] = field(default=lambda: None)
    task: Callable[[], TaskState | None] = field(default=lambda: None)
    committables: Callable[[int], Sequence[StoredCommittable]] = field(default=lambda checkpoint_id: ())
    #: The chunks that wait in front of the task, encoded; with the head of its chain.
    in_flight: Callable[[], bytes | None] = field(default=lambda: None)


def capture_operator(operator: CaptureInput, order: CheckpointOrder) -> CapturedOperator:
    """Capture one operator's state: the synchronous part of its snapshot, on the task's thread."""
    captured = CapturedOperator(operator.context.subtask, order.id, uid=operator.uid, name=operator.name)
    context = SnapshotContext(order, operator.context)
    try:
        rewrites = _rewrites(operator.context, order, captured)
        _capture_timers(operator, order, rewrites, captured)
        operator.user_snapshot(context)
        _capture_raw_state(context, captured)
        _capture_operator_state(operator.context, captured)
        _capture_keyed_state(operator.context, order, rewrites, captured)
        captured.add_list("committables", operator.committables(order.id))
        source, task = operator.source(), operator.task()
        in_flight = operator.in_flight()
        captured.add("source", source.encode() if source is not None else None)
        captured.add("task", task.encode() if task is not None else None)
        captured.add("in_flight", in_flight)
        captured.has_in_flight = in_flight is not None or bool(source is not None and source.in_flight)
    except Exception as error:
        declined = SnapshotDeclinedError(order.id, operator.name)
        declined.clean_up(captured.cancel)
        declined.clean_up(context.close)
        raise declined from error
    return captured


def _rewrites(context: OperatorContext, order: CheckpointOrder, captured: CapturedOperator) -> Rewrites | None:
    """The key groups to write whole on top of the base checkpoint; None: write all of them, without a base."""
    if context.keyed is None or order.savepoint:
        return None
    inventories, keys = context.keyed.inventories, context.keyed.keys_per_group()
    rewrites = inventories.rewrites(order.base_id, keys) if order.base_id is not None else None
    captured.on_written = inventories.recorder(order.id, order.base_id if rewrites is not None else None, keys)
    return rewrites


def _capture_timers(
    operator: CaptureInput, order: CheckpointOrder, rewrites: Rewrites | None, captured: CapturedOperator
) -> None:
    timers = operator.context.timers
    if timers is None:
        return
    if operator.context.keyed is None:
        raise StateAccessError(
            f"The keyed state backend should be available with the timers of {operator.name}: timers belong to keys; "
            "call key_by(...) before it."
        )
    if order.savepoint:
        captured.add_groups("timers", timers.snapshot().encode())
        return
    if rewrites is not None and not rewrites.timers and order.base_id is not None:
        delta = timers.snapshot_delta(order.id, order.base_id)
        if delta is not None:
            captured.add_groups("timers", delta.encode(), PartKind.DELTA)
            return
    stored_groups = _stored_timer_groups(operator.context, order, rewrites)
    captured.add_groups("timers", timers.snapshot_whole(order.id, order.base_id, stored_groups).encode())


def _stored_timer_groups(
    context: OperatorContext, order: CheckpointOrder, rewrites: Rewrites | None
) -> Collection[int]:
    """Key groups whose timers the base checkpoint may hold: a whole snapshot of timers replaces these."""
    if order.base_id is None or context.keyed is None:
        return ()
    return rewrites.timer_groups if rewrites is not None else context.keyed.key_groups


def _capture_raw_state(context: SnapshotContext, captured: CapturedOperator) -> None:
    keyed, operator = context.written()
    context.close()  # user code can no longer write: the bytes may be read later
    if keyed is not None:
        captured.add_groups("raw_keyed", keyed.parts())
    if operator is not None:
        captured.add_list("raw_operator", operator.parts())


def _capture_operator_state(context: OperatorContext, captured: CapturedOperator) -> None:
    if context.operator_state.registered_names():
        data = context.operator_state.snapshot()  # encoded now: user code may change it later (I13)
        captured.union = holds_union(data)
        captured.add("operator_state", data)


def _capture_keyed_state(
    context: OperatorContext, order: CheckpointOrder, rewrites: Rewrites | None, captured: CapturedOperator
) -> None:
    keyed = context.keyed
    if keyed is None:
        return
    if rewrites is None:
        whole = keyed.snapshot_aside(order.id) if order.savepoint else keyed.snapshot_whole(order.id)
        captured.add_groups("keyed", _encoded(whole))
        return
    delta = keyed.snapshot_delta(order.id, order.base_id, rewrites.key_groups)
    captured.add_groups("keyed", _encoded(delta.whole))
    captured.add_groups("keyed", delta.encode(), PartKind.DELTA)


def _encoded(groups: list[GroupCapture]) -> Iterator[tuple[int, Part]]:
    """Encode key groups one by one, and free each: captured state and its bytes need not all be in memory."""
    groups.reverse()
    while groups:
        group = groups.pop()
        reach(CrashPoint.BEFORE_GROUP)
        yield group.key_group, group.encode()
        reach(CrashPoint.AFTER_GROUP)


@dataclass(frozen=True)
class CapturedTask:
    """A task's snapshot after its synchronous part."""

    order: CheckpointOrder
    name: str
    chain: int
    subtask: int
    operators: list[CapturedOperator]
    #: Whether the task's input had ended (I9).
    finished: bool

    def cancel(self) -> None:
        """Drop the captured state of all operators."""
        for operator in self.operators:
            operator.cancel()

    def write(self, writer_for: Callable[[CapturedOperator], PartWriter], clock: Clock) -> list[WrittenOperator]:
        """The asynchronous part: encode and store the state of each operator, with the writer that is made for it."""
        written = []
        for operator in self.operators:
            started = clock.monotonic()
            state = write_subtask(writer_for(operator), operator, finished=self.finished)
            async_ms = (clock.monotonic() - started) * 1000
            written.append(WrittenOperator(operator.uid, _encode(state), operator.sync_ms, async_ms))
        return written
