"""`TimerService`: timers and the current time, for user functions."""

from __future__ import annotations

from abc import ABC, abstractmethod


class TimerService(ABC):
    """The current time and the timers of the current key.

    There is at most one timer per key and time. Times are milliseconds since 1970-01-01T00:00Z.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the wall clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the watermark of this operator."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` when the wall clock passes `timestamp`."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` when the watermark passes `timestamp`."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete the current key's processing-time timer for `timestamp`, if there is one."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete the current key's event-time timer for `timestamp`, if there is one."""
