"""The operators of `map`, `flat_map`, `filter` and `process`: functions that need no current key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.datastream.functions import ProcessFunction, RuntimeContext
from rekindle.datastream.state import ListStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext, OperatorTimerService, user_timestamp
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import OperatorFailure, Stamp, failed_record
from rekindle.runtime.operators.roles import SnapshotParticipant
from rekindle.runtime.snapshot import InitializationContext, SnapshotContext

#: The name of the operator state that holds the list of a `ListCheckpointed` function.
_LIST_CHECKPOINTED_STATE = "list-checkpointed"


def method_or_callable(function: Any, method: str) -> Callable[..., Any]:
    """Return the function's method of that name, or the function itself if it is a plain callable."""
    bound = getattr(function, method, None)
    return bound if callable(bound) else function  # type: ignore[no-any-return]


def set_runtime_context_of(function: Any, runtime_context: RuntimeContext) -> None:
    """Set the runtime context of a function before any of its other methods is called."""
    setter = getattr(function, "set_runtime_context", None)
    if callable(setter):
        setter(runtime_context)


class FunctionOperator(Operator, SnapshotParticipant):
    """An operator around one user function; it follows the function's life cycle."""

    def __init__(self, node: OperatorNode, context: OperatorContext, function: Any) -> None:
        super().__init__(node, context)
        self.function = function
        self.runtime_context = self.make_runtime_context()
        set_runtime_context_of(function, self.runtime_context)

    def make_runtime_context(self) -> RuntimeContext:
        """Return the runtime context of the function."""
        return self.context.runtime_context()

    def open(self) -> None:
        """Open the function if it has `open`."""
        opener = getattr(self.function, "open", None)
        if callable(opener):
            try:
                opener(self.runtime_context)
            except Exception as error:
                raise OperatorFailure(self.name) from error

    def initialize_state(self, restored_id: int | None) -> None:
        """Initialise the state of a `CheckpointedFunction` or a `ListCheckpointed`, recognised by their methods."""
        initialize, restore = (getattr(self.function, name, None) for name in ("initialize_state", "restore_state"))
        try:
            if callable(initialize):
                initialize(InitializationContext(self.context, restored_id))
            elif callable(restore):
                listed = reserved(ListStateDescriptor(_LIST_CHECKPOINTED_STATE, None))
                self._list_state = self.context.operator_state.get_list_state(listed)
                if restored_id is not None and self.context.has_restored_state:
                    restore(list(self._list_state.get()))
        except Exception as error:
            raise OperatorFailure(self.name) from error

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        """Call the function's `snapshot_state`: as a `ListCheckpointed` if it has `restore_state` only, else as a
        `CheckpointedFunction`.
        """
        snapshot = getattr(self.function, "snapshot_state", None)
        if not callable(snapshot):
            return
        initialize, restore = (getattr(self.function, name, None) for name in ("initialize_state", "restore_state"))
        if callable(restore) and not callable(initialize):
            elements = snapshot(context.get_checkpoint_id(), context.get_checkpoint_timestamp())
            self._list_state.update(list(elements) if elements is not None else [])  # None: empty, as in Flink
        else:
            snapshot(context)

    def notify_complete(self, checkpoint_id: int) -> None:
        self._notify_function("notify_checkpoint_complete", checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        self._notify_function("notify_checkpoint_aborted", checkpoint_id)

    def _notify_function(self, method: str, checkpoint_id: int) -> None:
        listener = getattr(self.function, method, None)
        if callable(listener):
            try:
                listener(checkpoint_id)
            except Exception as error:
                raise OperatorFailure(self.name) from error

    def close(self) -> None:
        """Close the function if it has `close`."""
        closer = getattr(self.function, "close", None)
        if callable(closer):
            closer()


class MapOperator(FunctionOperator):
    """Emits one result per record."""

    def open(self) -> None:
        super().open()
        self._map = method_or_callable(self.function, "map")

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        remaining = iter(records)
        try:
            mapped = self.collector.applied(self._map, remaining)
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        self.output.emit(mapped, timestamps)


class FilterOperator(FunctionOperator):
    """Emits the records that the predicate accepts."""

    def open(self) -> None:
        super().open()
        self._filter = method_or_callable(self.function, "filter")

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        accept = self._filter
        remaining = iter(records)
        kept_times: list[int] | None = None
        try:
            if timestamps is None:
                kept = [record for record in remaining if accept(record)]
            else:
                pairs = [pair for pair in zip(remaining, timestamps, strict=True) if accept(pair[0])]
                kept = [pair[0] for pair in pairs]
                kept_times = [pair[1] for pair in pairs]
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        if kept:
            self.output.emit(kept, kept_times)


class FlatMapOperator(FunctionOperator):
    """Emits any number of results per record."""

    yields_tagged = False

    def open(self) -> None:
        super().open()
        self._flat_map = method_or_callable(self.function, "flat_map")

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        self.collector.drain(lambda stamp: self._results(records, timestamps, stamp), timestamps is not None)

    def _results(self, records: list[Any], timestamps: list[int] | None, stamp: Stamp) -> Iterator[Any]:
        function, remaining = self._flat_map, iter(records)
        try:
            for record, timestamp in zip(remaining, timestamps or repeat(NO_TIMESTAMP)):  # noqa: B905 (repeat is endless)
                results = function(record)
                if results is not None:
                    for out in results:
                        stamp(timestamp)
                        yield out
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error


class _ProcessContext(ProcessFunction.Context):
    """The context of a `ProcessFunction`."""

    def __init__(self, service: OperatorTimerService) -> None:
        self._service = service
        self.current_timestamp = NO_TIMESTAMP

    def timer_service(self) -> OperatorTimerService:
        return self._service

    def timestamp(self) -> int | None:  # type: ignore[override]
        return user_timestamp(self.current_timestamp)


class ProcessOperator(FunctionOperator):
    """Runs a `ProcessFunction`: any number of results per record, side outputs, no key."""

    def open(self) -> None:
        self._context = _ProcessContext(OperatorTimerService(self.context, self))
        self._process = method_or_callable(self.function, "process_element")
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_process(self, self._process, self._context, records, timestamps)


def run_process(
    operator: Operator,
    process: Callable[[Any, Any], Any],
    context: Any,
    records: list[Any],
    timestamps: list[int] | None,
) -> None:
    """Run a process method without keys over a batch; `context.current_timestamp` follows the record."""
    operator.collector.drain(
        lambda stamp: _process_results(operator.name, process, context, records, timestamps, stamp),
        timestamps is not None,
    )


def _process_results(
    name: str,
    process: Callable[[Any, Any], Any],
    context: Any,
    records: list[Any],
    timestamps: list[int] | None,
    stamp: Stamp,
) -> Iterator[Any]:
    remaining = iter(records)
    try:
        for record, timestamp in zip(remaining, timestamps or repeat(NO_TIMESTAMP)):  # noqa: B905 (repeat is endless)
            context.current_timestamp = timestamp
            results = process(record, context)
            if results is not None:
                for out in results:
                    stamp(timestamp)
                    yield out
    except OperatorFailure:
        raise
    except Exception as error:
        raise failed_record(name, records, remaining) from error
