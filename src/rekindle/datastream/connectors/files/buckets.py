"""Bucket assigners: they choose the subdirectory (bucket) for each record of a file sink."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

from rekindle.clock import Clock
from rekindle.datastream.connectors.files.file_paths import is_hidden
from rekindle.datastream.connectors.sink_api import SinkWriter
from rekindle.datastream.validation import check_callable
from rekindle.errors import ConnectorError, GraphError

#: Patterns of Java's DateTimeFormatter, and the same in Python's strftime.
_PATTERNS = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "yy": "%y",
    "MM": "%m",
    "MMM": "%b",
    "dd": "%d",
    "DDD": "%j",
    "EEE": "%a",
    "HH": "%H",
    "hh": "%I",
    "a": "%p",
    "mm": "%M",
    "ss": "%S",
}
_TOKEN = re.compile(r"'(?P<quoted>[^']*)'|(?P<letters>([A-Za-z])\3*)|(?P<other>[^A-Za-z']+)")
_OFFSET = re.compile(r"(?:GMT|UTC|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?")
_DEFAULT_FORMAT = "yyyy-MM-dd--HH"


class BucketAssigner:
    """Chooses the bucket of a record. For your own buckets, extend it with `get_bucket_id(element, context)`.

    >>> class ByCountry(BucketAssigner):
    ...     def get_bucket_id(self, element, context):
    ...         return f"country={element['country']}"
    >>> ByCountry().get_bucket_id({"country": "fr"}, None)
    'country=fr'
    """

    class Context:
        """The timestamp and clocks of the record being assigned."""

        def __init__(self, clock: Clock) -> None:
            self._clock = clock
            self.of_writer: SinkWriter.Context | None = None

        def timestamp(self) -> int | None:
            """Return the record's timestamp in milliseconds, or None if it has none."""
            return None if self.of_writer is None else self.of_writer.timestamp()

        def current_watermark(self) -> int | None:
            """Return the watermark, in milliseconds."""
            return None if self.of_writer is None else self.of_writer.current_watermark()

        def current_processing_time(self) -> int:
            """Return the wall clock, in milliseconds."""
            return self._clock.wall_ms()

    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        """Return the bucket: a relative path such as `year=2024/month=5`, or an empty string for the base path."""
        raise NotImplementedError

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Return an assigner that puts all files into the base path.

        >>> BucketAssigner.base_path_bucket_assigner().get_bucket_id("a", None)
        ''
        """
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = _DEFAULT_FORMAT, timezone_id: str | None = None) -> BucketAssigner:
        """Return an assigner by the time of writing, in a Java pattern (yyyy, MM, dd, HH, mm, ss, ...).

        >>> from rekindle.clock import SystemClock
        >>> assigner = BucketAssigner.date_time_bucket_assigner("yyyy/MM/dd", "UTC")
        >>> assigner.get_bucket_id("a", BucketAssigner.Context(SystemClock())).count("/")
        2
        """
        return DateTimeBuckets(format_str, timezone_id)

    @staticmethod
    def of(function: Callable[[Any], str]) -> BucketAssigner:
        """Return an assigner that calls a function of the record.

        >>> BucketAssigner.of(lambda order: order["day"]).get_bucket_id({"day": "2024-05-01"}, None)
        '2024-05-01'
        """
        check_callable("BucketAssigner.of()", function, 1, "a function of the record")
        return _OfFunction(function)


class _BasePath(BucketAssigner):
    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        return ""


class _OfFunction(BucketAssigner):
    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function

    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        return self._function(element)


class DateTimeBuckets(BucketAssigner):
    """Assigns buckets by the wall clock. The text is formatted once a second."""

    def __init__(self, format_str: str = _DEFAULT_FORMAT, timezone_id: str | None = None) -> None:
        self._format = strftime_pattern(format_str)
        self._zone = None if timezone_id is None else time_zone(timezone_id)
        self._second = -1
        self._bucket = ""

    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        second = context.current_processing_time() // 1000
        if second != self._second:
            self._second = second
            self._bucket = dt.datetime.fromtimestamp(second, self._zone).strftime(self._format)
        return self._bucket


def strftime_pattern(pattern: Any) -> str:
    """Return the strftime pattern of a Java pattern. Refuses letters that have no equivalent.

    >>> strftime_pattern("yyyy-MM-dd--HH'h'")
    '%Y-%m-%d--%Hh'
    """
    if not isinstance(pattern, str) or not pattern:
        raise GraphError(f"date_time_bucket_assigner() takes a pattern such as '{_DEFAULT_FORMAT}', not {pattern!r}.")
    parts, end = [], 0
    for token in _TOKEN.finditer(pattern):
        letters = token["letters"]
        if token.start() != end or (letters is not None and letters not in _PATTERNS):
            break
        literal = token["other"] if token["quoted"] is None else token["quoted"] or "'"
        parts.append(_PATTERNS[letters] if letters is not None else literal.replace("%", "%%"))
        end = token.end()
    if end != len(pattern):
        known = ", ".join(_PATTERNS)
        raise GraphError(
            f"date_time_bucket_assigner() does not know '{pattern[end:]}' in '{pattern}': it knows {known}, and text "
            "in single quotes."
        )
    return "".join(parts)


def time_zone(zone_id: str) -> dt.tzinfo:
    """Return the time zone with this name or offset.

    >>> time_zone("GMT-08:00")
    datetime.timezone(datetime.timedelta(days=-1, seconds=57600))
    """
    offset = _OFFSET.fullmatch(zone_id) if isinstance(zone_id, str) else None
    if offset is not None:
        delta = dt.timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
        if delta < dt.timedelta(hours=24):
            return dt.timezone(-delta if offset["sign"] == "-" else delta)
    try:
        return zoneinfo.ZoneInfo(zone_id)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise GraphError(
            f"date_time_bucket_assigner() knows no time zone {zone_id!r}: write one such as 'Europe/Paris', 'UTC' or "
            "'GMT-08:00'."
        ) from None


def checked_bucket(bucket: Any) -> str:
    """Check that a bucket is below the base path and visible to readers. Returns it without a trailing slash.

    >>> checked_bucket("year=2024/month=5/")
    'year=2024/month=5'
    """
    if not isinstance(bucket, str):
        raise ConnectorError(f"A bucket assigner must return a string, not {bucket!r}: use str().")
    parts = bucket.removesuffix("/").split("/") if bucket else []
    if any(part == "" or is_hidden(part) or "\0" in part for part in parts):
        raise ConnectorError(
            f"{bucket!r} is no bucket: it must be a path below the sink's directory, without '..', and without names "
            "that begin with '.' or '_', which readers skip."
        )
    return "/".join(parts)
