"""Process functions over one input: values, timestamps, timers, side outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rekindle.datastream.functions.function import Function
from rekindle.datastream.time_domain import TimeDomain
from rekindle.datastream.timerservice import TimerService


class ProcessFunction(Function):
    """One value in, any number out, with its timestamp at hand.

    `yield value` emits to the main output, `yield tag, value` to the side output of an `OutputTag`.

    >>> class Stamp(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield ctx.timestamp(), value
    """

    class Context(ABC):
        """What a function may ask while it handles an element."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Current times. Timers need a keyed stream."""

        @abstractmethod
        def timestamp(self) -> int:
            """The element's timestamp in milliseconds; None if it has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        """Handle one value: yield results, return an iterable of them, or None."""


class KeyedProcessFunction(Function):
    """Like `ProcessFunction` on a keyed stream: with keyed state and timers.

    >>> class Count(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.count = runtime_context.get_state(ValueStateDescriptor("count", int))
    ...     def process_element(self, value, ctx):
    ...         count = (self.count.value() or 0) + 1
    ...         self.count.update(count)
    ...         yield ctx.get_current_key(), count
    """

    class Context(ABC):
        """What a function may ask while it handles an element."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the element."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Times and timers of the current key."""

        @abstractmethod
        def timestamp(self) -> int:
            """The element's timestamp in milliseconds; None if it has none."""

    class OnTimerContext(Context):
        """What a function may ask while it handles a timer."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock the timer followed."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Handle one value: yield results, return an iterable of them, or None."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        """Handle a timer of the current key; results as in `process_element`."""
        return None


class CoProcessFunction(Function):
    """Handles two inputs, one method each.

    >>> class Merge(CoProcessFunction):
    ...     def process_element1(self, value, ctx):
    ...         yield "left", value
    ...     def process_element2(self, value, ctx):
    ...         yield "right", value
    """

    class Context(ABC):
        """What a function may ask while it handles an element."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Current times. Timers need keyed streams."""

        @abstractmethod
        def timestamp(self) -> int:
            """The element's timestamp in milliseconds; None if it has none."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        """Handle a value of the first input."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        """Handle a value of the second input."""


class KeyedCoProcessFunction(Function):
    """Handles two inputs that are keyed alike, with keyed state and timers that both share.

    >>> class Join(KeyedCoProcessFunction):
    ...     def process_element1(self, value, ctx):
    ...         yield ctx.get_current_key(), value
    ...     def process_element2(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(value)
    """

    class Context(ABC):
        """What a function may ask while it handles an element."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the element."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Times and timers of the current key."""

        @abstractmethod
        def timestamp(self) -> int:
            """The element's timestamp in milliseconds; None if it has none."""

    class OnTimerContext(Context):
        """What a function may ask while it handles a timer."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock the timer followed."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        """Handle a value of the first input."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        """Handle a value of the second input."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        """Handle a timer of the current key."""
        return None
