"""The input of a task: chunks from other chains, processed in slices until none is left or time is over (I22)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from typing import Any

from rekindle.clock import Clock
from rekindle.errors import JobCancelledError
from rekindle.graph.nodes import StreamEdge
from rekindle.runtime.exchange.chunk import END, IDLE, WATERMARK, Chunk, Mark, decode_chunk, read_header, rest_of
from rekindle.runtime.exchange.inbox import Inbox, Waiting
from rekindle.runtime.in_flight import ALIGNED, InFlightRestore, evolved, load, save
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.roles import TwoInputs
from rekindle.runtime.watermarks import Channel, WatermarkValve
from rekindle.serde import ChunkCodec, codec_for

ProcessBatch = Callable[[list[Any], list[int] | None], None]


class Cancellation:
    """Whether a task is to leave its epoch; another thread asks for it."""

    def __init__(self, task: str) -> None:
        self._task = task
        self.asked = False

    def check(self) -> None:
        """Raise JobCancelledError if the task is to leave."""
        if self.asked:
            raise JobCancelledError(f"{self._task} was cancelled")


class TaskInput:
    """Feeds the head of a chain. `valve` follows the task's channels, `on_end` hears that all of them have ended.

    `second` is the head too, if it has a second input.
    """

    def __init__(
        self,
        inbox: Inbox,
        edges: Sequence[StreamEdge],
        channels: Sequence[Channel],
        slices: Slices,
        cancellation: Cancellation,
        on_end: Callable[[], None],
        second: TwoInputs | None,
    ) -> None:
        self.inbox = inbox
        self._slices = slices
        self._check_cancelled = cancellation.check
        self._on_end = on_end
        self._second = second
        self._codecs: dict[int, ChunkCodec] = {edge.id: codec_for(edge.type_info) for edge in edges}
        self._input_index = {edge.id: edge.input_index for edge in edges}
        self._aligned = {edge.id for edge in edges if edge.partitioning in ALIGNED}
        self.valve = WatermarkValve(channels, self._input_index)
        self._feeding = self.valve  # follows the channel of the chunk that is being processed

    def take(self, head: Operator, leave_after_ms: float | None) -> int:
        """Process what waits, to its end or until the time is over: what is left then is in flight. How many records.

        Whatever the time, something is processed.
        """
        leave_at = inf if leave_after_ms is None else self._slices.now() + leave_after_ms / 1000
        taken = 0
        left: list[Waiting] = []
        for waiting in self.inbox.take(self.valve):
            aligned = waiting.header.edge in self._aligned
            if not aligned and (left or (taken and self._slices.now() >= leave_at)):
                left.append(waiting)
                continue
            rest = self._feed(head, waiting, inf if aligned else leave_at)
            taken += waiting.header.records
            if rest is not None:
                taken -= rest.header.records
                left.append(rest)
        self.inbox.keep(left)
        if all(each.valve is self.valve for each in left):
            self._follow(self.valve)
        return taken

    # -- records in flight --------------------------------------------------------------------------------------------

    def in_flight(self, names: Mapping[int, str]) -> bytes | None:
        """The records in flight, encoded for a checkpoint; edges are saved by name."""
        return save(self.inbox, self.valve, names, self._codecs)

    @property
    def edges(self) -> Collection[int]:
        """The edges that the input comes over."""
        return self._codecs.keys()

    def restore_in_flight(self, saved: Sequence[bytes], restore: InFlightRestore, old_subtasks: int | None) -> None:
        """Put back the chunks that waited: this subtask's, or its share of those of `old_subtasks`."""
        codecs = {name: self._codecs[edge] for name, edge in restore.edges.items()}
        chunks = restore.chunks([evolved(load(data), codecs) for data in saved], old_subtasks)
        self.inbox.keep(chunks)
        if chunks:
            self._feeding = chunks[0].valve

    # -- chunks -------------------------------------------------------------------------------------------------------

    def _follow(self, valve: WatermarkValve) -> None:
        """Go on with the channels of another valve: event time does not go back."""
        if valve is not self._feeding:
            valve.current = max(valve.current, self._feeding.current)
            self._feeding = valve

    def _feed(self, head: Operator, waiting: Waiting, leave_at: float) -> Waiting | None:
        """Process a chunk, slice by slice; what is left of it if the time was over before its end."""
        header, codec = waiting.header, self._codecs[waiting.header.edge]
        chunk = decode_chunk(self.inbox.read(waiting), header, codec)
        self._follow(waiting.valve)
        if chunk.records:
            self._feeding.active(waiting.channel)
        process: ProcessBatch = head.process_batch
        if self._input_index[header.edge]:
            assert self._second is not None, f"{head.name} has no second input"
            process = self._second.process_batch2
        done = 0
        for place, mark in enumerate((*chunk.marks, None)):
            until = len(chunk.records) if mark is None else mark.position
            while done < until:
                self._check_cancelled()
                done = self._process_slice(process, chunk, done, until)
                if done < len(chunk.records) and self._slices.now() >= leave_at:
                    rest = rest_of(chunk, header, done, place, codec)
                    return waiting._replace(header=read_header(rest), kept=rest)
            if mark is not None:
                self._on_mark(head, waiting.channel, mark)
        return None

    def _process_slice(self, process: ProcessBatch, chunk: Chunk, start: int, until: int) -> int:
        """As many records as one may without looking around; where they end."""
        slices = self._slices
        until = min(until, start + slices.size)
        began = slices.now()
        if start == 0 and until == len(chunk.records):
            process(chunk.records, chunk.timestamps)
        else:
            process(chunk.records[start:until], chunk.timestamps[start:until] if chunk.timestamps is not None else None)
        slices.took(until - start, slices.now() - began)
        return until

    def _on_mark(self, head: Operator, channel: Channel, mark: Mark) -> None:
        valve = self._feeding
        advanced: int | None = None
        if mark.kind == WATERMARK:
            advanced = valve.advance(channel, mark.value)
        elif mark.kind == IDLE:
            advanced = valve.idle(channel)
        if advanced is not None:
            head.process_watermark(advanced)
        if mark.kind == IDLE and valve.all_idle:
            head.process_idle()
        # Senders that had ended before a restore say so again: what an older channel says of it is not the end.
        if mark.kind == END and valve.end(channel) and valve is self.valve:
            self._on_end()


#: How often a task checks for a cancellation, and for the end of its source's time.
LOOK_AROUND_S = 0.02
#: How often it checks with unaligned checkpoints, also for the end of the epoch's time: a function that suddenly
#: becomes slow must not exceed that time by more than a few records.
LOOK_AROUND_UNALIGNED_S = 0.00025
_MAX_RECORDS = 1 << 16
_GROWTH = 4


class Slices:
    """The size of the next slice of a batch: one record at first, then as the duration of the slices before allows.

    >>> from rekindle.clock import SystemClock
    >>> slices = Slices(SystemClock(), LOOK_AROUND_S)
    >>> slices.took(1, seconds=0.001)
    >>> slices.size
    4
    >>> slices.took(4, seconds=0.08)
    >>> slices.size
    1
    """

    __slots__ = ("_slice_s", "now", "size")

    def __init__(self, clock: Clock, slice_s: float) -> None:
        self._slice_s = slice_s
        self.now = clock.monotonic
        self.size = 1

    def took(self, records: int, seconds: float) -> None:
        """Adapt the size to a slice of `records` records that took this long."""
        if seconds > self._slice_s:
            self.size = max(1, int(records * self._slice_s / seconds))
        elif records >= self.size:
            self.size = min(_MAX_RECORDS, self.size * _GROWTH)
