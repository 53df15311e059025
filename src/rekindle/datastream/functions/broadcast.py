"""Process functions of a stream and a broadcast stream, whose elements every subtask gets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rekindle.datastream.functions.function import Function
from rekindle.datastream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState, StateDescriptor
from rekindle.datastream.time_domain import TimeDomain
from rekindle.datastream.timerservice import TimerService

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
KEY = TypeVar("KEY")
OUT = TypeVar("OUT")


class BaseBroadcastProcessFunction(Function):
    """The contexts that both broadcast process functions share."""

    class BaseContext(ABC):
        """The timestamp and clocks of the element being processed, of either stream."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the element's timestamp in milliseconds, or None if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the wall clock, in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark of this operator, in milliseconds."""

    class Context(BaseContext):
        """The context of a broadcast element. It may change broadcast state, in the same way on every subtask."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """Return the broadcast state of a descriptor that was given to `broadcast`."""

    class ReadOnlyContext(BaseContext):
        """The context of an element that is not broadcast. It may only read broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """Return the broadcast state of a descriptor that was given to `broadcast`."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Processes a stream that is not keyed and a broadcast stream.

    >>> rules = MapStateDescriptor("rules", str, int)
    >>> class Enrich(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield value, ctx.get_broadcast_state(rules).get(value)
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules).put(*value)
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """The context of a broadcast element."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """The context of an element that is not broadcast."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        """Process an element of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Any:
        """Process a broadcast element. Called once on every subtask."""


class KeyedStateFunction(ABC):
    """The function that `apply_to_keyed_state` calls for each key. A callable of key and state works, too."""

    @abstractmethod
    def process(self, key: Any, state: Any) -> None:
        """Read or change one key's state."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Processes a keyed stream, with keyed state and timers, and a broadcast stream.

    >>> rules = MapStateDescriptor("rules", str, int)
    >>> class Limit(KeyedBroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value <= ctx.get_broadcast_state(rules).get(ctx.get_current_key()):
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules).put(*value)
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """The context of a broadcast element. There is no current key."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: KeyedStateFunction | Callable[[Any, Any], Any]
        ) -> None:
            """Call `function(key, state)` for every key of this subtask for which the state is not empty.

            During the call that key is the current one, even after a nested `apply_to_keyed_state`.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """The context of an element of the keyed stream."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the current times and the timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the element."""

    class OnTimerContext(ReadOnlyContext, ABC):
        """The context of the timer being processed."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether the timer is of event time or processing time."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the timer."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        """Process an element of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        """Process a broadcast element. Called once on every subtask."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        """Process a timer of the current key."""
        return None
