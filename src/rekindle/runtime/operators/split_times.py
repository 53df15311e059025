"""Event time per split of a source: the subtask's watermark is the lowest of its splits' (I6). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rekindle.common.watermark_strategy import MIN_WATERMARK

#: The split of records that a reader returns without saying of which split they are.
WHOLE_SOURCE = ""


@dataclass(slots=True)
class _SplitTime:
    highest: int = MIN_WATERMARK  # the latest timestamp, or what a generator said: everything up to here has come
    active_ms: int = 0
    idle: bool = False


class SplitTimes:
    """How far each split has come in event time, and which splits are idle.

    >>> times = SplitTimes()
    >>> times.set_splits(["0", "1"], now_ms=0)
    >>> times.advance("0", 50, now_ms=5)
    >>> times.lowest() == MIN_WATERMARK  # split 1 may still bring anything
    True
    >>> times.idle_since(now_ms=10, timeout_ms=10)
    ['1']
    >>> times.lowest()
    50
    """

    def __init__(self) -> None:
        self._splits: dict[str, _SplitTime] = {WHOLE_SOURCE: _SplitTime()}

    def splits(self) -> list[str]:
        """Return the splits."""
        return list(self._splits)

    def set_splits(self, splits: Iterable[str], now_ms: int) -> None:
        """Begin with these splits; those that were restored keep their time."""
        self._splits = {split: self._splits.get(split, _SplitTime()) for split in splits}
        for time in self._splits.values():
            time.active_ms = now_ms

    def add(self, split: str, now_ms: int) -> None:
        """Add a new split: it holds back the watermark until it has records or is idle."""
        self._splits.setdefault(split, _SplitTime(active_ms=now_ms))

    def finish(self, splits: Collection[str]) -> None:
        """Forget splits that have ended: they do not hold back the watermark."""
        for split in splits:
            self._splits.pop(split, None)

    def advance(self, split: str, highest: int, now_ms: int) -> None:
        """Note records of a split up to the timestamp `highest`: it is active."""
        time = self._splits.get(split)
        if time is None:
            time = self._splits[split] = _SplitTime()
        if highest > time.highest:
            time.highest = highest
        time.active_ms = now_ms
        time.idle = False

    def mark_idle(self, split: str) -> None:
        """Mark a split idle until its next record."""
        if split in self._splits:
            self._splits[split].idle = True

    def idle_since(self, now_ms: int, timeout_ms: int) -> list[str]:
        """Mark the splits idle that had no record for `timeout_ms`; return those that were not idle before."""
        silent = [
            split for split, time in self._splits.items() if not time.idle and now_ms - time.active_ms >= timeout_ms
        ]
        for split in silent:
            self._splits[split].idle = True
        return silent

    def next_idle_ms(self, timeout_ms: int) -> int | None:
        """Return when the next split becomes idle if no record comes; None if all are."""
        active = [time.active_ms for time in self._splits.values() if not time.idle]
        return min(active) + timeout_ms if active else None

    def all_idle(self) -> bool:
        """Whether every split is idle."""
        return all(time.idle for time in self._splits.values())

    def lowest(self) -> int:
        """Return the time up to which every active split has come; of all splits, the furthest, if none is active."""
        active = [time.highest for time in self._splits.values() if not time.idle]
        if active:
            return min(active)
        return max((time.highest for time in self._splits.values()), default=MIN_WATERMARK)

    def ahead_of(self, limit: int) -> set[str]:
        """Return the splits that are further than `limit`."""
        return {split for split, time in self._splits.items() if time.highest > limit}

    def position(self) -> dict[str, int]:
        """Return the time of each split, for a snapshot."""
        return {split: time.highest for split, time in self._splits.items()}

    def seek(self, position: Mapping[str, int]) -> None:
        """Continue from a snapshot."""
        self._splits = {split: _SplitTime(highest) for split, highest in position.items()}
