"""Watermark alignment: a source that is too far ahead of the others of its group pauses until they have caught up.

The driver compares the sources: each task reports its group's watermark with an epoch, and the next epoch brings the
lowest of all. In between a task goes by the limit that it has.
"""

from __future__ import annotations

from collections.abc import Mapping

from rekindle.common.watermark_strategy import MAX_WATERMARK, MIN_WATERMARK, WatermarkAlignment


class AlignmentLimit:
    """The event time up to which the splits of one source may be read.

    >>> limit = AlignmentLimit(WatermarkAlignment("orders", max_drift_ms=100, update_interval_ms=1000))
    >>> limit.update({"orders": 50}, now_ms=0)
    >>> limit.value
    150
    >>> limit.update({"orders": 400}, now_ms=999)  # too early
    >>> limit.value
    150
    """

    def __init__(self, alignment: WatermarkAlignment) -> None:
        self.group = alignment.group
        self._drift_ms = alignment.max_drift_ms
        self._interval_ms = alignment.update_interval_ms
        self._next_ms: int | None = None
        self.value = MAX_WATERMARK

    def update(self, lowest: Mapping[str, int], now_ms: int) -> None:
        """Take the lowest watermark of the group, unless the update interval since the last one is not over."""
        watermark = lowest.get(self.group)
        if watermark is None or (self._next_ms is not None and now_ms < self._next_ms):
            return
        self._next_ms = now_ms + self._interval_ms
        # A source without a watermark yet cannot say how far the others may go: they wait for it, as in Flink.
        self.value = min(watermark + self._drift_ms, MAX_WATERMARK) if watermark > MIN_WATERMARK else MIN_WATERMARK
