"""One operator's part of a checkpoint, and its way back.

At the barrier, in this order: timers (they go to raw keyed state), the user's `snapshot_state` with its own raw state,
managed operator state, managed keyed state; then what waits to be committed. Each kind of state gives a future: what is
prepared at the barrier is encoded and written later. Whatever fails cancels the futures, closes the context and
declines the checkpoint; later errors are kept as suppressed ones.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rekindle.checkpoint.committables import StoredCommittable
from rekindle.checkpoint.manifest import SubtaskState
from rekindle.checkpoint.part_formats import SourceState, TaskState
from rekindle.checkpoint.parts import SubtaskParts
from rekindle.datastream.functions import KeyedStateStore
from rekindle.datastream.functions.checkpointed import StateInitializationContext, StateSnapshotContext
from rekindle.datastream.functions.raw_state import KeyGroupStatePartitionStreamProvider, StatePartitionStreamProvider
from rekindle.datastream.state import OperatorStateStore
from rekindle.errors import RekindleError, StateAccessError
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.raw_streams import RawKeyedOutput, RawOperatorOutput
from rekindle.runtime.state.format import CapturedGroup
from rekindle.runtime.state.inventory import SnapshotPlan

T = TypeVar("T")

_CUSTOM_RAW_KEYED = (
    "Attempting to snapshot timers to raw keyed state, but this operator has custom raw keyed state to write. "
    "Keep that in managed keyed state, or set the timers in another operator."
)


class SnapshotFuture(Generic[T]):
    """Work that was prepared at the barrier and is done once, later; cancelled work is never done."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work

    @property
    def cancelled(self) -> bool:
        """Whether the work was given up."""
        return self._work is None

    def run(self) -> T:
        """Do the work."""
        assert self._work is not None, "cancelled, or run before"
        work, self._work = self._work, None
        return work()

    def cancel(self) -> None:
        """Give the work up and let go of what it holds."""
        self._work = None


GroupParts = Iterable[tuple[int, bytes]]


@dataclass
class KeyedParts:
    """Keyed state or timers: key groups that are written whole, and what changed in the others."""

    full: GroupParts = ()
    delta: GroupParts = ()


@dataclass
class RawKeyedParts:
    """Timers, or what the function has written itself: never both."""

    timers: KeyedParts = field(default_factory=KeyedParts)
    custom: GroupParts = ()


@dataclass
class OperatorSnapshotFutures:
    """Four futures, one per kind of state; None where an operator has none of that kind."""

    raw_keyed: SnapshotFuture[RawKeyedParts] | None = None
    raw_operator: SnapshotFuture[list[bytes]] | None = None
    managed_operator: SnapshotFuture[bytes] | None = None
    managed_keyed: SnapshotFuture[KeyedParts] | None = None
    committables: Sequence[StoredCommittable] = ()
    source: bytes | None = None
    task: bytes | None = None
    in_flight: bytes | None = None
    has_in_flight: bool = False
    #: Told what was written.
    on_written: Callable[[SubtaskState], None] = lambda state: None

    def cancel(self) -> None:
        """Give all of them up."""
        for future in (self.raw_keyed, self.raw_operator, self.managed_operator, self.managed_keyed):
            if future is not None:
                future.cancel()

    def parts(self, subtask: int, checkpoint_id: int, finished: bool) -> SubtaskParts:
        """The asynchronous part: run the futures."""
        keyed = self.managed_keyed.run() if self.managed_keyed else KeyedParts()
        raw_keyed = self.raw_keyed.run() if self.raw_keyed else RawKeyedParts()
        return SubtaskParts(
            subtask=subtask,
            checkpoint_id=checkpoint_id,
            finished=finished,
            keyed_full=keyed.full,
            keyed_delta=keyed.delta,
            timers=raw_keyed.timers.full,
            timers_delta=raw_keyed.timers.delta,
            raw_keyed=raw_keyed.custom,
            operator_state=self.managed_operator.run() if self.managed_operator else None,
            raw_operator=self.raw_operator.run() if self.raw_operator else [],
            source=self.source,
            task=self.task,
            in_flight=self.in_flight,
            has_in_flight=self.has_in_flight,
            committables=self.committables,
            on_written=self.on_written,
        )


class SnapshotDeclinedError(RekindleError):
    """Reason CHECKPOINT_DECLINED; the cause is chained, errors while cleaning up are in `suppressed`."""

    def __init__(self, checkpoint_id: int, operator: str) -> None:
        super().__init__(f"Could not complete snapshot {checkpoint_id} for operator {operator}.")
        self.operator = operator
        self.suppressed: list[Exception] = []

    def clean_up(self, work: Callable[[], None]) -> None:
        """Do what the failure makes necessary; what goes wrong with it does not hide the cause."""
        try:
            work()
        except Exception as error:
            self.suppressed.append(error)

    def in_words(self) -> str:
        """The sentence, the cause, and what went wrong after it.

        >>> declined = SnapshotDeclinedError(7, "count (1/2)")
        >>> declined.__cause__ = ValueError("no")
        >>> declined.clean_up(lambda: {}["x"])
        >>> declined.in_words()
        "Could not complete snapshot 7 for operator count (1/2). ValueError: no (suppressed: KeyError: 'x')"
        """
        cause = self.__cause__
        words = [str(self)] if cause is None else [str(self), _said(cause)]
        if self.suppressed:
            words.append(f"(suppressed: {'; '.join(map(_said, self.suppressed))})")
        return " ".join(words)


def _said(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


class SnapshotContext(StateSnapshotContext):
    """What a function sees of a checkpoint; closed when its turn is over."""

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
        """The function's turn is over."""
        self.closed = True
        for output in self.written():
            if output is not None:
                output.close()


class InitializationContext(StateInitializationContext):
    """What a function sees when it begins, anew or from a checkpoint."""

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
class SnapshotSource:
    """What an operator brings to its snapshot: the engine's parts, and the user's method."""

    name: str
    context: OperatorContext
    user_snapshot: Callable[[SnapshotContext], None]
    source: Callable[[], SourceState | None] = field(default=lambda: None)
    task: Callable[[], TaskState | None] = field(default=lambda: None)
    committables: Callable[[int], Sequence[StoredCommittable]] = field(default=lambda checkpoint_id: ())
    #: What waits in front of the task, with its head.
    in_flight: Callable[[], bytes | None] = field(default=lambda: None)


def take_snapshot(operator: SnapshotSource, order: CheckpointOrder) -> OperatorSnapshotFutures:
    """The synchronous part of one operator."""
    futures = OperatorSnapshotFutures()
    context = SnapshotContext(order, operator.context)
    try:
        plan = _plan(operator.context, order, futures)
        _snapshot_timers(operator, order, plan, futures)
        operator.user_snapshot(context)
        _snapshot_raw_state(context, futures)
        _snapshot_operator_state(operator.context, futures)
        _snapshot_keyed_state(operator.context, order, plan, futures)
        futures.committables = operator.committables(order.id)
        source, task = operator.source(), operator.task()
        futures.source = source.encode() if source is not None else None
        futures.task = task.encode() if task is not None else None
        futures.in_flight = operator.in_flight()
        futures.has_in_flight = futures.in_flight is not None or bool(source is not None and source.in_flight)
    except Exception as error:
        declined = SnapshotDeclinedError(order.id, operator.name)
        declined.clean_up(futures.cancel)
        declined.clean_up(context.close)
        raise declined from error
    return futures


def _plan(context: OperatorContext, order: CheckpointOrder, futures: OperatorSnapshotFutures) -> SnapshotPlan | None:
    """What is written whole on top of the checkpoint that this one stands on; None: everything, on top of nothing."""
    if context.keyed is None or order.savepoint:
        return None
    stored, keys = context.keyed.stored, context.keyed.keys_per_group()
    plan = stored.plan(order.base_id, keys) if order.base_id is not None else None
    futures.on_written = stored.recorder(order.id, order.base_id if plan is not None else None, keys)
    return plan


def _snapshot_timers(
    operator: SnapshotSource, order: CheckpointOrder, plan: SnapshotPlan | None, futures: OperatorSnapshotFutures
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
        whole = timers.snapshot()
    else:
        if plan is not None and not plan.timers and order.base_id is not None:
            delta = timers.snapshot_delta(order.id, order.base_id)
            if delta is not None:
                futures.raw_keyed = SnapshotFuture(lambda: RawKeyedParts(KeyedParts(delta=delta.encode())))
                return
        whole = timers.snapshot_whole(order.id, order.base_id, _replaced_timers(operator.context, order, plan))
    futures.raw_keyed = SnapshotFuture(lambda: RawKeyedParts(KeyedParts(full=whole.encode())))


def _replaced_timers(context: OperatorContext, order: CheckpointOrder, plan: SnapshotPlan | None) -> Collection[int]:
    """Key groups of which timers may be stored below."""
    if order.base_id is None or context.keyed is None:
        return ()
    return plan.timer_groups if plan is not None else context.keyed.key_groups


def _snapshot_raw_state(context: SnapshotContext, futures: OperatorSnapshotFutures) -> None:
    keyed, operator = context.written()
    context.close()  # nobody writes any more: the bytes can be taken later
    if keyed is not None:
        timers = futures.raw_keyed  # none is set, but one that is gone may have to be removed
        futures.raw_keyed = SnapshotFuture(
            lambda: RawKeyedParts(timers.run().timers if timers is not None else KeyedParts(), keyed.parts())
        )
    if operator is not None:
        futures.raw_operator = SnapshotFuture(operator.parts)


def _snapshot_operator_state(context: OperatorContext, futures: OperatorSnapshotFutures) -> None:
    if context.operator_state.registered_names():
        encoded = context.operator_state.snapshot()  # what user code can still change is encoded here (I13)
        futures.managed_operator = SnapshotFuture(lambda: encoded)


def _snapshot_keyed_state(
    context: OperatorContext, order: CheckpointOrder, plan: SnapshotPlan | None, futures: OperatorSnapshotFutures
) -> None:
    keyed = context.keyed
    if keyed is None:
        return
    if plan is None:
        whole = keyed.snapshot_aside(order.id) if order.savepoint else keyed.snapshot_whole(order.id)
        futures.managed_keyed = SnapshotFuture(lambda: KeyedParts(full=_encoded(whole)))
        return
    delta = keyed.snapshot_delta(order.id, order.base_id, plan.key_groups)
    futures.managed_keyed = SnapshotFuture(lambda: KeyedParts(full=_encoded(delta.whole), delta=delta.encode()))


def _encoded(captured: list[CapturedGroup]) -> Iterator[tuple[int, bytes]]:
    """Each key group is let go when it is encoded: captured state and its bytes need not all be in memory."""
    captured.reverse()
    while captured:
        group = captured.pop()
        yield group.key_group, group.encode()
