"""Records in flight: save and restore the chunks that wait in front of a task when a barrier passes it (I22).

With unaligned checkpoints a task whose time in an epoch is over leaves the rest of its input in its inbox. These chunks
go into the checkpoint unchanged, with the watermark valve's state of their channels. After a restore the task processes
them first. A task with the same channels as before uses its own valve. If the parallelism of the task or of a sender
has changed, the old channels exist until their last chunk is processed, with their own valve: records that were late
before the restore stay late (I6). The edge's partitioner sends each record to its new subtask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from typing import Any

from rekindle.errors import IncompatibleStateError
from rekindle.graph.nodes import JobPlan, Partitioning
from rekindle.runtime.exchange.chunk import (
    Chunk,
    Mark,
    decode_chunk,
    encode_body,
    encode_chunk,
    read_header,
    relabelled,
    with_records,
)
from rekindle.runtime.exchange.inbox import Inbox, Waiting
from rekindle.runtime.exchange.outbox import ChunkOutbox
from rekindle.runtime.exchange.writers import EdgeWriter
from rekindle.runtime.state.evolution import chunk_conversion
from rekindle.runtime.task_position import valve_position
from rekindle.runtime.watermarks import Channel, WatermarkValve
from rekindle.serde import ChunkCodec, codec_for, tagged_dumps, tagged_loads
from rekindle.serde.type_schema import encode_schema

#: Over these edges no records stay in flight, as in Flink: a forward edge has one channel, a broadcast edge needs all.
ALIGNED = frozenset({Partitioning.FORWARD, Partitioning.BROADCAST})

#: Channel, watermark, idle, ended, aligned.
_ChannelState = list[Any]


@dataclass(frozen=True)
class SavedGroup:
    """Chunks over the channels of one valve. `live`: these are the task's own channels, not older ones."""

    live: bool
    current: int
    channels: Mapping[str, Sequence[_ChannelState]]  # by edge
    chunks: Sequence[tuple[str, int, bytes]]  # (edge, channel, chunk)
    #: Edge -> schema of its records.
    schemas: Mapping[str, bytes]


def save(
    inbox: Inbox, live: WatermarkValve, names: Mapping[int, str], codecs: Mapping[int, ChunkCodec]
) -> bytes | None:
    """Encode the chunks that wait in an inbox, oldest channels first; None if no chunk waits."""
    schemas = {names[edge]: encode_schema(codec.schema) for edge, codec in codecs.items()} if inbox.waiting else {}
    groups: list[Any] = []
    for _, chunks in groupby(inbox.waiting, key=lambda each: id(each.valve)):
        same = list(chunks)
        valve = same[0].valve
        saved = [(names[each.header.edge], each.channel[1], inbox.read(each)) for each in same]
        groups.append([valve is live, *valve_position(valve, names), [list(each) for each in saved], schemas])
    return tagged_dumps(groups) if groups else None


def load(data: bytes) -> list[SavedGroup]:
    """Decode the chunks that `save` encoded."""
    return [
        SavedGroup(live, current, channels, [(edge, channel, chunk) for edge, channel, chunk in chunks], schemas)
        for live, current, channels, chunks, schemas in tagged_loads(data)
    ]


def evolved(groups: Sequence[SavedGroup], codecs: Mapping[str, ChunkCodec]) -> list[SavedGroup]:
    """The groups with records as the program's codecs read them, by the name of their edge."""
    ways = {
        (name, schema): chunk_conversion(f"The records in flight over '{name}'", schema, codecs[name])
        for group in groups
        for name, schema in group.schemas.items()
        if name in codecs
    }

    def converted(group: SavedGroup, name: str, chunk: bytes) -> bytes:
        convert = ways.get((name, group.schemas[name]))
        return chunk if convert is None else with_records(chunk, convert)

    return [
        replace(group, chunks=[(name, channel, converted(group, name, chunk)) for name, channel, chunk in group.chunks])
        for group in groups
    ]


@dataclass
class _Redistribution:
    """One new subtask's share of the records in flight: those that the edges' partitioners send to it."""

    subtask: int
    writer_for: Callable[[int, ChunkOutbox], EdgeWriter]
    codecs: Mapping[int, ChunkCodec]
    _writers: dict[int, tuple[EdgeWriter, _OwnRows]] = field(default_factory=dict)

    def chunks(self, edge: int, data: bytes) -> Iterator[bytes]:
        """The chunk's records for this subtask and all of its marks, in order."""
        header = read_header(data)
        chunk = decode_chunk(data, header, self.codecs[edge])
        sent = 0
        for mark in [*chunk.marks, None]:
            until = len(chunk.records) if mark is None else mark.position
            if until > sent:
                yield from self._routed(edge, chunk, sent, until)
                sent = until
            if mark is not None:
                body = encode_body([], None, [Mark(0, mark.kind, mark.value)], self.codecs[edge])
                yield encode_chunk(edge, 0, self.subtask, 0, body)

    def _routed(self, edge: int, chunk: Chunk, start: int, until: int) -> list[bytes]:
        if edge not in self._writers:
            own = _OwnRows(self.subtask)
            self._writers[edge] = self.writer_for(edge, own), own
        writer, own = self._writers[edge]
        writer.emit(chunk.records[start:until], chunk.timestamps[start:until] if chunk.timestamps is not None else None)
        writer.flush()
        chunks, own.chunks = own.chunks, []
        return chunks


class _OwnRows:
    """An outbox that keeps the chunks for one subtask and drops those for others."""

    def __init__(self, subtask: int) -> None:
        self._subtask = subtask
        self.chunks: list[bytes] = []

    def put(self, destination: int, chunk: bytes) -> None:
        """Keep a chunk for this subtask."""
        if destination == self._subtask:
            self.chunks.append(chunk)


@dataclass(frozen=True)
class InFlightRestore:
    """Puts records in flight back in front of a task."""

    plan: JobPlan
    subtask: int
    edges: Mapping[str, int]  # name -> edge that the task takes its input from
    live: WatermarkValve
    writer_for: Callable[[int, ChunkOutbox], EdgeWriter]
    #: The names of edges whose channels begin anew with the live records.
    anew: frozenset[str] = frozenset()

    def chunks(self, saved: Sequence[Sequence[SavedGroup]], old_subtasks: int | None) -> list[Waiting]:
        """The chunks for the task's inbox: its own, or its share of those of all `old_subtasks` after a rescale."""
        self._check_edges(saved)
        if old_subtasks is not None:
            return self._redistributed(saved, old_subtasks)
        return [chunk for groups in saved for chunk in self._own(groups)]

    def _own(self, groups: Sequence[SavedGroup]) -> Iterator[Waiting]:
        for group in groups:
            valve = self.live if group.live and self._same_channels(group) else self._old_valve([(0, group)])[0]
            for name, channel, chunk in group.chunks:
                yield self._waiting((self.edges[name], channel), chunk, valve)

    def _redistributed(self, saved: Sequence[Sequence[SavedGroup]], old_subtasks: int) -> list[Waiting]:
        """The task's share of old subtasks' chunks; groups are aligned, the newest with the newest."""
        codecs = {edge: codec_for(self.plan.edges[edge].type_info) for edge in self.edges.values()}
        redistribution = _Redistribution(self.subtask, self.writer_for, codecs)
        found: list[Waiting] = []
        aligned = list(zip_longest(*[list(reversed(groups)) for groups in saved]))
        for side_by_side in reversed(aligned):
            present = [(old, group) for old, group in enumerate(side_by_side) if group is not None]
            # Until the first chunks of a subtask come, its watermark holds event time back.
            behind = [groups[0].current for old, groups in enumerate(saved) if groups and side_by_side[old] is None]
            if len(saved) < old_subtasks:
                # Over `rescale()` the senders of a subtask without chunks are not among these channels.
                behind.append(self.live.current)
            valve, channels = self._old_valve(present, behind)
            for old, group in present:
                for name, channel, chunk in group.chunks:
                    edge = self.edges[name]
                    chunks = redistribution.chunks(edge, chunk)
                    found.extend(self._waiting(channels[old, edge, channel], each, valve) for each in chunks)
        return found

    def _waiting(self, channel: Channel, chunk: bytes, valve: WatermarkValve) -> Waiting:
        own = relabelled(chunk, channel[0], 0, self.subtask)
        return Waiting(channel, read_header(own), own, valve)

    def _same_channels(self, group: SavedGroup) -> bool:
        sources = self.live.sources()
        return (
            self.anew.isdisjoint(group.channels)
            and all(
                {channel for channel, *_ in states} == sources.get(self.edges[name], set())
                for name, states in group.channels.items()
                if name in self.edges
            )
            and len(group.channels) == len(sources)
        )

    def _old_valve(
        self, groups: Sequence[tuple[int, SavedGroup]], behind: Sequence[int] = ()
    ) -> tuple[WatermarkValve, dict[tuple[int, int, int], Channel]]:
        """A valve over the channels of the groups, and (old subtask, edge, channel) -> channel of this valve."""
        renamed: dict[tuple[int, int, int], Channel] = {}
        states: list[_ChannelState] = []
        for old, group in groups:
            for name, channels in group.channels.items():
                edge = self.edges.get(name)
                if edge is None:
                    continue  # no records are in flight over it
                for channel, *state in channels:
                    renamed[old, edge, channel] = edge, (channel if len(groups) == 1 else len(renamed))
                    states.append([*renamed[old, edge, channel], *state])
        current = min(group.current for _, group in groups)
        first = next(iter(self.edges.values()))
        states.extend([first, -1 - place, watermark, False, False, True] for place, watermark in enumerate(behind))
        inputs = {edge: self.plan.edges[edge].input_index for edge in self.edges.values()}
        valve = WatermarkValve([(edge, channel) for edge, channel, *_ in states], inputs)
        valve.seek([min([current, *behind]), states])
        return valve, renamed

    def _check_edges(self, saved: Sequence[Sequence[SavedGroup]]) -> None:
        names = {name for groups in saved for group in groups for name, _, _ in group.chunks}
        if names - self.edges.keys():
            raise IncompatibleStateError(
                "the checkpoint holds records in flight to it over a connection that the program does not have any "
                "more. Go on with the program that saved it, and change the program from a savepoint: nothing is in "
                "flight there."
            )
