"""Sources and sinks of a replay: sources return what was recorded, sinks drop what they get."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from rekindle.checkpoint.committables import StoredCommittable
from rekindle.checkpoint.part_formats import SourceState
from rekindle.checkpoint.recordings import Epoch, Polled
from rekindle.datastream.connectors.base import Batch, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.output_tag import OutputTag
from rekindle.graph.nodes import OperatorNode
from rekindle.replay.replay_clock import ReplayClock
from rekindle.runtime.exchange.chunk import END, IDLE, WATERMARK, Chunk, decode_chunk, read_header
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.roles import Committing
from rekindle.runtime.operators.sources import Allowance, SourceOperator
from rekindle.runtime.recording.recorded_sources import WrappedSource
from rekindle.serde import codec_for


class Feed:
    """The records of the replayed task's source in the current epoch."""

    def __init__(self) -> None:
        self.polled: deque[Polled] = deque()
        self.emitted: deque[tuple[bytes, bool]] = deque()
        self.dry = True
        self.waiting_splits: list[str] | None = None

    def begin(self, epoch: Epoch) -> None:
        """Begin with what was recorded in an epoch."""
        self.polled, self.emitted = deque(epoch.polled), deque(epoch.emitted)
        self.dry, self.waiting_splits = epoch.dry, epoch.waiting_splits


def _decode(data: bytes, node: OperatorNode, pickled: bool) -> Chunk:
    return decode_chunk(data, read_header(data), codec_for(None if pickled else node.output_type))


class ReplayedSource(WrappedSource):
    """A source whose reader returns what was recorded: it opens nothing outside."""

    def __init__(self, source: Source[Any], node: OperatorNode, feed: Feed) -> None:
        super().__init__(source)
        self._node = node
        self._feed = feed

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[Any]:
        return ReplayedReader(self._node, self._feed, splits)


class ReplayedReader(SourceReader[Any]):
    """Returns what the source's reader returned, poll by poll."""

    def __init__(self, node: OperatorNode, feed: Feed, splits: list[SourceSplit]) -> None:
        self._node = node
        self._feed = feed
        self._splits = splits

    def waiting_splits(self) -> list[str] | None:
        return self._feed.waiting_splits

    def poll(self, max_records: int) -> Batch[Any] | list[Any] | None:
        if not self._feed.polled:
            return []
        polled = self._feed.polled.popleft()
        if polled.ended:
            return None
        chunk = _decode(polled.chunk, self._node, polled.pickled)
        aside = {
            OutputTag(tag): decode_chunk(data, read_header(data), codec_for(None)).records for tag, data in polled.aside
        }
        return Batch(chunk.records, chunk.timestamps, polled.splits, polled.finished, aside)

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return self._splits

    def add_splits(self, splits: list[SourceSplit]) -> None:
        self._splits = self._splits + splits

    def pause_splits(self, paused: Collection[str]) -> None:
        """Nothing to pause: a paused split has no recorded records."""


class ReplayedFunctionSource(SourceOperator):
    """Emits what a source function emitted; the function itself does not run."""

    def __init__(self, node: OperatorNode, context: Any, feed: Feed, clock: ReplayClock) -> None:
        super().__init__(node, context)
        self._feed = feed
        self._clock = clock

    def available(self) -> bool:
        return bool(self._feed.emitted)

    def pull(self, allowance: Allowance) -> int:
        pulled = 0
        while self._feed.emitted:
            data, pickled = self._feed.emitted.popleft()
            chunk = _decode(data, self.node, pickled)
            self._clock.tick()
            if chunk.records:
                self.output.emit(chunk.records, chunk.timestamps)
                pulled += len(chunk.records)
            for mark in chunk.marks:
                self._emit_mark(mark.kind, mark.value)
        return pulled

    def _emit_mark(self, kind: int, value: int) -> None:
        if kind == WATERMARK:
            self.current_watermark = max(self.current_watermark, value)
            self.output.emit_watermark(value)
        elif kind == IDLE:
            self.output.emit_idle()
        elif kind == END:
            self.finished = True
            self.output.emit_end()

    def end_of_input(self) -> None:
        """Nothing to add: the end of a drained source is in its recording, and was emitted by `pull`."""
        self.finished = True

    def source_state(self) -> SourceState | None:
        return None

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """Nothing to restore: the recording says what follows."""

    def seek(self, position: Any) -> None:
        """Nothing to seek: the recording says what follows."""


class DroppingSink(Operator, Committing):
    """Drops every record: a replay writes nothing outside and commits nothing."""

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        self.records_sunk += len(records)

    def committables(self, checkpoint_id: int) -> Sequence[StoredCommittable]:
        return ()

    def restore_committables(self, stored: list[Iterator[bytes]]) -> None:
        """Leave them to the job."""

    def settle(self) -> None:
        """Nothing to commit."""

    def has_committed(self, checkpoint_id: int) -> bool:
        return True
