"""Dates, times and timestamps as text: RFC 3339 for JSON (`2018-11-12T12:12:12Z`), SQL's form for CSV."""

from __future__ import annotations

import datetime as dt

from rekindle.common.time import Instant
from rekindle.common.type_system.fields import instant_of

_EPOCH = dt.datetime(1970, 1, 1)


def date_of(text: str) -> dt.date:
    """Return the date of `yyyy-mm-dd`.

    >>> date_of("2018-11-12")
    datetime.date(2018, 11, 12)
    """
    # Python also reads 20181112 and 2018-W46-1, which Flink refuses.
    if len(text) != 10 or text[4:8:3] != "--":
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def time_of(text: str) -> dt.time:
    """Return the time of `hh:mm:ss`, with or without a fraction and a `Z`.

    >>> time_of("12:12:43Z")
    datetime.time(12, 12, 43)
    """
    if text[2:6:3] != "::":
        raise ValueError(text)
    time = dt.time.fromisoformat(text)
    if time.tzinfo is None:
        return time
    if time.utcoffset():
        raise ValueError(text)
    return time.replace(tzinfo=None)


def timestamp_of(text: str, separator: str = "T") -> dt.datetime:
    """Return the timestamp of `yyyy-mm-ddThh:mm:ss`, with or without a fraction and a `Z`.

    >>> timestamp_of("2018-11-12T12:12:12.5Z")
    datetime.datetime(2018, 11, 12, 12, 12, 12, 500000)
    """
    if text[4:8:3] != "--" or text[10:17:3] != f"{separator}::":
        raise ValueError(text)
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return moment
    # As in Flink: other offsets than UTC are refused.
    if moment.utcoffset():
        raise ValueError(text)
    return moment.replace(tzinfo=None)


def instant_of_text(text: str, separator: str = "T") -> Instant:
    """Return the instant of a timestamp in UTC, to the nanosecond.

    >>> instant_of_text("1970-01-01T00:00:01.123456789Z")
    Instant<1, 123456789>
    """
    instant = instant_of(timestamp_of(text, separator).replace(microsecond=0))
    fraction = text[20:].rstrip("Z") if text[19:20] == "." else ""
    return Instant(instant.seconds, int(fraction[:9].ljust(9, "0")))


def time_text(time: dt.time) -> str:
    """Return `hh:mm:ss`, with a fraction only if there is one.

    >>> time_text(dt.time(12, 12, 43, 500000))
    '12:12:43.5'
    """
    return time.replace(tzinfo=None).isoformat() if not time.microsecond else _with_fraction(time)


def timestamp_text(moment: dt.datetime, separator: str = "T") -> str:
    """Return the timestamp in UTC without a zone, with a fraction only if there is one.

    >>> timestamp_text(dt.datetime(2018, 11, 12, 12, 12, 12))
    '2018-11-12T12:12:12'
    """
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    text = moment.isoformat(separator)
    return text.rstrip("0") if moment.microsecond else text


def instant_text(instant: Instant, separator: str = "T") -> str:
    """Return the instant's timestamp in UTC, with a `Z`.

    >>> instant_text(Instant(1, 123456789), " ")
    '1970-01-01 00:00:01.123456789Z'
    """
    seconds = (_EPOCH + dt.timedelta(seconds=instant.seconds)).isoformat(separator)
    fraction = f".{instant.nanos:09d}".rstrip("0") if instant.nanos else ""
    return f"{seconds}{fraction}Z"


def _with_fraction(time: dt.time) -> str:
    return time.replace(tzinfo=None).isoformat().rstrip("0")
