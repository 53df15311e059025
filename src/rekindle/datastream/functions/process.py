"""Process functions over one or two inputs, with timestamps, timers and side outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rekindle.datastream.functions.function import Function
from rekindle.datastream.time_domain import TimeDomain
from rekindle.datastream.timerservice import TimerService


class ProcessFunction(Function):
    """Turns a value into any number of results, with access to the value's timestamp.

    `yield value` emits to the main output, `yield tag, value` to the side output of an `OutputTag`.

    >>> class Stamp(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield ctx.timestamp(), value
    """

    class Context(ABC):
        """The context of the element being processed."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the current times. Timers need a keyed stream."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the element's timestamp in milliseconds, or None if it has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        """Process one value: yield results, or return an iterable of results or None."""


class KeyedProcessFunction(Function):
    """A process function for keyed streams, with keyed state and timers.

    >>> class Count(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.count = runtime_context.get_state(ValueStateDescriptor("count", int))
    ...     def process_element(self, value, ctx):
    ...         count = (self.count.value() or 0) + 1
    ...         self.count.update(count)
    ...         yield ctx.get_current_key(), count
    """

    class Context(ABC):
        """The context of the element being processed."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the element."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the current times and the timers of the current key."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the element's timestamp in milliseconds, or None if it has none."""

    class OnTimerContext(Context):
        """The context of the timer being processed."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether the timer is of event time or processing time."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Process one value: yield results, or return an iterable of results or None."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        """Process a timer of the current key. Results are returned as in `process_element`."""
        return None


class CoProcessFunction(Function):
    """Processes two inputs, with one method for each.

    >>> class Merge(CoProcessFunction):
    ...     def process_element1(self, value, ctx):
    ...         yield "left", value
    ...     def process_element2(self, value, ctx):
    ...         yield "right", value
    """

    class Context(ABC):
        """The context of the element being processed."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the current times. Timers need keyed streams."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the element's timestamp in milliseconds, or None if it has none."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        """Process a value of the first input."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        """Process a value of the second input."""


class KeyedCoProcessFunction(Function):
    """Processes two inputs with the same type of key, which share keyed state and timers.

    >>> class Join(KeyedCoProcessFunction):
    ...     def process_element1(self, value, ctx):
    ...         yield ctx.get_current_key(), value
    ...     def process_element2(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(value)
    """

    class Context(ABC):
        """The context of the element being processed."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the element."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the current times and the timers of the current key."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the element's timestamp in milliseconds, or None if it has none."""

    class OnTimerContext(Context):
        """The context of the timer being processed."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether the timer is of event time or processing time."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        """Process a value of the first input."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        """Process a value of the second input."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        """Process a timer of the current key."""
        return None
