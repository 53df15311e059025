"""Drives one window operator by hand: elements, watermarks and clock in, output in order."""

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
from rekindle.runtime.operators import build_operator
from rekindle.runtime.operators.build_operator import selector_function, window_operator_class
from rekindle.runtime.operators.roles import PreparesSnapshot
from rekindle.runtime.operators.windows.general_windows import GeneralWindowOperator
from rekindle.runtime.operators.windows.namespaces import windowed_shape
from rekindle.runtime.operators.windows.window_operator import LATE_RECORDS_DROPPED, WindowOperator
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.task_metrics import TaskMetricGroup
from rekindle.serde import cloud_dumps
from rekindle.testing import ManualClock
from tests.support.environments import environment
from tests.support.keyed_backends import TIMERS, WINDOW_BACKENDS
from tests.support.whole_state import whole_parts


def keyed_stream(type_info: Any = None, key_type: Any = None) -> KeyedStream:
    """Return a stream keyed by the first field of its records; the driver supplies the records."""
    env = environment(1)
    return env.from_collection([("", 0)], type_info).key_by(lambda record: record[0], key_type)


def stream(type_info: Any = None) -> DataStream:
    """Return a stream that is not keyed."""
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
        """Ignored."""

    def emit_end(self) -> None:
        """Ignored."""


class WindowDriver:
    """One subtask of the window operator at the end of `stream`, new or restored from another driver's snapshot."""

    def __init__(
        self,
        stream: DataStream,
        clock: ManualClock | None = None,
        *,
        restore: Snapshot | None = None,
        general: bool = False,
        backend: str | None = None,
        side_output: str | None = None,
    ) -> None:
        """`backend`: where the state and the timers of the general operator are; by default where the job says."""
        plan = build_plan(stream._env._program("windows", stream._collect()))
        operator = stream._upstreams[0].transformation
        node = next(node for node in plan.nodes if node.function is operator.function)
        assert node.kind is OperatorKind.WINDOW
        self.clock = clock or ManualClock()
        groups = key_group_range(node.max_parallelism, 1, 0)
        shape = windowed_shape(node, groups, allow_pickle=True)
        arguments = {"key_codec": shape.key_codec, "key_group_of": shape.key_group_of}
        # The fast operators are for state in memory.
        kind = (backend or plan.settings.state_backend.name) if general else "hashmap"
        keyed = WINDOW_BACKENDS[kind](shape.max_parallelism, groups, KeyedStateOptions(clock=self.clock), **arguments)
        timers = TIMERS[kind](node.max_parallelism, groups)
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
        """Process one element; return its output."""
        return self.batch([(record, timestamp)])

    def batch(self, elements: list[tuple[Any, int | None]]) -> list[Any]:
        """Process several elements in one batch; return their output."""
        timestamps = [timestamp for _, timestamp in elements if timestamp is not None]
        known = timestamps if len(timestamps) == len(elements) else None
        self.operator.process_batch([record for record, _ in elements], known)
        return self.taken()

    def watermark(self, watermark: int) -> list[Any]:
        """Advance event time; return the output without the watermark itself."""
        self.operator.process_watermark(watermark)
        assert self.events.pop() == ("watermark", watermark), "results come before the watermark that fired them"
        return self.taken()

    def pass_time(self, milliseconds: int) -> list[Any]:
        """Advance the clock and fire what is due; return the output."""
        self.clock.advance(milliseconds)
        self.operator.on_processing_time(self.clock.wall_ms())
        return self.taken()

    def taken(self) -> list[Any]:
        """Return the output since the last call."""
        taken = list(self.events)
        self.events.clear()
        return taken

    @property
    def late_dropped(self) -> int:
        """Return how many late elements were dropped."""
        return self.metrics.counter(LATE_RECORDS_DROPPED).get_count()

    def snapshot(self) -> Snapshot:
        """Return state and timers at a cut, encoded."""
        if isinstance(self.operator, PreparesSnapshot):
            self.operator.prepare_snapshot(1)
        timers = list(self.timers.snapshot().encode())
        state = whole_parts(self.keyed)
        return Snapshot(state, timers, self.operator.current_watermark)

    def rows(self) -> int:
        """Return the number of rows with content after all empty rows are removed."""
        self.keyed.forget_changes()
        return len(list(self.keyed.keys()))


class Snapshot:
    """A snapshot from which another driver can continue."""

    def __init__(self, state: list[tuple[int, bytes]], timers: list[tuple[int, bytes]], watermark: int) -> None:
        self.state = state
        self.timers = timers
        self.watermark = watermark


@contextmanager
def general_operator_only() -> Any:
    """Choose the general window operator for every operation inside this block."""
    fast = dict(build_operator._FAST_WINDOW_OPERATORS)
    build_operator._FAST_WINDOW_OPERATORS.clear()
    try:
        yield
    finally:
        build_operator._FAST_WINDOW_OPERATORS.update(fast)
