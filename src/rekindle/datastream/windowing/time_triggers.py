"""Triggers that fire by event time (the watermark) or processing time (the wall clock)."""

from __future__ import annotations

from typing import Any, cast

from rekindle.common.time import Duration, Time, as_millis
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream.state import ReducingState, ReducingStateDescriptor, ValueState, ValueStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.datastream.windowing.triggers import Trigger, TriggerResult
from rekindle.errors import GraphError

CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


class EventTimeTrigger(Trigger[Any, Any]):
    """Fires when the watermark passes the end of the window, and at once for a late element.

    >>> EventTimeTrigger.create()
    EventTimeTrigger()
    """

    @staticmethod
    def create() -> EventTimeTrigger:
        """Return a new trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at once if the watermark has passed the window's end, else register a timer for the end."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use processing time."""
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire if the timer is that of the window's end."""
        return FIRE if time == window.max_timestamp() else CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Register a timer for the end of the merged window."""
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer for the window's end."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[Any, Any]):
    """Fires when the wall clock passes the end of the window.

    >>> ProcessingTimeTrigger.create()
    ProcessingTimeTrigger()
    """

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Return a new trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Register a timer for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire."""
        return FIRE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use event time."""
        return CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Register a timer for the end of the merged window."""
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer for the window's end."""
        ctx.delete_processing_time_timer(window.max_timestamp())


class EndOfStreamTrigger(Trigger[Any, Any]):
    """Fires once, at the end of the input. `GlobalWindows.create_with_end_of_stream_trigger()` uses it."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Register a timer for the last watermark."""
        ctx.register_event_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use processing time."""
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the last watermark."""
        return FIRE if time == window.max_timestamp() else CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Do nothing: global windows do not merge."""

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer for the window's end."""
        ctx.delete_event_time_timer(window.max_timestamp())


class _ContinuousTrigger(Trigger[Any, Any]):
    """Fires at every multiple of an interval. State holds the next time."""

    def __init__(self, interval: int) -> None:
        if interval <= 0:
            raise GraphError(f"{type(self).__name__} needs an interval above 0 ms, not {interval}.")
        self.interval = interval
        self.state_desc = reserved(ReducingStateDescriptor("fire-time", min, int))

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def _next_fire(self, ctx: Trigger.TriggerContext) -> ReducingState[int]:
        return cast("ReducingState[int]", ctx.get_partitioned_state(self.state_desc))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires at every multiple of an interval that the watermark passes, and at the end of the window.

    >>> ContinuousEventTimeTrigger.of(Time.seconds(10))
    ContinuousEventTimeTrigger(10000)
    """

    @staticmethod
    def of(interval: Time | Duration | int) -> ContinuousEventTimeTrigger:
        """Return a trigger with this interval."""
        return ContinuousEventTimeTrigger(as_millis(interval))

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at once if the watermark has passed the window's end, else register timers for end and next multiple."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        next_fire = self._next_fire(ctx)
        if next_fire.get() is None:
            self.register_next_fire_timestamp(timestamp - timestamp % self.interval, window, ctx, next_fire)
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use processing time."""
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the window's end and at multiples of the interval."""
        if time == window.max_timestamp():
            return FIRE
        next_fire = self._next_fire(ctx)
        if next_fire.get() != time:
            return CONTINUE
        next_fire.clear()
        self.register_next_fire_timestamp(time, window, ctx, next_fire)
        return FIRE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Merge the next times into the earliest one, and register a timer for it."""
        ctx.merge_partitioned_state(self.state_desc)
        time = self._next_fire(ctx).get()
        if time is not None:
            ctx.register_event_time_timer(time)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the next timer and its state."""
        next_fire = self._next_fire(ctx)
        time = next_fire.get()
        if time is not None:
            ctx.delete_event_time_timer(time)
            next_fire.clear()

    def register_next_fire_timestamp(
        self, time: int, window: Any, ctx: Trigger.TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Register the next timer: one interval after `time`, or the window's end if that is earlier."""
        end = window.max_timestamp()
        # At the end of the input, a window without an end would fire at every multiple up to the largest timestamp.
        at_once = end == MAX_WATERMARK == ctx.get_current_watermark()
        next_fire = end if at_once else min(time + self.interval, end)
        fire_timestamp_state.add(next_fire)
        ctx.register_event_time_timer(next_fire)


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires at every multiple of an interval that the wall clock passes while the window has elements.

    >>> ContinuousProcessingTimeTrigger.of(Time.seconds(10))
    ContinuousProcessingTimeTrigger(10000)
    """

    @staticmethod
    def of(interval: Time | Duration | int) -> ContinuousProcessingTimeTrigger:
        """Return a trigger with this interval."""
        return ContinuousProcessingTimeTrigger(as_millis(interval))

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Register a timer for the next multiple of the interval."""
        next_fire = self._next_fire(ctx)
        if next_fire.get() is None:
            now = ctx.get_current_processing_time()
            self.register_next_fire_timestamp(now - now % self.interval, window, ctx, next_fire)
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at multiples of the interval."""
        next_fire = self._next_fire(ctx)
        if next_fire.get() != time:
            return CONTINUE
        next_fire.clear()
        self.register_next_fire_timestamp(time, window, ctx, next_fire)
        return FIRE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use event time."""
        return CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Merge the next times into the earliest one, and register a timer for it."""
        ctx.merge_partitioned_state(self.state_desc)
        time = self._next_fire(ctx).get()
        if time is not None:
            ctx.register_processing_time_timer(time)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the next timer and its state."""
        next_fire = self._next_fire(ctx)
        time = next_fire.get()
        if time is not None:
            ctx.delete_processing_time_timer(time)
            next_fire.clear()

    def register_next_fire_timestamp(
        self, time: int, window: Any, ctx: Trigger.TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Register the next timer: one interval after `time`, or the window's end if that is earlier and not past."""
        end = window.max_timestamp()
        # The wall clock may be past the end of an event-time window: a timer for that end would fire for ever.
        next_fire = min(time + self.interval, end) if time < end else time + self.interval
        fire_timestamp_state.add(next_fire)
        ctx.register_processing_time_timer(next_fire)


class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Wraps a trigger and also fires when a timeout after the first element is over (in Flink: Java only).

    >>> from rekindle.datastream.window import CountTrigger
    >>> ProcessingTimeoutTrigger.of(CountTrigger.of(3), Duration.of_millis(100))
    ProcessingTimeoutTrigger(CountTrigger(3), 100)
    """

    def __init__(
        self,
        nested_trigger: Trigger[Any, Any],
        interval: int,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> None:
        self.nested_trigger = nested_trigger
        self.interval = interval
        self.reset_timer_on_new_record = reset_timer_on_new_record
        self.should_clear_on_timeout = should_clear_on_timeout
        self.state_desc = reserved(ValueStateDescriptor("timeout", int))

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Time | Duration | int,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """Wrap a trigger.

        `reset_timer_on_new_record` restarts the timeout with each element. `should_clear_on_timeout` clears the
        trigger's state when the timeout fires.
        """
        return ProcessingTimeoutTrigger(
            nested_trigger, as_millis(timeout), reset_timer_on_new_record, should_clear_on_timeout
        )

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the wrapped trigger. Unless it fires, start the timeout."""
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        timeout = self._timeout(ctx)
        running = timeout.value()
        if running is not None and self.reset_timer_on_new_record:
            ctx.delete_processing_time_timer(running)
            running = None
        if running is None:
            at = ctx.get_current_processing_time() + self.interval
            timeout.update(at)
            ctx.register_processing_time_timer(at)
        return result

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire, and purge if the wrapped trigger asks for it."""
        return self._timed_out(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire, and purge if the wrapped trigger asks for it."""
        return self._timed_out(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Do nothing: the trigger does not support merging windows."""

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Stop the timeout and clear the wrapped trigger."""
        timeout = self._timeout(ctx)
        running = timeout.value()
        if running is not None:
            ctx.delete_processing_time_timer(running)
            timeout.clear()
        self.nested_trigger.clear(window, ctx)

    def _timed_out(self, result: TriggerResult, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else FIRE

    def _timeout(self, ctx: Trigger.TriggerContext) -> ValueState[int]:
        return cast("ValueState[int]", ctx.get_partitioned_state(self.state_desc))

    def __repr__(self) -> str:
        return f"ProcessingTimeoutTrigger({self.nested_trigger}, {self.interval})"
