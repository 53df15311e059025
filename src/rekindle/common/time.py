"""Durations and instants: `Duration`, `Time`, `TimeUnit`, `Instant`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from rekindle.serde.tagged_codec import register_value_type

__all__ = ["Duration", "Instant", "Time", "TimeUnit", "as_millis"]

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000


class TimeUnit(Enum):
    """The units of `Time.of`, under Java's names.

    >>> TimeUnit.MINUTES.to_millis(2)
    120000
    """

    NANOSECONDS = 1
    MICROSECONDS = 1_000
    MILLISECONDS = 1_000_000
    SECONDS = 1_000_000_000
    MINUTES = 60 * 1_000_000_000
    HOURS = 3600 * 1_000_000_000
    DAYS = 86_400 * 1_000_000_000

    def to_millis(self, duration: int) -> int:
        """`duration` of this unit in whole milliseconds, rounded down."""
        return duration * self.value // _NANOS_PER_MILLI


@dataclass(frozen=True, order=True, repr=False)
class Duration:
    """An amount of time.

    >>> Duration.of_seconds(90)
    PT1M30S
    >>> Duration.of_minutes(1).to_millis()
    60000
    """

    nanos: int

    @staticmethod
    def of_days(days: int) -> Duration:
        """`days` times 24 hours."""
        return Duration.of_hours(days * 24)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """`hours` hours."""
        return Duration.of_minutes(hours * 60)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """`minutes` minutes."""
        return Duration.of_seconds(minutes * 60)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """`seconds` seconds."""
        return Duration(int(seconds * _NANOS_PER_SECOND))

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """`millis` milliseconds."""
        return Duration(int(millis * _NANOS_PER_MILLI))

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """`nanos` nanoseconds."""
        return Duration(nanos)

    def to_millis(self) -> int:
        """Whole milliseconds, rounded down."""
        return self.nanos // _NANOS_PER_MILLI

    def to_timedelta(self) -> timedelta:
        """The same as a `datetime.timedelta`, rounded down to microseconds."""
        return timedelta(microseconds=self.nanos // 1000)

    def __repr__(self) -> str:
        sign = "-" if self.nanos < 0 else ""
        seconds, nanos = divmod(abs(self.nanos), _NANOS_PER_SECOND)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
        parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
        if seconds or nanos or not self.nanos:
            parts.append(f"{seconds}{fraction}S")
        return f"{sign}PT{''.join(parts)}"


@dataclass(frozen=True, order=True, repr=False)
class Instant:
    """A point in time: seconds since 1970 (UTC), and nanoseconds after that second.

    >>> Instant.of_epoch_milli(1500)
    Instant<1, 500000000>
    """

    seconds: int
    nanos: int

    def to_epoch_milli(self) -> int:
        """Milliseconds since 1970, rounded down.

        >>> Instant.of_epoch_milli(-1).to_epoch_milli()
        -1
        """
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """The instant `epoch_milli` milliseconds after the start of 1970."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


@dataclass(frozen=True, order=True, repr=False)
class Time:
    """An amount of time in milliseconds, as window sizes are given.

    >>> Time.minutes(5).to_milliseconds()
    300000
    """

    _milliseconds: int

    @staticmethod
    def of(size: int, unit: TimeUnit) -> Time:
        """`size` of the unit.

        >>> Time.of(10, TimeUnit.SECONDS)
        10000 ms
        """
        if not isinstance(unit, TimeUnit):
            raise TypeError(f"Time.of() takes a TimeUnit, such as TimeUnit.SECONDS, not {unit!r}.")
        return Time(unit.to_millis(size))

    def to_milliseconds(self) -> int:
        """The amount in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """`milliseconds` milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """`seconds` seconds."""
        return Time(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """`minutes` minutes."""
        return Time.seconds(minutes * 60)

    @staticmethod
    def hours(hours: int) -> Time:
        """`hours` hours."""
        return Time.minutes(hours * 60)

    @staticmethod
    def days(days: int) -> Time:
        """`days` times 24 hours."""
        return Time.hours(days * 24)

    def __repr__(self) -> str:
        return f"{self._milliseconds} ms"

    __str__ = __repr__


def as_millis(amount: Duration | Time | timedelta | int) -> int:
    """A duration of any form in whole milliseconds; an int is milliseconds already.

    >>> as_millis(Duration.of_seconds(2)), as_millis(Time.seconds(2)), as_millis(timedelta(seconds=2)), as_millis(2000)
    (2000, 2000, 2000, 2000)
    """
    if isinstance(amount, Duration):
        return amount.to_millis()
    if isinstance(amount, Time):
        return amount.to_milliseconds()
    if isinstance(amount, timedelta):
        return amount // timedelta(milliseconds=1)
    if isinstance(amount, int) and not isinstance(amount, bool):
        return amount
    raise TypeError(f"{amount!r} is no amount of time: use Duration, Time, datetime.timedelta or milliseconds.")


def _parts_of(value: Duration | Instant | Time) -> Sequence[Any]:
    return tuple(vars(value).values())


register_value_type("Duration", Duration, _parts_of, lambda parts: Duration(*parts))
register_value_type("Instant", Instant, _parts_of, lambda parts: Instant(*parts))
register_value_type("Time", Time, _parts_of, lambda parts: Time(*parts))
