"""Event time per split of a source: the subtask's watermark is the lowest of its splits' (I6). Pure.

A split becomes idle after a time in which it had nothing to read, not after a time in which nothing was read of it: its
records may wait because an epoch takes long, another split uses up the budget, or it is paused. Time between two looks
counts if the split had nothing at both and nothing was read in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rekindle.common.watermark_strategy import MIN_WATERMARK

#: The split of records that a reader returns without saying of which split they are.
WHOLE_SOURCE = ""
#: The split of records that other subtasks had in flight before a rescale.
OTHER_SUBTASKS = "other subtasks"


@dataclass(slots=True)
class _SplitTime:
    highest: int = MIN_WATERMARK  # the latest timestamp, or what a generator said: everything up to here has come
    idle: bool = False
    quiet_ms: int = 0  # how long it has had nothing to read, since its last record
    looked_ms: int | None = None  # the last look, if it had nothing to read then


class SplitTimes:
    """How far each split has come in event time, and which splits are idle.

    >>> times = SplitTimes()
    >>> times.set_splits(["0", "1"])
    >>> times.note_quiet(["1"], now_ms=0)
    >>> times.advance("0", 50)
    >>> times.lowest() == MIN_WATERMARK  # split 1 may still bring anything
    True
    >>> times.note_quiet(["0", "1"], now_ms=10)
    >>> times.mark_quiet_idle(timeout_ms=10)
    ['1']
    >>> times.lowest()
    50
    """

    def __init__(self) -> None:
        self._splits: dict[str, _SplitTime] = {WHOLE_SOURCE: _SplitTime()}

    def splits(self) -> list[str]:
        """Return the splits."""
        return list(self._splits)

    def set_splits(self, splits: Iterable[str]) -> None:
        """Begin with these splits; those that were restored keep their time."""
        self._splits = {split: self._splits.get(split, _SplitTime()) for split in splits}

    def add(self, split: str) -> None:
        """Add a new split: it holds back the watermark until it has records or is idle."""
        self._splits.setdefault(split, _SplitTime())

    def finish(self, splits: Collection[str]) -> None:
        """Forget splits that have ended: they do not hold back the watermark."""
        for split in splits:
            self._splits.pop(split, None)

    def advance(self, split: str, highest: int) -> None:
        """Note records of a split up to the timestamp `highest`: it is active."""
        time = self._splits.get(split)
        if time is None:
            time = self._splits[split] = _SplitTime()
        if highest > time.highest:
            time.highest = highest
        time.idle = False
        time.quiet_ms, time.looked_ms = 0, None

    def note_quiet(self, quiet: Collection[str], now_ms: int) -> None:
        """Take a look: `quiet` splits have nothing to read now; others have, or it is not known."""
        for split, time in self._splits.items():
            if split not in quiet:
                time.looked_ms = None
                continue
            if time.looked_ms is not None:
                time.quiet_ms += max(0, now_ms - time.looked_ms)
            time.looked_ms = now_ms

    def mark_idle(self, split: str) -> None:
        """Mark a split idle until its next record."""
        if split in self._splits:
            self._splits[split].idle = True

    def mark_quiet_idle(self, timeout_ms: int) -> list[str]:
        """Mark the splits idle that had nothing to read for `timeout_ms`; return those that were not idle before."""
        silent = [split for split, time in self._splits.items() if not time.idle and time.quiet_ms >= timeout_ms]
        for split in silent:
            self._splits[split].idle = True
        return silent

    def next_idle_ms(self, timeout_ms: int, since_ms: int) -> int | None:
        """Return when a look may find the next split idle, None if all are; `since_ms`: the end of the last epoch."""
        active = [
            since_ms if time.looked_ms is None else time.looked_ms - time.quiet_ms
            for time in self._splits.values()
            if not time.idle
        ]
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
        return {split: time.highest for split, time in self._splits.items() if split != OTHER_SUBTASKS}

    def seek(self, position: Mapping[str, int]) -> None:
        """Continue from a snapshot."""
        self._splits = {split: _SplitTime(highest) for split, highest in position.items()}
