"""Combines the watermarks of a task's channels: when its event time advances, goes idle, or ends (I6). Pure."""

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
    aligned: bool = True  # False: the channel became active again behind the others, and counts once it has caught up


class WatermarkValve:
    """The watermark, idleness and end of every input channel of a task.

    >>> valve = WatermarkValve([(0, 0), (0, 1)])
    >>> valve.advance((0, 0), 10), valve.advance((0, 1), 7), valve.idle((0, 1))
    (None, 7, 10)
    """

    def __init__(self, channels: Iterable[Channel], inputs: Mapping[int, int] | None = None) -> None:
        """`inputs` maps an edge to the task's input; by default there is only one."""
        self._channels = {channel: _ChannelTime() for channel in channels}
        self._inputs = inputs or {}
        self.current = MIN_WATERMARK

    def advance(self, channel: Channel, watermark: int) -> int | None:
        """Advance a channel's watermark; return the task's new watermark if that moved."""
        time = self._channels[channel]
        time.watermark = max(time.watermark, watermark)
        # A channel that counts goes on to count, also behind the others: after a restore it may be there.
        time.aligned = time.watermark >= self.current or (time.aligned and not time.idle)
        time.idle = False
        return self._advanced()

    def active(self, channel: Channel) -> None:
        """Mark a channel active, because a record came: an idle channel counts again."""
        time = self._channels.get(channel)
        if time is not None and time.idle:
            time.idle = False
            time.aligned = time.watermark >= self.current

    def idle(self, channel: Channel) -> int | None:
        """Mark a channel idle; return the task's new watermark if that moved.

        Once all channels are idle, the task's watermark becomes the highest of the input whose channel went idle last.
        """
        last = self._channels[channel]
        last.idle = True
        if not self.all_idle:
            return self._advanced()
        furthest = max(time.watermark for each, time in self._channels.items() if self._same_input(each, channel))
        if not last.aligned or furthest <= self.current:
            return None
        self.current = furthest
        return furthest

    def _same_input(self, one: Channel, other: Channel) -> bool:
        return self._inputs.get(one[0], 0) == self._inputs.get(other[0], 0)

    def end(self, channel: Channel) -> bool:
        """Mark a channel ended; True when all channels have ended."""
        self._channels[channel].ended = True
        return self.all_ended

    @property
    def all_idle(self) -> bool:
        """Whether all channels are idle."""
        return all(time.idle for time in self._channels.values())

    @property
    def all_ended(self) -> bool:
        """Whether all channels have ended."""
        return all(time.ended for time in self._channels.values())

    def sources(self) -> dict[int, set[int]]:
        """Return the sending subtasks by edge."""
        found: dict[int, set[int]] = {}
        for edge, source in self._channels:
            found.setdefault(edge, set()).add(source)
        return found

    def _advanced(self) -> int | None:
        deciding = [time.watermark for time in self._channels.values() if not time.idle and time.aligned]
        if not deciding or min(deciding) <= self.current:
            return None
        self.current = min(deciding)
        return self.current

    def seek(self, position: list[Any]) -> None:
        """Continue from a snapshot; skip channels that do not exist any more.

        A channel behind the others counts if it counted before: after a rescale it may not have sent a watermark yet.
        """
        self.current, channels = position
        for edge, source, watermark, idle, ended, aligned in channels:
            if (edge, source) in self._channels:
                counts = aligned or watermark >= self.current
                self._channels[edge, source] = _ChannelTime(watermark, idle, ended, counts)

    def position(self) -> list[Any]:
        """Return the state for a snapshot: the task's watermark, then each channel's watermark and flags."""
        channels = [
            [*channel, time.watermark, time.idle, time.ended, time.aligned] for channel, time in self._channels.items()
        ]
        return [self.current, channels]
