"""Drives one window operator by hand: elements, watermarks and the clock in, what comes out in order."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from rekindle.datastream import DataStream, KeyedStream
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import OperatorKind
from rekindle.key_groups import key_group_range
from rekindle.runtime.context import Accumulators, OperatorContext
from rekindle.runtime.metrics import TaskMetricGroup
from rekindle.runtime.operators import build_operator
from rekindle.runtime.operators.build_operator import selector_function, window_operator_class
from rekindle.runtime.operators.roles import PreparesSnapshot
from rekindle.runtime.operators.windows.general import GeneralWindowOperator
from rekindle.runtime.operators.windows.namespaces import windowed_backend
from rekindle.runtime.operators.windows.window_operator import LATE_RECORDS_DROPPED, WindowOperator
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.timers import InternalTimers
from rekindle.serde import cloud_dumps
from rekindle.testing import ManualClock
from tests.environments import environment
from tests.whole_state import whole_parts


def keyed_stream(type_info: Any = None, key_type: Any = None) -> KeyedStream:
    """A stream by the first field of its records; the records come from the driver."""
    env = environment(1)
    return env.from_collection([("", 0)], type_info).key_by(lambda record: record[0], key_type)


def stream(type_info: Any = None) -> DataStream:
    """A stream that is not keyed."""
    env = environment(1)
    return env.from_collection([0], type_info)


class _Recorder:
    def __init__(self, events: list[Any], tag: str | None = None) -> None:
        self._events = events
        self._tag = tag

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        assert timestamps is not None
        for record, timestamp in zip(records, timestamps, strict=True):
            self._events.append((record, timestamp) if self._tag is None else (self._tag, record, timestamp))

    def emit_watermark(self, watermark: int) -> None:
        if self._tag is None:
            self._events.append(("watermark", watermark))

    def emit_idle(self) -> None:
        """Of no interest here."""

    def emit_end(self) -> None:
        """Of no interest here."""


class WindowDriver:
    """One subtask of the window operator that ends `stream`, anew or from a snapshot of another driver."""

    def __init__(
        self,
        stream: DataStream,
        clock: ManualClock | None = None,
        *,
        restore: Snapshot | None = None,
        general: bool = False,
        side_output: str | None = None,
    ) -> None:
        plan = build_plan(stream._env._program("windows", stream._collect()))
        operator = stream._upstreams[0].transformation
        node = next(node for node in plan.nodes if node.function is operator.function)
        assert node.kind is OperatorKind.WINDOW
        self.clock = clock or ManualClock()
        groups = key_group_range(node.max_parallelism, 1, 0)
        keyed = windowed_backend(node, groups, KeyedStateOptions(clock=self.clock))
        timers = InternalTimers(node.max_parallelism, groups)
        self.metrics = TaskMetricGroup(self.clock, ())
        context = OperatorContext(
            node=node,
            subtask=0,
            attempt=0,
            clock=self.clock,
            settings=plan.settings,
            accumulators=Accumulators(),
            metrics=self.metrics,
            keyed=keyed,
            timers=timers,
            operator_state=OperatorStateBackend(0),
            batch=False,
        )
        own_copy: Callable[[Any], Any] = lambda value: pickle.loads(cloud_dumps(value))  # noqa: E731
        selectors = [selector_function(own_copy(selector)) for selector in node.key_selectors]
        operation = own_copy(node.function)
        chosen = GeneralWindowOperator if general else window_operator_class(operation)
        self.operator: WindowOperator = chosen(node, context, operation, selectors[0])
        self.keyed, self.timers = keyed, timers
        self.events: list[Any] = []
        self.operator.output.add(_Recorder(self.events))
        if side_output is not None:
            self.operator.output.add(_Recorder(self.events, side_output), side_output)
        if restore is not None:
            keyed.restore(restore.state)
            timers.restore(restore.timers)
            self.operator.restore_watermark(restore.watermark)
        self.operator.initialize_state(None if restore is None else 1)
        self.operator.open()

    def element(self, record: Any, timestamp: int | None = None) -> list[Any]:
        """One element; what came out because of it."""
        return self.batch([(record, timestamp)])

    def batch(self, elements: list[tuple[Any, int | None]]) -> list[Any]:
        """Several elements at once."""
        timestamps = [timestamp for _, timestamp in elements]
        known = None if None in timestamps else timestamps
        self.operator.process_batch([record for record, _ in elements], known)
        return self.taken()

    def watermark(self, watermark: int) -> list[Any]:
        """Event time advances; what came out because of it, without the watermark itself."""
        self.operator.process_watermark(watermark)
        assert self.events.pop() == ("watermark", watermark), "results come before the watermark that fired them"
        return self.taken()

    def pass_time(self, milliseconds: int) -> list[Any]:
        """The clock advances, and what is due by then happens."""
        self.clock.advance(milliseconds)
        self.operator.on_processing_time(self.clock.wall_ms())
        return self.taken()

    def taken(self) -> list[Any]:
        """What came out since this was asked last."""
        taken = list(self.events)
        self.events.clear()
        return taken

    @property
    def late_dropped(self) -> int:
        """How many elements came too late for everything."""
        return self.metrics.counter(LATE_RECORDS_DROPPED).get_count()

    def snapshot(self) -> Snapshot:
        """State and timers at a cut, as bytes."""
        if isinstance(self.operator, PreparesSnapshot):
            self.operator.prepare_snapshot(1)
        timers = list(self.timers.snapshot().encode())
        state = whole_parts(self.keyed)
        return Snapshot(state, timers, self.operator.current_watermark)

    def rows(self) -> int:
        """Rows that hold something once everything that can go has gone."""
        self.keyed.forget_changes()
        return self.keyed.number_of_keys()


class Snapshot:
    """What another driver can go on from."""

    def __init__(self, state: list[tuple[int, bytes]], timers: list[tuple[int, bytes]], watermark: int) -> None:
        self.state = state
        self.timers = timers
        self.watermark = watermark


@contextmanager
def general_operator_only() -> Any:
    """No fast operator is chosen in here."""
    fast = dict(build_operator._FAST_WINDOW_OPERATORS)
    build_operator._FAST_WINDOW_OPERATORS.clear()
    try:
        yield
    finally:
        build_operator._FAST_WINDOW_OPERATORS.update(fast)
