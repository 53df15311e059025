"""Operators with two inputs: connected streams and broadcast streams, keyed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.datastream.functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from rekindle.datastream.functions.broadcast import KeyedStateFunction
from rekindle.datastream.operator_details import BroadcastDetails
from rekindle.datastream.state import MapStateDescriptor, StateDescriptor
from rekindle.datastream.time_domain import TimeDomain
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext, OperatorTimerService, RuntimeContextImpl, user_timestamp
from rekindle.runtime.operators.keyed import KeyedContext, KeyedOperator, Selector, run_keyed, with_current_key
from rekindle.runtime.operators.output import OperatorFailure, Stamp, failed_record
from rekindle.runtime.operators.roles import TwoInputs
from rekindle.runtime.operators.stateless import FunctionOperator, method_or_callable, run_process
from rekindle.runtime.restore_checks import restoring_state


class CoFunctionOperator(FunctionOperator, TwoInputs):
    """Runs a `CoMapFunction` or `CoFlatMapFunction`; on keyed streams the record's key is current."""

    yields_tagged = False

    def __init__(
        self, node: OperatorNode, context: OperatorContext, function: Any, selectors: list[Selector], flat: bool
    ) -> None:
        super().__init__(node, context, function)
        self._selectors = selectors
        self._flat = flat

    def open(self) -> None:
        stem = "flat_map" if self._flat else "map"
        functions: list[Callable[[Any], Any]] = [getattr(self.function, f"{stem}1"), getattr(self.function, f"{stem}2")]
        if self.context.keyed is not None:
            keyed = self.context.keyed
            functions = [
                with_current_key(keyed, selector, function)
                for selector, function in zip(self._selectors, functions, strict=True)
            ]
        self._functions = functions
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        self._run(self._functions[0], records, timestamps)

    def process_batch2(self, records: list[Any], timestamps: list[int] | None) -> None:
        self._run(self._functions[1], records, timestamps)

    def _run(self, function: Callable[[Any], Any], records: list[Any], timestamps: list[int] | None) -> None:
        self.collector.drain(
            lambda stamp: self._results(function, records, timestamps, stamp), stamped=timestamps is not None
        )

    def _results(
        self, function: Callable[[Any], Any], records: list[Any], timestamps: list[int] | None, stamp: Stamp
    ) -> Iterator[Any]:
        flat, remaining = self._flat, iter(records)
        try:
            for record, timestamp in zip(remaining, timestamps or repeat(NO_TIMESTAMP)):  # noqa: B905 (repeat is endless)
                results = function(record) if flat else (function(record),)
                if results is not None:
                    for out in results:
                        stamp(timestamp)
                        yield out
        except OperatorFailure:
            raise
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error


class _CoContext(CoProcessFunction.Context):
    """The context of a `CoProcessFunction`."""

    def __init__(self, service: OperatorTimerService) -> None:
        self._service = service
        self.current_timestamp = NO_TIMESTAMP

    def timer_service(self) -> OperatorTimerService:
        return self._service

    def timestamp(self) -> int | None:  # type: ignore[override]
        return user_timestamp(self.current_timestamp)


class CoProcessOperator(FunctionOperator, TwoInputs):
    """Runs a `CoProcessFunction` without keys."""

    def open(self) -> None:
        self._context = _CoContext(OperatorTimerService(self.context, self))
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_process(self, self.function.process_element1, self._context, records, timestamps)

    def process_batch2(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_process(self, self.function.process_element2, self._context, records, timestamps)


class _KeyedCoContext(KeyedContext, KeyedCoProcessFunction.OnTimerContext):  # type: ignore[misc]
    """The context of a `KeyedCoProcessFunction`."""


class KeyedCoProcessOperator(KeyedOperator, TwoInputs):
    """Runs a `KeyedCoProcessFunction`."""

    def make_context(self) -> _KeyedCoContext:
        return _KeyedCoContext(self.service, self.keyed)

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_keyed(self, self.function.process_element1, self.selectors[0], records, timestamps)

    def process_batch2(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_keyed(self, self.function.process_element2, self.selectors[1], records, timestamps)


class _BroadcastContext(BroadcastProcessFunction.Context, BroadcastProcessFunction.ReadOnlyContext):
    """The context of both inputs of a `BroadcastProcessFunction`; `read_only`: broadcast state cannot be changed."""

    def __init__(self, operator: FunctionOperator, read_only: bool) -> None:
        self._operator = operator
        self._read_only = read_only
        self.current_timestamp = NO_TIMESTAMP

    def timestamp(self) -> int | None:  # type: ignore[override]
        return user_timestamp(self.current_timestamp)

    def current_processing_time(self) -> int:
        return self._operator.context.clock.wall_ms()

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> Any:
        return broadcast_state(self._operator, state_descriptor, self._read_only)


def broadcast_state(operator: FunctionOperator, descriptor: MapStateDescriptor, read_only: bool) -> Any:
    """Return the broadcast state of a descriptor that was given to `broadcast(...)`."""
    declared = [each.name for each in operator.node.described_as(BroadcastDetails).descriptors]
    if descriptor.name not in declared:
        raise OperatorFailure(operator.name) from KeyError(
            f"broadcast state '{descriptor.name}' was not given to broadcast(...); declared: {declared}"
        )
    states = operator.context.operator_state
    return states.get_read_only_broadcast_state(descriptor) if read_only else states.get_broadcast_state(descriptor)


def register_broadcast_states(operator: FunctionOperator) -> None:
    """Register every declared broadcast state, as Flink does: one that cannot be restored fails at once."""
    for descriptor in operator.node.described_as(BroadcastDetails).descriptors:
        with restoring_state(operator):
            operator.context.operator_state.get_broadcast_state(descriptor)


class BroadcastProcessOperator(FunctionOperator, TwoInputs):
    """Runs a `BroadcastProcessFunction`: the second input is the broadcast side."""

    def open(self) -> None:
        register_broadcast_states(self)
        self._element_context = _BroadcastContext(self, read_only=True)
        self._broadcast_context = _BroadcastContext(self, read_only=False)
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_process(self, self.function.process_element, self._element_context, records, timestamps)

    def process_batch2(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_process(self, self.function.process_broadcast_element, self._broadcast_context, records, timestamps)


class _KeyedBroadcastContext(KeyedBroadcastProcessFunction.OnTimerContext):
    """The context of the keyed input and of timers: broadcast state is read-only."""

    def __init__(self, operator: KeyedOperator) -> None:
        self._operator = operator
        self.current_timestamp = NO_TIMESTAMP
        self.current_domain = TimeDomain.EVENT_TIME

    def timestamp(self) -> int | None:  # type: ignore[override]
        return user_timestamp(self.current_timestamp)

    def current_processing_time(self) -> int:
        return self._operator.context.clock.wall_ms()

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> Any:
        return broadcast_state(self._operator, state_descriptor, read_only=True)

    def timer_service(self) -> OperatorTimerService:
        return self._operator.service

    def get_current_key(self) -> Any:
        return self._operator.keyed.current_key()

    def time_domain(self) -> TimeDomain:
        return self.current_domain


class _KeyedBroadcastSideContext(_BroadcastContext, KeyedBroadcastProcessFunction.Context):
    """The context of the broadcast input of a keyed stream: no current key, but the state of all keys."""

    def __init__(self, operator: KeyedOperator) -> None:
        super().__init__(operator, read_only=False)
        self._keyed_backend = operator.keyed
        self._handles = RuntimeContextImpl(operator.context)

    def apply_to_keyed_state(
        self, state_descriptor: StateDescriptor, function: KeyedStateFunction | Callable[[Any, Any], Any]
    ) -> None:
        process: Callable[[Any, Any], Any] = method_or_callable(function, "process")
        state = self._handles.state_of(state_descriptor)
        keyed = self._keyed_backend
        with keyed.visiting_keys():
            for key in keyed.keys_with(state_descriptor.name):
                keyed.set_current_key(key)
                process(key, state)


class KeyedBroadcastProcessOperator(KeyedOperator, TwoInputs):
    """Runs a `KeyedBroadcastProcessFunction`: the first input is keyed, the second is the broadcast side."""

    def make_context(self) -> _KeyedBroadcastContext:
        return _KeyedBroadcastContext(self)

    def open(self) -> None:
        register_broadcast_states(self)
        self._broadcast_context = _KeyedBroadcastSideContext(self)
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_keyed(self, self.function.process_element, self.selectors[0], records, timestamps)

    def process_batch2(self, records: list[Any], timestamps: list[int] | None) -> None:
        self.keyed.clear_current_key()
        run_process(self, self.function.process_broadcast_element, self._broadcast_context, records, timestamps)
