"""Sources: readers that are polled, and the user's `SourceFunction` on a thread of its own (I7, I8)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rekindle.checkpoint.part_formats import SourceState, SplitState
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream.connectors.base import Batch, Source, SourceReaderContext, SourceSplit, assign_splits
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.exchange.chunk import IDLE, WATERMARK, decode_row, encode_body, encode_row, read_header
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.operators.roles import Cancellable, Positioned
from rekindle.runtime.operators.source_context import Buffered, BufferedSourceContext, SourceCancelledError
from rekindle.runtime.operators.split_offsets import SplitOffsets
from rekindle.runtime.operators.stateless import FunctionOperator
from rekindle.runtime.slices import Slices
from rekindle.runtime.snapshot import SnapshotContext
from rekindle.serde import codec_for, tagged_dumps, tagged_loads

_LOG = logging.getLogger(__name__)
#: Records that pass through a chain as one batch: large enough to amortise, small enough for the caches.
SOURCE_BATCH = 4096


@dataclass(frozen=True)
class Allowance:
    """How much a source may bring into an epoch, and by when."""

    max_records: int
    deadline: float
    slices: Slices
    cancelled: Callable[[], bool]
    #: Whether records that belong to a cut may be left for later, in the checkpoint (unaligned checkpoints).
    may_leave: bool = False

    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.slices.now() >= self.deadline

    def next_slice(self, pulled: int) -> int:
        """How many records to emit at once after so many."""
        return min(SOURCE_BATCH, self.slices.size, self.max_records - pulled)


class SourceOperator(Operator, Positioned, Cancellable):
    """A head without inputs: `pull` emits at most so many records."""

    finished = False
    #: Records that belong to a cut and that the chain had no time for.
    records_left = 0
    #: The last pull ended because nothing was there, not at its cap.
    ran_dry = False
    #: There was no room for more when the last pull began: more follows, though it may not be there yet.
    held_back = False

    def available(self) -> bool:
        """Whether a pull would bring something: a record, a mark, or the end."""
        raise NotImplementedError

    def pull(self, allowance: Allowance) -> int:
        """Emit what is there, up to the cap; the number of records."""
        raise NotImplementedError

    def source_state(self) -> SourceState | None:
        """Return the position of each split, for a snapshot; None if there is none."""
        raise NotImplementedError

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """Continue from a snapshot; `finished`: the source had ended by then."""
        raise NotImplementedError

    def position(self) -> Any:
        """Return True if the source has ended: its task may not have, if an operator after it holds the end back."""
        return True if self.finished else None

    def hold_for_cut(self) -> None:
        """From here to `release_after_cut` the source stands still: its own state fits what is pulled (I8)."""

    def release_after_cut(self) -> None:
        """The snapshot is taken."""

    def end_of_input(self) -> None:
        """The last watermark, then the end."""
        self.finished = True
        self.output.emit_watermark(MAX_WATERMARK)
        self.output.emit_end()


class ReaderSourceOperator(SourceOperator):
    """A `Source` whose reader is polled on the task's thread."""

    def __init__(self, node: OperatorNode, context: OperatorContext, source: Source[Any]) -> None:
        super().__init__(node, context)
        self._source = source
        self._restored: list[SourceSplit] | None = None
        self._ended_before = False

    def source_state(self) -> SourceState | None:
        splits = [] if self.finished else self._reader.snapshot_state()
        return SourceState([SplitState(tagged_dumps(split.split_id), tagged_dumps(split.position)) for split in splits])

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """A source that had ended says so again and reads nothing (I9)."""
        self._ended_before = finished
        self._restored = [
            SourceSplit(tagged_loads(each.split or b""), tagged_loads(each.position)) for each in state.splits
        ]

    def seek(self, position: Any) -> None:
        self._ended_before = bool(position)

    def open(self) -> None:
        if self._ended_before:
            return
        try:
            parallelism, subtask = self.node.parallelism, self.context.subtask
            splits = self._restored
            if splits is None:
                splits = assign_splits(self._source.create_splits(parallelism), parallelism)[subtask]
            context = SourceReaderContext(subtask, parallelism, self.context.task_name)
            self._reader = self._source.create_reader(context, splits)
        except Exception as error:
            raise OperatorFailure(self.name) from error

    def close(self) -> None:
        reader = getattr(self, "_reader", None)
        if reader is not None:
            reader.close()

    def available(self) -> bool:
        if self.finished or self._ended_before:
            return not self.finished
        try:
            return self._reader.is_available()
        except Exception as error:
            raise OperatorFailure(self.name) from error

    def pull(self, allowance: Allowance) -> int:
        if self._ended_before:
            self.end_of_input()
            return 0
        pulled = 0
        self.ran_dry = False
        slices = allowance.slices
        while pulled < allowance.max_records and not allowance.cancelled() and not allowance.is_over():
            began = slices.now()
            try:
                polled = self._reader.poll(allowance.next_slice(pulled))
                records, timestamps = _records_of(polled)
            except Exception as error:
                raise OperatorFailure(self.name) from error
            if polled is None:
                self.end_of_input()
                break
            if not records:
                self.ran_dry = True
                break
            pulled += len(records)
            self.output.emit(records if self.isolate is None else list(map(self.isolate, records)), timestamps)
            slices.took(len(records), slices.now() - began)
        return pulled


def _records_of(polled: Any) -> tuple[list[Any], list[int] | None]:
    if isinstance(polled, Batch):
        return polled.records, polled.timestamps
    if polled is not None and not isinstance(polled, list | tuple):
        raise TypeError(f"poll() gives a list of records, a Batch or None, not a {type(polled).__name__}")
    return polled or [], None  # type: ignore[return-value]  # a tuple is as good as a list


class FunctionSourceOperator(FunctionOperator, SourceOperator):
    """The user's `run(ctx)` on its own thread, drained by the epochs."""

    def __init__(self, node: OperatorNode, context: OperatorContext, function: Any, wake: Callable[[], None]) -> None:
        super().__init__(node, context, function)
        self._wake = wake
        self._first_bound = context.settings.epoch_initial_records
        self._source_context = BufferedSourceContext(wake, self.isolate, self._first_bound)
        self._held = 0  # records that the cut must take, whatever the cap
        self._left = Buffered()  # what belongs to a cut and waits for the chain
        self._returned = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"source {context.task_name}", daemon=True)

    @property
    def records_left(self) -> int:  # type: ignore[override]
        return len(self._left.records)

    def source_state(self) -> SourceState | None:
        left, state = self._left, self._source_context.offsets.state()
        if not left.size():
            return state if state.splits or self.finished else None
        body = encode_body(left.records, left.timestamps, left.marks, codec_for(self.node.output_type))
        return SourceState(state.splits, in_flight=[encode_row(0, 0, 0, 0, body)])

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """A source whose `run` had returned is not run again (I9)."""
        offsets = SplitOffsets.of(state, self.context.subtask, self.node.parallelism)
        self._source_context = BufferedSourceContext(self._wake, self.isolate, self._first_bound, offsets)
        self._returned = finished
        for row in state.in_flight:
            chunk = decode_row(row, read_header(row), codec_for(self.node.output_type))
            self._left.extend(Buffered.of(chunk.records, chunk.timestamps, chunk.marks))

    def seek(self, position: Any) -> None:
        self._returned = bool(position)

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        super().snapshot_user_state(context)
        self._source_context.offsets.cut(context.get_checkpoint_id())

    def notify_complete(self, checkpoint_id: int) -> None:
        """The function may ask for `completed_offset`; what is older is forgotten."""
        super().notify_complete(checkpoint_id)
        self._source_context.offsets.forget_before(checkpoint_id)

    def hold_for_cut(self) -> None:
        self._held = self._source_context.begin_cut()

    def release_after_cut(self) -> None:
        self._held = 0
        self._source_context.end_cut()

    def open(self) -> None:
        super().open()
        self._source_context.drained_here()
        if not self._returned:
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
            self._returned = True
            self._wake()

    def available(self) -> bool:
        return not self.finished and (self._left.size() > 0 or self._source_context.has_data() or self._returned)

    def pull(self, allowance: Allowance) -> int:
        if self.finished:
            return 0
        self.held_back = self._source_context.is_full()
        self._source_context.follow(allowance.max_records)
        pulled = 0
        slices = allowance.slices
        if self._held and allowance.may_leave:
            self._left.extend(self._source_context.take(self._held))
        while self._left.size() and (not pulled or not (allowance.is_over() and allowance.may_leave)):
            pulled += self._pull_slice(self._left, slices, min(SOURCE_BATCH, slices.size))
            if allowance.cancelled():
                return pulled
        if self._left.size():
            return pulled
        return pulled + self._pull_new(allowance)

    def _pull_slice(self, waiting: Buffered | BufferedSourceContext, slices: Slices, most: int) -> int:
        began = slices.now()
        taken = waiting.take(most)
        self._emit(taken)
        slices.took(len(taken.records), slices.now() - began)
        return len(taken.records)

    def _pull_new(self, allowance: Allowance) -> int:
        pulled = 0
        held = 0 if allowance.may_leave else self._held
        allowance = replace(allowance, max_records=max(allowance.max_records, held))
        while True:
            returned = self._returned  # before `take`: what came before the return is then taken
            if self._error is not None:
                raise OperatorFailure(self.name) from self._error
            pulled += self._pull_slice(self._source_context, allowance.slices, allowance.next_slice(pulled))
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
        # A function that was never opened has nothing to cancel, and perhaps not yet the fields to do it with.
        if callable(canceller) and self._thread.ident is not None:
            try:
                canceller()
            except SourceCancelledError:
                pass  # it asked for the checkpoint lock, which a cut has
            except Exception:  # it is called from the thread that the driver speaks to
                _LOG.exception("cancel() of %s failed", self.context.task_name)

    def close(self) -> None:
        self.cancel()
        self.release_after_cut()  # of an epoch that failed before its snapshot
        if self._thread.ident is not None:
            self._thread.join(timeout=2.0)
        super().close()
