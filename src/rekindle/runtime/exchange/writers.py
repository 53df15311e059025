"""Writers distribute an operator's output over channels: one writer per exchange edge and subtask.

Writers take whole batches. Counters and seeds belong to the cut (I1): `position()` returns them, `seek()` sets them.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.protocol import EdgeCount
from rekindle.runtime.exchange.chunk import END, IDLE, WATERMARK, ChunkBody, Mark, encode_body, encode_chunk
from rekindle.runtime.exchange.outbox import ChunkOutbox
from rekindle.runtime.key_hash import KeyRouter
from rekindle.runtime.list_keys import hashable_key
from rekindle.runtime.operators.output import OperatorFailure, failed_record
from rekindle.serde import ChunkCodec


@dataclass(frozen=True)
class EdgeTarget:
    """The edge to which a writer writes."""

    edge: int
    label: str  # names of the operators on both sides, for messages
    source: int  # subtask that writes
    sources: int  # parallelism of the writing operator
    target_slots: tuple[int, ...]  # slot of each target subtask
    codec: ChunkCodec
    chunk_records: int

    @property
    def channels(self) -> int:
        """The number of target subtasks."""
        return len(self.target_slots)


@dataclass(slots=True)
class _Channel:
    """The buffer for the next chunk to one target subtask."""

    target: int
    records: list[Any] = field(default_factory=list)
    timestamps: list[int] | None = None
    marks: list[Mark] = field(default_factory=list)
    sequence: int = 0
    sent: int = 0


class EdgeWriter(ABC):
    """Buffers records per channel and cuts them into chunks."""

    def __init__(self, edge: EdgeTarget, outbox: ChunkOutbox) -> None:
        self.edge = edge
        self._outbox = outbox
        self._channels = [_Channel(target) for target in range(edge.channels)]
        #: The channels that can ever get a record from this subtask: watermarks go to these.
        self._reachable_channels = self._channels

    @abstractmethod
    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Distribute a batch over the channels."""

    def emit_watermark(self, watermark: int) -> None:
        """Send a watermark to every channel, after the records before it."""
        self._mark_all(WATERMARK, watermark)

    def emit_idle(self) -> None:
        """Send idleness to every channel: the receivers stop waiting for this subtask's watermark."""
        self._mark_all(IDLE, 0)

    def emit_end(self) -> None:
        """Send the end of the input to every channel."""
        self._mark_all(END, 0)

    def flush(self) -> None:
        """Send the buffered records at the end of the epoch."""
        for channel in self._channels:
            if channel.records or channel.marks:
                self._send(channel)

    def end_epoch(self) -> list[EdgeCount]:
        """Return the records per channel since the last call; start the sequences again."""
        counts = []
        for channel in self._channels:
            if channel.sequence:
                counts.append(EdgeCount(self.edge.edge, self.edge.source, channel.target, channel.sent))
            channel.sequence = channel.sent = 0
        return counts

    def position(self) -> Any:
        """Return the position for a snapshot, from which a restore continues; None if there is none."""
        return None

    def seek(self, position: Any) -> None:
        """Continue from a snapshot's position."""

    def _mark_all(self, kind: int, value: int) -> None:
        for channel in self._reachable_channels:
            mark = Mark(len(channel.records), kind, value)
            if kind == WATERMARK and channel.marks and channel.marks[-1][:2] == mark[:2]:
                channel.marks[-1] = mark
            else:
                channel.marks.append(mark)

    def _extend(self, channel: _Channel, records: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Add to a channel's buffer and send full chunks: no chunk exceeds its limit."""
        start, most = 0, self.edge.chunk_records
        while len(records) - start > (room := most - len(channel.records)):
            until = start + room
            self._add(channel, records[start:until], timestamps[start:until] if timestamps is not None else None)
            start = until
        if start:
            records, timestamps = records[start:], timestamps[start:] if timestamps is not None else None
        self._add(channel, records, timestamps)

    def _add(self, channel: _Channel, records: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        held = len(channel.records)
        if timestamps is not None:
            if channel.timestamps is None:
                channel.timestamps = [NO_TIMESTAMP] * held
            channel.timestamps.extend(timestamps)
        elif channel.timestamps is not None:
            channel.timestamps.extend([NO_TIMESTAMP] * len(records))
        channel.records.extend(records)
        if len(channel.records) >= self.edge.chunk_records:
            self._send(channel)

    def _body(self, channel: _Channel) -> ChunkBody:
        try:
            return encode_body(channel.records, channel.timestamps, channel.marks, self.edge.codec)
        except Exception as error:
            raise OperatorFailure(self.edge.label) from error

    def _send(self, channel: _Channel) -> None:
        body = self._body(channel)
        edge = self.edge
        chunk = encode_chunk(edge.edge, edge.source, channel.target, channel.sequence, body)
        self._outbox.put(edge.target_slots[channel.target], chunk)
        channel.sequence += 1
        channel.sent += len(channel.records)
        channel.records.clear()
        channel.marks.clear()
        channel.timestamps = None


class KeyWriter(EdgeWriter):
    """`key_by`: sends a record to the subtask that owns its key's key group (I11)."""

    def __init__(
        self,
        edge: EdgeTarget,
        outbox: ChunkOutbox,
        selector: Callable[[Any], Any],
        max_parallelism: int,
        router_entries: int | None = None,
    ) -> None:
        """`router_entries`: the most keys whose channels are remembered."""
        super().__init__(edge, outbox)
        self._selector = selector
        self._staged: list[list[Any]] = [[] for _ in self._channels]
        self._appends = KeyRouter(max_parallelism, [staged.append for staged in self._staged], router_entries)

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Group the batch by channel in one pass."""
        selector, appends = self._selector, self._appends
        appends.note_lookups(len(records))
        remaining = iter(records)
        try:
            if timestamps is None:
                for record in remaining:
                    key = selector(record)
                    try:
                        append = appends[key]
                    except TypeError:
                        append = appends[hashable_key(key)]
                    append(record)
            else:
                for record, timestamp in zip(remaining, timestamps, strict=True):
                    key = selector(record)
                    try:
                        append = appends[key]
                    except TypeError:
                        append = appends[hashable_key(key)]
                    append(record)
                    append(timestamp)
        except Exception as error:
            raise failed_record(self.edge.label, records, remaining) from error
        for channel, staged in zip(self._channels, self._staged, strict=True):
            if not staged:
                continue
            if timestamps is None:
                self._extend(channel, staged, None)
            else:
                self._extend(channel, staged[::2], staged[1::2])
            staged.clear()


class RoundRobinWriter(EdgeWriter):
    """`rebalance` over all channels, `rescale` over this subtask's share: each record goes to the next channel."""

    def __init__(self, edge: EdgeTarget, outbox: ChunkOutbox, targets: Sequence[int], last: int) -> None:
        super().__init__(edge, outbox)
        self._targets = tuple(targets)
        self._last = last % len(self._targets)
        self._reachable_channels = [self._channels[target] for target in self._targets]

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Send every n-th record to each channel."""
        width = len(self._targets)
        for step in range(min(width, len(records))):
            channel = self._channels[self._targets[(self._last + 1 + step) % width]]
            self._extend(channel, records[step::width], timestamps[step::width] if timestamps is not None else None)
        self._last = (self._last + len(records)) % width

    def position(self) -> int:
        """Return the index of the last channel."""
        return self._last

    def seek(self, position: Any) -> None:
        """Continue after that channel."""
        self._last = int(position) % len(self._targets)


class ShuffleWriter(EdgeWriter):
    """`shuffle`: uniformly random channels, from a seed that belongs to the cut."""

    def __init__(self, edge: EdgeTarget, outbox: ChunkOutbox) -> None:
        super().__init__(edge, outbox)
        self._random = random.Random(f"{edge.edge}/{edge.source}")

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Send each record to a random channel."""
        width = len(self._channels)
        chosen = [int(draw() * width) for draw in [self._random.random] * len(records)]
        for channel in self._channels:
            indexes = [index for index, target in enumerate(chosen) if target == channel.target]
            if indexes:
                picked = [timestamps[index] for index in indexes] if timestamps is not None else None
                self._extend(channel, [records[index] for index in indexes], picked)

    def position(self) -> Any:
        """Return the state of the random generator."""
        version, internal, gauss = self._random.getstate()
        return [version, list(internal), gauss]

    def seek(self, position: Any) -> None:
        """Continue with a state of the random generator."""
        version, internal, gauss = position
        self._random.setstate((version, tuple(internal), gauss))


class SingleTargetWriter(EdgeWriter):
    """`forward` (to the same subtask) and `global_` (to the first; watermarks go to all)."""

    def __init__(self, edge: EdgeTarget, outbox: ChunkOutbox, target: int, marks_to_all: bool) -> None:
        super().__init__(edge, outbox)
        self._target_channel = self._channels[target]
        if not marks_to_all:
            self._reachable_channels = [self._target_channel]

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Send all records to one channel."""
        self._extend(self._target_channel, records, timestamps)


class BroadcastWriter(EdgeWriter):
    """`broadcast`: sends every record to every channel, encoded once."""

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Buffer the batch once, in the first channel, for all channels."""
        self._extend(self._channels[0], records, timestamps)

    def _mark_all(self, kind: int, value: int) -> None:
        self._channels[0].marks.append(Mark(len(self._channels[0].records), kind, value))

    def flush(self) -> None:
        """Send the shared buffer to all channels."""
        if self._channels[0].records or self._channels[0].marks:
            self._send(self._channels[0])

    def _send(self, channel: _Channel) -> None:
        edge = self.edge
        body = self._body(channel)
        for each in self._channels:
            chunk = encode_chunk(edge.edge, edge.source, each.target, each.sequence, body)
            self._outbox.put(edge.target_slots[each.target], chunk)
            each.sequence += 1
            each.sent += body.records
        channel.records.clear()
        channel.marks.clear()
        channel.timestamps = None


class CustomWriter(EdgeWriter):
    """`partition_custom`: the user's partitioner chooses the channel."""

    def __init__(
        self,
        edge: EdgeTarget,
        outbox: ChunkOutbox,
        selector: Callable[[Any], Any],
        partition: Callable[[Any, int], int],
    ) -> None:
        super().__init__(edge, outbox)
        self._selector = selector
        self._partition = partition

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Send each record to the channel that the partitioner chooses."""
        width = len(self._channels)
        picked: list[list[int]] = [[] for _ in self._channels]
        remaining = iter(records)
        try:
            for index, record in enumerate(remaining):
                target = self._partition(self._selector(record), width)
                try:
                    chosen = picked[target] if target >= 0 else None
                except (TypeError, IndexError):
                    chosen = None
                if chosen is None:
                    raise ValueError(f"the partitioner chose channel {target!r}; there are {width}, counted from 0")
                chosen.append(index)
        except Exception as error:
            raise failed_record(self.edge.label, records, remaining) from error
        for channel, indexes in zip(self._channels, picked, strict=True):
            if indexes:
                times = [timestamps[index] for index in indexes] if timestamps is not None else None
                self._extend(channel, [records[index] for index in indexes], times)


def rescale_targets(source: int, sources: int, targets: int) -> range:
    """Return the target subtasks of a source subtask in `rescale`: neighbours, distributed evenly.

    >>> [list(rescale_targets(i, 2, 4)) for i in range(2)], [list(rescale_targets(i, 4, 2)) for i in range(4)]
    ([[0, 1], [2, 3]], [[0], [0], [1], [1]])
    """
    if sources >= targets:
        target = source * targets // sources
        return range(target, target + 1)
    return range(source * targets // sources, (source + 1) * targets // sources)


def rescale_sources(target: int, sources: int, targets: int) -> list[int]:
    """Return the source subtasks of a target subtask in `rescale`."""
    return [source for source in range(sources) if target in rescale_targets(source, sources, targets)]
