"""Sources whose output is recorded: the answers of a reader to `poll`, and the records of a source function."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from rekindle.checkpoint.recordings import Polled
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.base import Batch, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.graph.nodes import OperatorKind, OperatorNode
from rekindle.runtime.exchange.chunk import END, IDLE, WATERMARK, Mark, encode_body, encode_chunk
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.build_operator import Blueprint
from rekindle.runtime.operators.output import Consumer, Output
from rekindle.runtime.recording.recorder import Recorder
from rekindle.serde import codec_for


def encode_records(
    records: list[Any], timestamps: list[int] | None, marks: list[Mark], type_info: TypeInformation | None
) -> tuple[bytes, bool]:
    """Encode records as a chunk; and whether they had to be pickled, because they do not fit their declared type."""
    codec = codec_for(type_info)
    try:
        body = encode_body(records, timestamps, marks, codec)
        if records:
            codec.decode(memoryview(codec.encode(records)))
        return encode_chunk(0, 0, 0, 0, body), False
    except Exception:
        return encode_chunk(0, 0, 0, 0, encode_body(records, timestamps, marks, codec_for(None))), True


def building(recorder: Recorder, build: Callable[[Blueprint], Operator]) -> Callable[[Blueprint], Operator]:
    """Return the function that builds operators, with recorded sources."""

    def build_recorded(blueprint: Blueprint) -> Operator:
        if blueprint.node.kind is OperatorKind.SOURCE_READER:
            blueprint.function = RecordedSource(blueprint.function, blueprint.node, recorder)
        operator = build(blueprint)
        if blueprint.node.kind is OperatorKind.SOURCE_FUNCTION:
            operator.output = RecordedOutput(operator, recorder)
        return operator

    return build_recorded


class WrappedSource(Source[Any]):
    """A source with other readers: everything else is the user's source's."""

    def __init__(self, source: Source[Any]) -> None:
        self.source = source
        self.returns_fresh_records = source.returns_fresh_records
        self.has_watermarks_per_split = source.has_watermarks_per_split
        self.discovery_interval_ms = source.discovery_interval_ms
        self.discovers_at_restore = source.discovers_at_restore

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return self.source.create_splits(parallelism)

    def split_owner(self, split_id: str, parallelism: int) -> int:
        return self.source.split_owner(split_id, parallelism)

    @property
    def has_split_owner(self) -> bool:
        return self.source.has_split_owner

    def boundedness(self) -> Any:
        return self.source.boundedness()


class RecordedSource(WrappedSource):
    """A source whose readers' records are recorded."""

    def __init__(self, source: Source[Any], node: OperatorNode, recorder: Recorder) -> None:
        super().__init__(source)
        self._node = node
        self._recorder = recorder

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[Any]:
        reader = self.source.create_reader(context, splits)
        pauses = type(reader).pause_splits is not SourceReader.pause_splits
        return (PausingRecordedReader if pauses else RecordedReader)(reader, self._node, self._recorder)


class RecordedReader(SourceReader[Any]):
    """Hands on all calls to a reader, and records what it returns."""

    def __init__(self, reader: SourceReader[Any], node: OperatorNode, recorder: Recorder) -> None:
        self._reader = reader
        self._node = node
        self._recorder = recorder

    def poll(self, max_records: int) -> Any:
        batch = self._reader.poll(max_records)
        if not self._recorder.wants_source:
            return batch
        if batch is None:
            self._recorder.polled(Polled(b"", ended=True))
        elif isinstance(batch, Batch | list | tuple) and (len(batch) or isinstance(batch, Batch)):
            self._recorder.polled(self._encoded(batch if isinstance(batch, Batch) else Batch(list(batch))))
        return batch

    def _encoded(self, batch: Batch[Any]) -> Polled:
        chunk, pickled = encode_records(batch.records, batch.timestamps, [], self._node.output_type)
        aside = [
            (tag.tag_id, encode_records(list(values), None, [], None)[0]) for tag, values in batch.side_outputs.items()
        ]
        return Polled(chunk, batch.splits, list(batch.finished_splits), aside, pickled=pickled)

    def is_available(self) -> bool:
        return self._reader.is_available()

    def waiting_splits(self) -> Collection[str] | None:
        waiting = self._reader.waiting_splits()
        self._recorder.waiting(waiting)
        return waiting

    def stage_reached(self) -> int | None:
        return self._reader.stage_reached()

    def all_reached(self, stage: int) -> None:
        self._reader.all_reached(stage)

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return self._reader.snapshot_state(checkpoint_id)

    def add_splits(self, splits: list[SourceSplit]) -> None:
        self._reader.add_splits(splits)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._reader.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._reader.notify_checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        self._reader.close()


class PausingRecordedReader(RecordedReader):
    """A recorded reader whose splits can pause."""

    def pause_splits(self, paused: Collection[str]) -> None:
        self._reader.pause_splits(paused)


class RecordedOutput(Output):
    """The output of a source function, recorded before it is processed."""

    def __init__(self, operator: Operator, recorder: Recorder) -> None:
        self._inner = operator.output
        self._type = operator.node.output_type
        self._recorder = recorder
        self.emit = self._emit_recorded

    def add(self, consumer: Consumer, tag: str | None = None) -> None:
        self._inner.add(consumer, tag)

    def _emit_recorded(self, records: list[Any], timestamps: list[int] | None) -> None:
        if self._recorder.wants_source:
            self._recorder.emitted(*encode_records(records, timestamps, [], self._type))
        self._inner.emit(records, timestamps)

    def emit_mixed(self, records: list[Any], timestamps: list[int] | None) -> None:
        raise AssertionError("a source function has no side outputs")

    def emit_watermark(self, watermark: int) -> None:
        self._mark(Mark(0, WATERMARK, watermark))
        self._inner.emit_watermark(watermark)

    def emit_idle(self) -> None:
        self._mark(Mark(0, IDLE, 0))
        self._inner.emit_idle()

    def emit_end(self) -> None:
        self._mark(Mark(0, END, 0))
        self._inner.emit_end()

    def _mark(self, mark: Mark) -> None:
        self._recorder.emitted(*encode_records([], None, [mark], self._type))
