"""Source operators: their common base, and a `SourceFunction` that runs on its own thread (I7, I8)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rekindle.checkpoint.part_formats import SourceState
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream.connectors.base import SourceSplit
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.exchange.chunk import (
    IDLE,
    WATERMARK,
    decode_chunk,
    encode_body,
    encode_chunk,
    read_header,
    with_records,
)
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.operators.roles import Cancellable, Positioned
from rekindle.runtime.operators.source_context import Buffered, BufferedSourceContext, SourceCancelledError
from rekindle.runtime.operators.source_times import SourceTimes
from rekindle.runtime.operators.split_offsets import SplitOffsets
from rekindle.runtime.operators.stateless import FunctionOperator
from rekindle.runtime.snapshot import SnapshotContext
from rekindle.runtime.state.evolution import chunk_conversion
from rekindle.runtime.task_input import Slices
from rekindle.serde import codec_for
from rekindle.serde.type_schema import encode_schema

_LOG = logging.getLogger(__name__)
#: The most records that pass through a chain as one batch: enough to amortise a call, few enough for the caches.
SOURCE_BATCH = 4096


@dataclass(frozen=True)
class Allowance:
    """The number of records that a source may emit in an epoch, and the end of its time."""

    max_records: int
    deadline: float
    slices: Slices
    cancelled: Callable[[], bool]
    #: Whether records that belong to a cut may stay unprocessed, in the checkpoint (unaligned checkpoints).
    may_leave: bool = False

    def is_over(self) -> bool:
        """Whether the time for this epoch is over."""
        return self.slices.now() >= self.deadline

    def next_slice(self, pulled: int) -> int:
        """Return how many records to emit in the next batch after `pulled` records."""
        return min(SOURCE_BATCH, self.slices.size, self.max_records - pulled)


class SourceOperator(Operator, Positioned):
    """The head of a chain without inputs: `pull` emits the records of an epoch."""

    finished = False
    #: How many records belong to a cut but were not processed in time.
    records_left = 0
    #: Whether the last pull ended because the source had no record, not because of its limits.
    ran_dry = False
    #: Whether the source's buffer was full when the last pull began: more records follow, perhaps later.
    held_back = False
    #: Holds back the watermarks of the strategies in the chain, or lets them go on; set by the task.
    hold_watermarks: Callable[[bool], None]
    #: The event time of the records, which a reader shares with the timestamps operator behind it.
    times: SourceTimes | None = None

    def available(self) -> bool:
        """Whether a pull would emit something: a record, a mark, or the end."""
        raise NotImplementedError

    def pull(self, allowance: Allowance) -> int:
        """Emit the available records, up to the allowance; return how many."""
        raise NotImplementedError

    def is_dry(self) -> bool:
        """Whether the last pull left nothing behind: what was there to read is read."""
        raise NotImplementedError

    def source_state(self) -> SourceState | None:
        """Return the position of each split, for a snapshot; None if there is none."""
        raise NotImplementedError

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """Continue from a snapshot; `finished`: the source had ended by then."""
        raise NotImplementedError

    def assign(self, splits: Sequence[SourceSplit]) -> None:
        """Take the driver's splits of the start; only a reader has splits that the driver hands out."""

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        """Read splits that the driver has discovered."""

    def note_quiet(self, dry: bool, now_ms: int) -> None:
        """Tell the source's strategy which splits had nothing to read; `dry`: none had anything."""

    def align(self, lowest: Mapping[str, int]) -> None:
        """Take the lowest watermark of each alignment group."""

    def aligned(self) -> dict[str, int]:
        """Return the watermark by alignment group, for the driver; nothing if no other source waits for this one."""
        return {}

    def all_reached(self, stage: int | None) -> None:
        """Take the stage that all readers of this source have reached; None: it is not known yet."""

    def stage_reached(self) -> int | None:
        """Return the stage that the reader has reached, for the driver; None: there are none, or all are over."""
        return None

    def position(self) -> Any:
        """Return True if the source has ended: its task may not have, if an operator after it holds the end back."""
        return True if self.finished else None

    def hold_for_cut(self) -> None:
        """Pause the source until `release_after_cut`, so that its own state matches the records before the cut (I8)."""

    def release_after_cut(self) -> None:
        """Let the source continue: the snapshot is taken."""

    def end_of_input(self) -> None:
        """Emit the last watermark, then the end of the input."""
        self.finished = True
        self.output.emit_watermark(MAX_WATERMARK)
        self.output.emit_end()


class FunctionSourceOperator(FunctionOperator, SourceOperator, Cancellable):
    """Runs the user's `run(ctx)` on its own thread; epochs drain its buffer."""

    def __init__(self, node: OperatorNode, context: OperatorContext, function: Any, wake: Callable[[], None]) -> None:
        super().__init__(node, context, function)
        self._wake = wake
        self._first_bound = context.settings.epochs.initial_records
        self._source_context = BufferedSourceContext(wake, self.isolate, self._first_bound)
        self._cut_records = 0  # records that belong to the cut: an epoch takes them all, whatever its limit
        self._left_over = Buffered()  # records that belong to a cut and are not processed yet
        self._left_by_others = False  # whether records are among them that other subtasks collected, before a rescale
        self._run_returned = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"source {context.task_name}", daemon=True)

    @property
    def records_left(self) -> int:  # type: ignore[override]
        return len(self._left_over.records)

    def source_state(self) -> SourceState | None:
        left, state = self._left_over, self._source_context.offsets.state()
        if not left.size():
            return state if state.splits or self.finished else None
        codec = codec_for(self.node.output_type)
        body = encode_body(left.records, left.timestamps, left.marks, codec)
        return SourceState(
            state.splits,
            in_flight=[encode_chunk(0, 0, 0, 0, body)],
            in_flight_schema=encode_schema(codec.schema),
            in_flight_of_others=self._left_by_others,
        )

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """Restore the offsets. A source whose `run` had returned is not run again (I9)."""
        offsets = SplitOffsets.of(state, self.context.subtask, self.node.parallelism)
        self._source_context = BufferedSourceContext(self._wake, self.isolate, self._first_bound, offsets)
        self._run_returned = finished
        codec = codec_for(self.node.output_type)
        for saved in state.in_flight:
            convert = chunk_conversion("The records in flight", state.in_flight_schema, codec)
            data = saved if convert is None else with_records(saved, convert)
            chunk = decode_chunk(data, read_header(data), codec)
            # A watermark holds for the subtask that it was collected in: here others' records come after it.
            marks = [] if state.in_flight_of_others else chunk.marks
            self._left_over.extend(Buffered.of(chunk.records, chunk.timestamps, marks))
        self._left_by_others = state.in_flight_of_others

    def seek(self, position: Any) -> None:
        self._run_returned = bool(position)

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        super().snapshot_user_state(context)
        self._source_context.offsets.cut(context.get_checkpoint_id())

    def notify_complete(self, checkpoint_id: int) -> None:
        """Notify the function, which may ask for `completed_offset`; then forget the offsets of older checkpoints."""
        super().notify_complete(checkpoint_id)
        self._source_context.offsets.forget_before(checkpoint_id)

    def hold_for_cut(self) -> None:
        self._cut_records = self._source_context.begin_cut()

    def release_after_cut(self) -> None:
        self._cut_records = 0
        self._source_context.end_cut()

    def open(self) -> None:
        super().open()
        self._source_context.drain_on_this_thread()
        if not self._run_returned:
            self._thread.start()

    def _run(self) -> None:
        run = getattr(self.function, "run", None)
        try:
            (run if callable(run) else self.function)(self._source_context)
        except SourceCancelledError:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._run_returned = True
            self._wake()

    def available(self) -> bool:
        waiting = self._left_over.size() > 0 or self._source_context.has_data()
        return not self.finished and (waiting or self._run_returned)

    def is_dry(self) -> bool:
        if self.finished:
            return True
        return not self.held_back and not self._left_over.size() and not self._source_context.has_data()

    def pull(self, allowance: Allowance) -> int:
        if self.finished:
            return 0
        self.held_back = self._source_context.is_full()
        self._source_context.bound_by_epoch(allowance.max_records)
        pulled = 0
        slices = allowance.slices
        if self._cut_records and allowance.may_leave:
            self._left_over.extend(self._source_context.take(self._cut_records))
        if self._left_by_others:
            self.hold_watermarks(True)
        while self._left_over.size() and (not pulled or not (allowance.is_over() and allowance.may_leave)):
            pulled += self._emit_slice(self._left_over, slices, min(SOURCE_BATCH, slices.size))
            if allowance.cancelled():
                return pulled
        if self._left_over.size():
            return pulled
        if self._left_by_others:
            self._left_by_others = False
            self.hold_watermarks(False)
        return pulled + self._pull_buffered(allowance)

    def _emit_slice(self, waiting: Buffered | BufferedSourceContext, slices: Slices, most: int) -> int:
        began = slices.now()
        taken = waiting.take(most)
        self._emit(taken)
        slices.took(len(taken.records), slices.now() - began)
        return len(taken.records)

    def _pull_buffered(self, allowance: Allowance) -> int:
        pulled = 0
        held = 0 if allowance.may_leave else self._cut_records
        allowance = replace(allowance, max_records=max(allowance.max_records, held))
        while True:
            returned = self._run_returned  # read before `take`: records that came before the return are then taken
            if self._error is not None:
                raise OperatorFailure(self.name) from self._error
            pulled += self._emit_slice(self._source_context, allowance.slices, allowance.next_slice(pulled))
            over = pulled >= allowance.max_records or (pulled >= held and allowance.is_over())
            if over or allowance.cancelled():
                return pulled
            if not self._source_context.has_data():
                break
        if returned and not self._source_context.has_data():
            self.end_of_input()
        return pulled

    def _emit(self, taken: Buffered) -> None:
        sent = 0
        times = taken.timestamps
        for mark in taken.marks:
            if mark.position > sent:
                self.output.emit(taken.records[sent : mark.position], times[sent : mark.position] if times else None)
                sent = mark.position
            if mark.kind == WATERMARK and not self.context.batch:
                self.current_watermark = max(self.current_watermark, mark.value)
                self.output.emit_watermark(self.current_watermark)
            elif mark.kind == IDLE:
                self.output.emit_idle()
        if sent < len(taken.records):
            self.output.emit(taken.records[sent:] if sent else taken.records, times[sent:] if times else None)

    def cancel(self) -> None:
        self._source_context.cancel()
        canceller = getattr(self.function, "cancel", None)
        # A function that was never opened has nothing to cancel, and perhaps not the attributes that its cancel() uses.
        if callable(canceller) and self._thread.ident is not None:
            try:
                canceller()
            except SourceCancelledError:
                pass  # cancel() wanted the checkpoint lock, which a cut holds
            except Exception:  # this thread also receives the driver's messages: it must live on
                _LOG.exception("cancel() of %s failed", self.context.task_name)

    def close(self) -> None:
        self.cancel()
        self.release_after_cut()  # an epoch may have failed between its cut and its snapshot
        if self._thread.ident is not None:
            self._thread.join(timeout=2.0)
        super().close()
