"""Watermark strategies: how elements get timestamps and streams get watermarks, as data for the slot's runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import index
from typing import Any, Literal

from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.time import Duration, as_millis

__all__ = [
    "MAX_WATERMARK",
    "MIN_WATERMARK",
    "NO_TIMESTAMP",
    "TimestampAssigner",
    "Watermark",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]

_UPDATE_INTERVAL_MS = 1000

#: The watermark after the last element of bounded input: event time is over.
MAX_WATERMARK = 2**63 - 1
#: The watermark before the first element.
MIN_WATERMARK = -(2**63)
#: The timestamp of an element that has none.
NO_TIMESTAMP = MIN_WATERMARK


def event_time(what: str, time: Any) -> int:
    """A moment of event time as a user gave it, which must be an int of 64 bits.

    >>> event_time("a timestamp", 2**63)
    Traceback (most recent call last):
    ValueError: a timestamp must fit into 64 bits (milliseconds since 1970), and 9223372036854775808 does not
    """
    try:
        millis = index(time)
    except TypeError:
        raise TypeError(f"{what} must be an int (milliseconds since 1970), not {time!r}") from None
    if not MIN_WATERMARK <= millis <= MAX_WATERMARK:
        raise ValueError(f"{what} must fit into 64 bits (milliseconds since 1970), and {millis} does not")
    return millis


@dataclass(frozen=True, order=True)
class Watermark:
    """The statement that no element with this timestamp or an earlier one is expected any more.

    >>> Watermark(10) < Watermark(MAX_WATERMARK)
    True
    """

    timestamp: int


class TimestampAssigner(ABC):
    """Gives elements their event time."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The event time of an element in milliseconds since the epoch.

        :param record_timestamp: the timestamp that the element has so far, NO_TIMESTAMP when it has none.
        """


class _FunctionAssigner(TimestampAssigner):
    """A plain function as a timestamp assigner."""

    def __init__(self, function: Callable[[Any, int], int]) -> None:
        # The function replaces the method, so that each element costs one call and not two.
        self.extract_timestamp = function  # type: ignore[method-assign, assignment]

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:  # pragma: no cover
        """Never called: the function replaces it in each instance."""
        raise AssertionError("the instance's own attribute comes first")


class WatermarkOutput(ABC):
    """Takes the watermarks of a generator."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Emits a watermark; a watermark that is not above the last one is ignored."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Marks the stream as idle, so that the watermark of other streams does not wait for it."""

    @abstractmethod
    def mark_active(self) -> None:
        """Marks the stream as active again."""


class WatermarkGenerator(ABC):
    """Makes watermarks from the elements of a stream: periodically, or at certain elements."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for every element; may emit a watermark at once (punctuated)."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called every auto-watermark interval; may emit a watermark (periodic)."""


@dataclass(frozen=True)
class WatermarkAlignment:
    """How far a source may be ahead of the others of its group."""

    group: str
    max_drift_ms: int
    #: How long a source goes by one comparison of the group.
    update_interval_ms: int


@dataclass(frozen=True)
class WatermarkStrategy(RefusesJavaNames):
    """The way in which a stream gets timestamps and watermarks.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
    ...     lambda order, record_timestamp: order["time"]
    ... )
    >>> strategy.kind, strategy.max_out_of_orderness_ms
    ('bounded', 5000)
    """

    kind: Literal["none", "monotonous", "bounded", "custom"]
    max_out_of_orderness_ms: int = 0
    generator_supplier: Callable[[], WatermarkGenerator] | None = None
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout_ms: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """For timestamps that never decrease: the watermark follows the newest."""
        return WatermarkStrategy("monotonous")

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """For elements at most `max_out_of_orderness` late: the watermark stays that far behind the newest."""
        millis = as_millis(max_out_of_orderness)
        if millis < 0:
            raise ValueError(f"The out-of-orderness cannot be negative: {max_out_of_orderness!r}.")
        return WatermarkStrategy("bounded", millis)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No watermarks: for processing time."""
        return WatermarkStrategy("none")

    @staticmethod
    def for_generator(supplier: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """For a generator of the user's own: `supplier`, a class or a function, makes one generator per subtask."""
        if not callable(supplier):
            raise TypeError(f"{supplier!r} does not make generators: give a WatermarkGenerator class or a function.")
        return WatermarkStrategy("custom", generator_supplier=supplier)

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]
    ) -> WatermarkStrategy:
        """The same strategy with timestamps from `timestamp_assigner`, an object or a function."""
        if not isinstance(timestamp_assigner, TimestampAssigner):
            if not callable(timestamp_assigner):
                raise TypeError(
                    f"{timestamp_assigner!r} assigns no timestamps: give a TimestampAssigner "
                    "or a function of (value, record_timestamp)."
                )
            timestamp_assigner = _FunctionAssigner(timestamp_assigner)
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """The same strategy, but a split or subtask without input for `idle_timeout` does not hold back the watermark.

        Only time counts in which there was nothing to read: records that wait for a slow epoch, behind another split's
        or for watermark alignment keep their split from becoming idle.
        """
        millis = as_millis(idle_timeout)
        if millis <= 0:
            raise ValueError(f"The idle timeout must be longer than nothing: {idle_timeout!r}.")
        return replace(self, idle_timeout_ms=millis)

    def with_watermark_alignment(
        self, watermark_group: str, max_allowed_watermark_drift: Duration, update_interval: Duration | None = None
    ) -> WatermarkStrategy:
        """The same strategy, but the source pauses while it is too far ahead of the slowest one of its group.

        The splits of a source, such as Kafka's partitions, pause one by one. All sources with the same
        `watermark_group` are compared, every `update_interval` (a second) and with an epoch at most. It acts in
        `from_source`; a `SourceFunction` cannot be paused.
        """
        drift_ms = as_millis(max_allowed_watermark_drift)
        interval_ms = _UPDATE_INTERVAL_MS if update_interval is None else as_millis(update_interval)
        if drift_ms < 0 or interval_ms < 0:
            raise ValueError("The allowed drift and the update interval of a watermark alignment cannot be negative.")
        return replace(self, alignment=WatermarkAlignment(watermark_group, drift_ms, interval_ms))
