"""The minimum over channels: when an operator's event time advances, goes idle, or ends (I6). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rekindle.common.watermark_strategy import MIN_WATERMARK

Channel = tuple[int, int]  # (edge, source subtask)


@dataclass(slots=True)
class _ChannelTime:
    watermark: int = MIN_WATERMARK
    idle: bool = False
    ended: bool = False
    aligned: bool = True  # a channel that wakes up behind the others counts again once it has caught up


class WatermarkValve:
    """Follows every channel of a task's inputs.

    >>> valve = WatermarkValve([(0, 0), (0, 1)])
    >>> valve.advance((0, 0), 10), valve.advance((0, 1), 7), valve.idle((0, 1))
    (None, 7, 10)
    """

    def __init__(self, channels: Iterable[Channel], inputs: Mapping[int, int] | None = None) -> None:
        """`inputs` says which input of the task an edge belongs to; by default there is only one."""
        self._channels = {channel: _ChannelTime() for channel in channels}
        self._inputs = inputs or {}
        self.current = MIN_WATERMARK

    def advance(self, channel: Channel, watermark: int) -> int | None:
        """A channel's watermark; the answer is the task's new one, if it moved."""
        time = self._channels[channel]
        time.watermark = max(time.watermark, watermark)
        time.idle = False
        time.aligned = time.watermark >= self.current
        return self._moved()

    def active(self, channel: Channel) -> None:
        """A record came: an idle channel counts again."""
        time = self._channels.get(channel)
        if time is not None and time.idle:
            time.idle = False
            time.aligned = time.watermark >= self.current

    def idle(self, channel: Channel) -> int | None:
        """A channel went idle; the others may now decide.

        The last one of all leaves nobody to wait for: then time is what the furthest channel of its input had said.
        """
        last = self._channels[channel]
        last.idle = True
        if not self.all_idle:
            return self._moved()
        furthest = max(time.watermark for each, time in self._channels.items() if self._same_input(each, channel))
        if not last.aligned or furthest <= self.current:
            return None
        self.current = furthest
        return furthest

    def _same_input(self, one: Channel, other: Channel) -> bool:
        return self._inputs.get(one[0], 0) == self._inputs.get(other[0], 0)

    def end(self, channel: Channel) -> bool:
        """A channel ended; True when all have."""
        self._channels[channel].ended = True
        return self.all_ended

    @property
    def all_idle(self) -> bool:
        """Whether nobody is left to wait for."""
        return all(time.idle for time in self._channels.values())

    @property
    def all_ended(self) -> bool:
        """Whether nothing can come any more."""
        return all(time.ended for time in self._channels.values())

    def sources(self) -> dict[int, set[int]]:
        """Edge -> the subtasks that send over it."""
        found: dict[int, set[int]] = {}
        for edge, source in self._channels:
            found.setdefault(edge, set()).add(source)
        return found

    def _moved(self) -> int | None:
        deciding = [time.watermark for time in self._channels.values() if not time.idle and time.aligned]
        if not deciding or min(deciding) <= self.current:
            return None
        self.current = min(deciding)
        return self.current

    def seek(self, position: list[Any]) -> None:
        """Go on from a snapshot: channels that are gone are skipped."""
        self.current, channels = position
        for edge, source, watermark, idle, ended in channels:
            if (edge, source) in self._channels:
                aligned = watermark >= self.current
                self._channels[edge, source] = _ChannelTime(watermark, idle, ended, aligned)

    def position(self) -> list[Any]:
        """What a snapshot keeps: each channel's watermark and flags, and the task's own watermark."""
        channels = [[*channel, time.watermark, time.idle, time.ended] for channel, time in self._channels.items()]
        return [self.current, channels]
