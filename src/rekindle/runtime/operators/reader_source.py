"""The operator of a `Source`: polls its reader on the task's thread (I7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rekindle.checkpoint.part_formats import SourceState, SplitState
from rekindle.datastream.connectors.base import Batch, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.copy_on_emit import isolator
from rekindle.runtime.operators.output import OperatorFailure, Output
from rekindle.runtime.operators.roles import SnapshotParticipant
from rekindle.runtime.operators.source_times import SourceTimes
from rekindle.runtime.operators.sources import Allowance, SourceOperator
from rekindle.runtime.operators.split_times import WHOLE_SOURCE
from rekindle.runtime.operators.watermark_alignment import AlignmentLimit
from rekindle.runtime.snapshot import SnapshotContext
from rekindle.serde import tagged_dumps, tagged_loads

T = TypeVar("T")


class ReaderSourceOperator(SourceOperator, SnapshotParticipant):
    """Polls the reader of a `Source`. The driver hands out the splits of a first start, and those found later."""

    def __init__(
        self, node: OperatorNode, context: OperatorContext, source: Source[Any], wake: Callable[[], None]
    ) -> None:
        super().__init__(node, context)
        self._source = source
        self._wake = wake
        self._splits: list[SourceSplit] = []  # to begin with: restored, or the driver's
        self._found_since: list[SourceSplit] = []  # of a restored source: what the driver has found at the restore
        self._restored = False
        self._restored_id: int | None = None
        self._ended_before = False
        self._reader: SourceReader[Any] | None = None
        self._snapshot: list[SourceSplit] = []
        self._known: set[str] = set()
        self._side_output = self.output
        self._limit: AlignmentLimit | None = None
        self._paused: set[str] = set()
        if source.returns_fresh_records:
            # Nothing else refers to these records: only rows get the names of their type.
            self.isolate = isolator(node.output_type, True, context.settings.wrap_numbers)

    # -- splits and their positions -----------------------------------------------------------------------------------

    def assign(self, splits: Sequence[SourceSplit]) -> None:
        """Take the driver's splits: those of a start without state, else those that the restored state may lack."""
        if self._restored:
            self._found_since = list(splits)
        else:
            self._splits = list(splits)

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """Restore the splits. A source that had ended emits the end again and reads nothing (I9)."""
        self._restored, self._ended_before = True, finished
        splits = [SourceSplit(tagged_loads(each.split or b""), tagged_loads(each.position)) for each in state.splits]
        if self._source.has_split_owner:  # then these are the splits of all subtasks
            owner, parallelism = self._source.split_owner, self.node.parallelism
            splits = [each for each in splits if owner(each.split_id, parallelism) == self.context.subtask]
        self._splits = splits

    def seek(self, position: Any) -> None:
        self._ended_before = bool(position)

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        """Read splits that the driver has discovered, except those that are known."""
        new = [split for split in splits if split.split_id not in self._known]
        if not new or self._reader is None or self.finished:
            return
        self._known.update(split.split_id for split in new)
        if self.times is not None and self._source.has_watermarks_per_split:
            for split in new:
                self.times.add_split(split.split_id)
        self._call(self._reader.add_splits, new)

    # -- life ---------------------------------------------------------------------------------------------------------

    def initialize_state(self, restored_id: int | None) -> None:
        self._restored_id = restored_id if self._restored else None

    def open(self) -> None:
        self._known = {split.split_id for split in self._splits}
        self._snapshot = self._splits
        if self._ended_before:
            return
        if self.times is not None:
            self._open_times(self.times)
        self._reader = self._call(self._source.create_reader, self._reader_context(), self._splits)
        self.add_splits(self._found_since)

    def share_times(self, times: SourceTimes, side_output: Output) -> None:
        """Share the event time of the records with the operator behind; side outputs have its watermarks too."""
        self.times = times
        self._side_output = side_output

    def _open_times(self, times: SourceTimes) -> None:
        if self._source.has_watermarks_per_split:
            times.set_splits(self._known)
        if times.alignment is not None:
            self._limit = AlignmentLimit(times.alignment)

    def _reader_context(self) -> SourceReaderContext:
        context, job = self.context, self.context.job
        return SourceReaderContext(
            index_of_subtask=context.subtask,
            parallelism=self.node.parallelism,
            task_name=context.task_name,
            job_name=job.name,
            timeline=job.timeline,
            attempt=job.attempt,
            checkpointing_enabled=context.checkpointed,
            restored_checkpoint_id=self._restored_id,
            metric_group=context.metrics,
            needs_timestamps=self.node.timestamps_are_read,
            operator_state_store=context.operator_state,
            wake_up=self._wake,
        )

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    # -- records ------------------------------------------------------------------------------------------------------

    def available(self) -> bool:
        if self.finished or self._ended_before:
            return not self.finished
        assert self._reader is not None, "not open"
        return not self._waits and self._call(self._reader.is_available)

    def pull(self, allowance: Allowance) -> int:
        if self._ended_before:
            self.end_of_input()
            return 0
        assert self._reader is not None, "not open"
        pulled = 0
        self.ran_dry = False
        slices = allowance.slices
        while pulled < allowance.max_records and not allowance.cancelled() and not allowance.is_over():
            began = slices.now()
            if self._waits:
                self.ran_dry = True
                break
            polled = self._call(self._reader.poll, allowance.next_slice(pulled))
            if polled is None:
                self.end_of_input()
                break
            emitted = self._emit(self._call(_as_batch, polled))
            if not emitted:
                self.ran_dry = True
                break
            pulled += emitted
            self._pause_ahead()
            slices.took(emitted, slices.now() - began)
        return pulled

    def is_dry(self) -> bool:
        return not self._waits and (self.finished or self.ran_dry or not self.available())

    def note_quiet(self, dry: bool, now_ms: int) -> None:
        """Tell the source's strategy which splits had nothing when the reader was asked; `dry`: none had anything."""
        times = self.times
        if times is None or times.idle_timeout_ms is None or self._reader is None or self.finished:
            return
        waiting = self._call(self._reader.waiting_splits)
        times.splits.note_quiet(self._quiet_splits(waiting, dry), now_ms)

    def _quiet_splits(self, waiting: Collection[str] | None, dry: bool) -> set[str]:
        if self._waits:
            return set()
        if waiting is None:
            waiting = () if dry else self._known
        if not self._source.has_watermarks_per_split:
            return set() if waiting else {WHOLE_SOURCE}
        return self._known.difference(waiting, self._paused)

    def _emit(self, batch: Batch[Any]) -> int:
        """Emit a batch; return its number of records, those for side outputs included."""
        records = batch.records if self.isolate is None else list(map(self.isolate, batch.records))
        if records:
            if self.times is not None and self._source.has_watermarks_per_split:
                assert batch.splits is not None, f"{type(self._reader).__name__}.poll() does not say its splits"
                self._emit_runs(self.times, batch.splits, records, batch.timestamps)
            else:
                self.output.emit(records, batch.timestamps)
        aside = [(tag, value) for tag, values in batch.side_outputs.items() for value in values]
        if aside:
            self._side_output.emit_mixed(aside, None)
        if batch.finished_splits and self.times is not None:
            self.times.finish_splits(batch.finished_splits)
        return len(records) + len(aside)

    def _emit_runs(
        self, times: SourceTimes, runs: Iterable[tuple[str, int]], records: list[Any], timestamps: list[int] | None
    ) -> None:
        """Emit a batch of which each run is of one split: (split, number of records)."""
        begin = 0
        for split, count in runs:
            times.split = split
            end = begin + count
            self.output.emit(records[begin:end], None if timestamps is None else timestamps[begin:end])
            begin = end

    # -- watermark alignment ------------------------------------------------------------------------------------------

    @property
    def _waits(self) -> bool:
        """Whether nothing may be read until other sources have caught up."""
        return bool(self._paused) and (not self._pauses_splits or self._paused >= self._known)

    @property
    def _pauses_splits(self) -> bool:
        can_pause = self._reader is not None and type(self._reader).pause_splits is not SourceReader.pause_splits
        return can_pause and self._source.has_watermarks_per_split

    def align(self, lowest: Mapping[str, int]) -> None:
        """Take the lowest watermark of each alignment group: splits that are too far ahead of it pause."""
        if self._limit is not None:
            self._limit.update(lowest, self.context.clock.wall_ms())
            self._pause_ahead()

    def _pause_ahead(self) -> None:
        if self._limit is None or self.times is None or self._reader is None:
            return
        ahead = self.times.splits_ahead_of(self._limit.value)
        if ahead != self._paused:
            self._paused = ahead
            if self._pauses_splits:
                self._call(self._reader.pause_splits, ahead)

    def aligned(self) -> dict[str, int]:
        """Return the watermark by alignment group, for the driver; nothing if no other source waits for this one."""
        if self._limit is None or self.times is None or self.finished or not self.times.holds_back():
            return {}
        return {self._limit.group: self.times.watermark}

    # -- stages -------------------------------------------------------------------------------------------------------

    def stage_reached(self) -> int | None:
        """Return the stage that the reader has reached, for the driver; None if there are none, or all are over."""
        return None if self._reader is None or self.finished else self._call(self._reader.stage_reached)

    def all_reached(self, stage: int | None) -> None:
        """Take the stage that all readers of this source have reached; None: it is not known yet."""
        if stage is not None and self._reader is not None:
            self._call(self._reader.all_reached, stage)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        if self._reader is not None:
            self._snapshot = self._reader.snapshot_state(context.get_checkpoint_id())

    def source_state(self) -> SourceState | None:
        splits = self._snapshot
        return SourceState([SplitState(tagged_dumps(split.split_id), tagged_dumps(split.position)) for split in splits])

    def notify_complete(self, checkpoint_id: int) -> None:
        if self._reader is not None:
            self._call(self._reader.notify_checkpoint_complete, checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        if self._reader is not None:
            self._call(self._reader.notify_checkpoint_aborted, checkpoint_id)

    def _call(self, call: Callable[..., T], *arguments: Any) -> T:
        """Call the user's source or reader; its error is this operator's failure."""
        try:
            return call(*arguments)
        except Exception as error:
            raise OperatorFailure(self.name) from error


def _as_batch(polled: Any) -> Batch[Any]:
    if isinstance(polled, Batch):
        return polled
    if not isinstance(polled, list | tuple):
        raise TypeError(f"poll() must return a list of records, a Batch or None, not a {type(polled).__name__}")
    return Batch(polled)  # type: ignore[arg-type]  # a tuple is as good as a list
