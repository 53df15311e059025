"""Timers and the current time, as functions see them."""

from __future__ import annotations

from abc import ABC, abstractmethod


class TimerService(ABC):
    """Time and timers. Timers are kept once per key and time; times are milliseconds since the epoch."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The wall clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The event-time watermark of this operator."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` when the wall clock passes `timestamp`."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` when the watermark passes `timestamp`."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget the current key's processing-time timer for `timestamp`, if there is one."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget the current key's event-time timer for `timestamp`, if there is one."""
