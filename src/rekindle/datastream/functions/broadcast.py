"""Process functions with a broadcast side: every subtask sees every element of it and keeps it in broadcast state."""

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
    """What both broadcast functions share."""

    class BaseContext(ABC):
        """What a function may ask on either side."""

        @abstractmethod
        def timestamp(self) -> int:
            """The element's timestamp in milliseconds; None if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark of this operator."""

    class Context(BaseContext):
        """On the broadcast side: state may be changed, alike on every subtask."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """The broadcast state of a descriptor given to `broadcast`."""

    class ReadOnlyContext(BaseContext):
        """On the other side: state may only be read."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """The broadcast state of a descriptor given to `broadcast`."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Connects a stream that is not keyed with a broadcast one.

    >>> rules = MapStateDescriptor("rules", str, int)
    >>> class Enrich(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield value, ctx.get_broadcast_state(rules).get(value)
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules).put(*value)
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """On the broadcast side."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """On the other side."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        """Handle an element of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Any:
        """Handle a broadcast element, once on every subtask."""


class KeyedStateFunction(ABC):
    """What `apply_to_keyed_state` calls for each key; a plain callable of key and state will do, too."""

    @abstractmethod
    def process(self, key: Any, state: Any) -> None:
        """Read or change one key's state."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Connects a keyed stream with a broadcast one: keyed state and timers on the keyed side.

    >>> rules = MapStateDescriptor("rules", str, int)
    >>> class Limit(KeyedBroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value <= ctx.get_broadcast_state(rules).get(ctx.get_current_key()):
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules).put(*value)
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """On the broadcast side: there is no current key."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: KeyedStateFunction | Callable[[Any, Any], Any]
        ) -> None:
            """Call `function(key, state)` for every key of this subtask that has something in that state.

            Inside the call that key is the current one, also after another `apply_to_keyed_state` in it.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """On the keyed side."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Times and timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the element."""

    class OnTimerContext(ReadOnlyContext, ABC):
        """While a timer fires."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock the timer followed."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the timer."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        """Handle an element of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        """Handle a broadcast element, once on every subtask."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        """Handle a timer of the current key."""
        return None
