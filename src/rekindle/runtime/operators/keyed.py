"""Operators on keyed streams: they set the current key before user code runs, and fire timers by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from rekindle.common.typeinfo import Types
from rekindle.common.watermark_strategy import MAX_WATERMARK, NO_TIMESTAMP
from rekindle.datastream.functions import KeyedProcessFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.datastream.time_domain import TimeDomain
from rekindle.errors import InvalidKeyError
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import KeyedTimerService, OperatorContext, user_timestamp
from rekindle.runtime.list_keys import hashable_key
from rekindle.runtime.operators.output import OperatorFailure, Stamp, failed_record
from rekindle.runtime.operators.roles import Timed
from rekindle.runtime.operators.stateless import FunctionOperator, method_or_callable
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.described_states import keyed_state

Selector = Callable[[Any], Any]


class KeyedContext(KeyedProcessFunction.OnTimerContext):
    """The context of a keyed process function; one object per operator."""

    def __init__(self, service: KeyedTimerService, keyed: KeyedStateBackend) -> None:
        self._service = service
        self._keyed = keyed
        self.current_timestamp = NO_TIMESTAMP
        self.current_domain = TimeDomain.EVENT_TIME

    def get_current_key(self) -> Any:
        return self._keyed.current_key()

    def timer_service(self) -> KeyedTimerService:
        return self._service

    def timestamp(self) -> int | None:  # type: ignore[override]
        return user_timestamp(self.current_timestamp)

    def time_domain(self) -> TimeDomain:
        return self.current_domain


class KeyedOperator(FunctionOperator, Timed):
    """An operator whose function has keyed state and timers."""

    def __init__(self, node: OperatorNode, context: OperatorContext, function: Any, selectors: list[Selector]) -> None:
        super().__init__(node, context, function)
        assert context.keyed is not None
        assert context.timers is not None
        self.keyed = context.keyed
        self.timers = context.timers
        self.selectors = selectors
        self.service = KeyedTimerService(context, self, context.keyed, context.timers)
        self.user_context: Any = self.make_context()

    def make_context(self) -> Any:
        """Return the context object that the function gets."""
        return KeyedContext(self.service, self.keyed)

    def open(self) -> None:
        self._on_timer = getattr(self.function, "on_timer", None)
        super().open()

    def process_watermark(self, watermark: int) -> None:
        """Fire the event-time timers that are due, then pass the watermark on."""
        self.current_watermark = watermark
        self.keyed.clear_current_key()
        if self.context.ends_batch(watermark):
            event, processing = self.timers.event.drain(), self.timers.processing.drain()
            self._fire(event, TimeDomain.EVENT_TIME)
            self._fire(processing, TimeDomain.PROCESSING_TIME)
        else:
            self._fire(self.timers.advance_watermark(watermark), TimeDomain.EVENT_TIME)
        self.output.emit_watermark(watermark)

    def next_due_ms(self) -> int | None:
        """Return when the earliest processing-time timer is due; in BATCH mode they wait for the end of the input."""
        return None if self.context.batch else self.timers.next_processing_time()

    def on_processing_time(self, now_ms: int) -> None:
        """Fire the processing-time timers that are due."""
        if self.context.batch:
            return
        self._fire(self.timers.due_processing_time(now_ms), TimeDomain.PROCESSING_TIME)

    def _fire(self, due: Any, domain: TimeDomain) -> None:
        self.collector.drain(lambda stamp: self._timer_results(due, domain, stamp), stamped=True)

    def _timer_results(self, due: Any, domain: TimeDomain, stamp: Stamp) -> Iterator[Any]:
        context, keyed, on_timer = self.user_context, self.keyed, self._on_timer
        find, load = keyed.front.get, keyed.load_row
        timestamp = NO_TIMESTAMP
        try:
            for timestamp, key, _namespace in due:
                if on_timer is None:
                    continue
                keyed.row = find(key) or load(key)
                context.current_timestamp = timestamp
                context.current_domain = domain
                results = on_timer(timestamp, context)
                if results is not None:
                    emitted_time = timestamp if domain is TimeDomain.EVENT_TIME else NO_TIMESTAMP
                    for out in results:
                        stamp(emitted_time)
                        yield out
        except OperatorFailure:
            raise
        except Exception as error:
            raise OperatorFailure(self.name, f"timer at {timestamp}", True) from error


def prefetch_rows(keyed: KeyedStateBackend, selector: Selector, records: list[Any]) -> None:
    """Let a backend on disk read the rows of a batch in one call."""
    if keyed.in_memory:
        return
    # An error of the selector or of a key shows again in the loop, which names the record.
    with suppress(InvalidKeyError):
        try:
            keys = dict.fromkeys(map(selector, records))
        except Exception:
            return
        keyed.prefetch(keys)


def run_keyed(
    operator: KeyedOperator,
    process: Callable[[Any, Any], Any],
    selector: Selector,
    records: list[Any],
    timestamps: list[int] | None,
) -> None:
    """Run a keyed process method over a batch."""
    prefetch_rows(operator.keyed, selector, records)
    if timestamps is None:
        operator.collector.drain(lambda _: _process_untimed(operator, process, selector, records), stamped=False)
    else:
        operator.collector.drain(
            lambda stamp: _process_timed(operator, process, selector, records, timestamps, stamp), stamped=True
        )


def _process_untimed(
    operator: KeyedOperator, process: Callable[[Any, Any], Any], selector: Selector, records: list[Any]
) -> Iterator[Any]:
    """Yield the results of a batch without timestamps. This and `_process_timed` are the engine's hottest loops."""
    keyed, context = operator.keyed, operator.user_context
    find, load = keyed.front.get, keyed.load_row
    context.current_timestamp = NO_TIMESTAMP
    remaining = iter(records)
    try:
        for record in remaining:
            key = selector(record)
            try:
                keyed.row = find(key) or load(key)
            except TypeError:
                keyed.set_current_key(hashable_key(key))
            results = process(record, context)
            if results is not None:
                yield from results
    except OperatorFailure:
        raise
    except Exception as error:
        raise failed_record(operator.name, records, remaining) from error


def _process_timed(
    operator: KeyedOperator,
    process: Callable[[Any, Any], Any],
    selector: Selector,
    records: list[Any],
    timestamps: list[int],
    stamp: Stamp,
) -> Iterator[Any]:
    """Yield the results of a batch with timestamps."""
    keyed, context = operator.keyed, operator.user_context
    find, load = keyed.front.get, keyed.load_row
    remaining = iter(records)
    try:
        for record, timestamp in zip(remaining, timestamps, strict=True):
            key = selector(record)
            try:
                keyed.row = find(key) or load(key)
            except TypeError:
                keyed.set_current_key(hashable_key(key))
            context.current_timestamp = timestamp
            results = process(record, context)
            if results is not None:
                for out in results:
                    stamp(timestamp)
                    yield out
    except OperatorFailure:
        raise
    except Exception as error:
        raise failed_record(operator.name, records, remaining) from error


class KeyedProcessOperator(KeyedOperator):
    """Runs a `KeyedProcessFunction`."""

    def open(self) -> None:
        self._process = method_or_callable(self.function, "process_element")
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        run_keyed(self, self._process, self.selectors[0], records, timestamps)


def with_current_key(keyed: KeyedStateBackend, selector: Selector, function: Callable[..., Any]) -> Callable[..., Any]:
    """Make the record's key current before each call of a map, filter, flat_map or sink function."""

    def call(record: Any, *context: Any) -> Any:
        key = selector(record)
        try:
            keyed.set_current_key(key)
        except TypeError:
            keyed.set_current_key(hashable_key(key))
        return function(record, *context)

    return call


class ReduceOperator(KeyedOperator):
    """Rolling reduce: emits the new value for every record; in BATCH mode only the last value per key, at the end."""

    yields_tagged = False

    def open(self) -> None:
        self._state = keyed_state(self.keyed, reserved(ValueStateDescriptor("reduce", self.node.output_type)))
        # None in a value state means "no value", but a reduce function may return None: this state tells them apart.
        self._none = keyed_state(self.keyed, reserved(ValueStateDescriptor("reduce-is-none", Types.BOOLEAN())))
        self._reduce = method_or_callable(self.function, "reduce")
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        prefetch_rows(self.keyed, self.selectors[0], records)
        remaining = iter(records)
        try:
            outs = list(self.collector.isolated(self._reduced(remaining)))
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        if not self.context.batch:
            self.output.emit(outs, timestamps)

    def _reduced(self, records: Iterator[Any]) -> Iterator[Any]:
        keyed, reduce, selector = self.keyed, self._reduce, self.selectors[0]
        find, load = keyed.front.get, keyed.load_row
        value_of, update = self._state.value, self._state.update
        is_none, set_none = self._none.value, self._none.update
        for record in records:
            key = selector(record)
            try:
                keyed.row = find(key) or load(key)
            except TypeError:
                keyed.set_current_key(hashable_key(key))
            current = value_of()
            if current is None:
                value = reduce(None, record) if is_none() else record
            else:
                value = reduce(current, record)
            update(value)
            if value is None or current is None:
                set_none(True if value is None else None)
            yield value

    def process_watermark(self, watermark: int) -> None:
        if self.context.batch and watermark == MAX_WATERMARK:
            self.collector.extend(self._final_values(), NO_TIMESTAMP)
            self.collector.flush()
        super().process_watermark(watermark)

    def _final_values(self) -> Iterator[Any]:
        for key in self.keyed.keys():  # noqa: SIM118  (no dict)
            self.keyed.set_current_key(key)
            value = self._state.value()
            if value is not None or self._none.value():
                yield value
