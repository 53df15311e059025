"""Sources: readers that are polled, and the user's `SourceFunction` on a thread of its own (I7, I8)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rekindle.checkpoint.rescale import SourceState, SplitState
from rekindle.common.watermark_strategy import Watermark
from rekindle.datastream.connectors.base import Batch, Source, SourceReaderContext, SourceSplit, assign_splits
from rekindle.datastream.functions import SourceFunction
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.exchange.chunk import IDLE, NO_TIMESTAMP, WATERMARK, Mark
from rekindle.runtime.isolation import Isolate
from rekindle.runtime.operators.base import MAX_WATERMARK, Operator, OperatorFailure
from rekindle.runtime.operators.stateless import FunctionOperator
from rekindle.runtime.slices import Slices
from rekindle.runtime.snapshot import SnapshotContext
from rekindle.serde import tagged_dumps, tagged_loads

_LOG = logging.getLogger(__name__)
#: Records that pass through a chain as one batch: large enough to amortise, small enough for the caches.
SOURCE_BATCH = 4096
#: How many records a SourceFunction may be ahead of the epochs.
SOURCE_BUFFER = 1 << 16


@dataclass(frozen=True)
class Allowance:
    """How much a source may bring into an epoch, and by when."""

    max_records: int
    deadline: float
    slices: Slices
    cancelled: Callable[[], bool]

    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.slices.now() >= self.deadline

    def next_slice(self, pulled: int) -> int:
        """How many records to emit at once after so many."""
        return min(SOURCE_BATCH, self.slices.size, self.max_records - pulled)


class SourceOperator(Operator):
    """A head without inputs: `pull` emits at most so many records."""

    finished = False
    #: The last pull ended because nothing was there, not at its cap.
    ran_dry = False

    def available(self) -> bool:
        """Whether a pull would bring something: a record, a mark, or the end."""
        raise NotImplementedError

    def pull(self, allowance: Allowance) -> int:
        """Emit what is there, up to the cap; the number of records."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Stop producing; called from another thread."""

    def position(self) -> Any:
        """A source may have ended although its task has not: an operator after it holds the end back."""
        return True if self.finished else None

    def hold_for_cut(self) -> None:
        """From here to `release_after_cut` the source's own state belongs to what was pulled (I8)."""

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


class SourceCancelledError(BaseException):
    """Leaves the user's `run` when the job is cancelled while it waits in `collect`."""


class _Buffered:
    """What `run` produced and no epoch took yet; the same layout as a chunk, plus offsets."""

    __slots__ = ("marks", "offsets", "records", "timestamps")

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.timestamps: list[int] | None = None
        self.marks: list[Mark] = []
        self.offsets: list[tuple[int, Any, Any]] = []  # (records before and with it, split, offset)

    def size(self) -> int:
        """What the bound counts: watermarks too."""
        return len(self.records) + len(self.marks)


class _SourceContext(SourceFunction.SourceContext):
    """The context of `SourceFunction.run`: collects into a bounded buffer, the engine keeps the offsets."""

    def __init__(
        self, wake: Callable[[], None], restored: dict[Any, Any], isolate: Isolate | None, initial_records: int
    ) -> None:
        self._wake = wake
        self._isolate = isolate
        self._restored = restored
        self._changed = threading.Condition(threading.Lock())
        self._checkpoint_lock = threading.RLock()
        self._buffered = _Buffered()
        self._most = min(initial_records, SOURCE_BUFFER)
        self._cancelled = False
        self.offsets: dict[Any, Any] = dict(restored)  # of the last record that an epoch took, per split
        self.offsets_of: dict[int, dict[Any, Any]] = {}  # checkpoint -> offsets at its cut

    # -- the user's side ----------------------------------------------------------------------------------------------

    def collect(self, value: Any, offset: Any = None, split: Any = None) -> None:
        self._put(value, NO_TIMESTAMP, offset, split)

    def collect_with_timestamp(self, value: Any, timestamp: int, offset: Any = None, split: Any = None) -> None:
        self._put(value, timestamp, offset, split)

    def _put(self, value: Any, timestamp: int, offset: Any, split: Any) -> None:
        if self._isolate is not None:
            value = self._isolate(value)
        with self._changed:
            buffered = self._room()
            records = buffered.records
            if timestamp != NO_TIMESTAMP and buffered.timestamps is None:
                buffered.timestamps = [NO_TIMESTAMP] * len(records)
            records.append(value)
            if buffered.timestamps is not None:
                buffered.timestamps.append(timestamp)
            if offset is not None or split is not None:
                buffered.offsets.append((len(records), split, offset))
            first = len(records) == 1
        if first:
            self._wake()

    def _room(self) -> _Buffered:
        """Wait for room; who holds the checkpoint lock may exceed the bound, so that neither waits for the other."""
        while self._buffered.size() >= self._most and not self._cancelled and not self._holds_lock():
            self._changed.wait()
        if self._cancelled:
            raise SourceCancelledError
        return self._buffered

    def _holds_lock(self) -> bool:
        return self._checkpoint_lock._is_owned()  # type: ignore[attr-defined,no-any-return]

    def emit_watermark(self, watermark: Watermark | int) -> None:
        self._mark(WATERMARK, watermark if isinstance(watermark, int) else watermark.timestamp)

    def mark_as_temporarily_idle(self) -> None:
        self._mark(IDLE, 0)

    def _mark(self, kind: int, value: int) -> None:
        with self._changed:
            buffered = self._room()
            buffered.marks.append(Mark(len(buffered.records), kind, value))
        self._wake()

    def get_checkpoint_lock(self) -> Any:
        return self._checkpoint_lock

    @property
    def restored_offset(self) -> Any:
        return self._restored.get(None)

    @property
    def restored_offsets(self) -> dict[Any, Any]:
        return dict(self._restored)

    def completed_offset(self, checkpoint_id: int, split: str | None = None) -> Any:
        return self.offsets_of.get(checkpoint_id, {}).get(split)

    def close(self) -> None:
        """Nothing to give back."""

    # -- the engine's side --------------------------------------------------------------------------------------------

    def resize(self, max_records: int) -> None:
        """Let `run` be ahead by as much as an epoch takes: a cut has to take all of it (I8, I22)."""
        if max_records:
            self._most = min(max_records, SOURCE_BUFFER)

    def buffered(self) -> int:
        """How many records wait."""
        return len(self._buffered.records)

    def has_data(self) -> bool:
        """Whether `take` would bring something."""
        return bool(self._buffered.records or self._buffered.marks)

    def take(self, max_records: int) -> _Buffered:
        """The oldest records, with the marks between them; offsets follow what was taken."""
        with self._changed:
            taken, rest = self._buffered, _Buffered()
            if len(taken.records) > max_records:
                rest = _split(taken, max_records)
            self._buffered = rest
            for _, split, offset in taken.offsets:
                self.offsets[split] = offset
            self._changed.notify_all()
        return taken

    def cancel(self) -> None:
        """Let `collect` raise."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()


def _split(buffered: _Buffered, count: int) -> _Buffered:
    """Keep the first `count` records in `buffered` and give back the rest."""
    rest = _Buffered()
    rest.records = buffered.records[count:]
    del buffered.records[count:]
    if buffered.timestamps is not None:
        rest.timestamps = buffered.timestamps[count:]
        del buffered.timestamps[count:]
    rest.marks = [mark._replace(position=mark.position - count) for mark in buffered.marks if mark.position > count]
    buffered.marks = [mark for mark in buffered.marks if mark.position <= count]
    rest.offsets = [(place - count, *entry) for place, *entry in buffered.offsets if place > count]
    buffered.offsets = [entry for entry in buffered.offsets if entry[0] <= count]
    return rest


class FunctionSourceOperator(FunctionOperator, SourceOperator):
    """The user's `run(ctx)` on its own thread, drained by the epochs."""

    def __init__(self, node: OperatorNode, context: OperatorContext, function: Any, wake: Callable[[], None]) -> None:
        super().__init__(node, context, function)
        self._wake = wake
        self._initial_records: int = context.settings.epoch_initial_records
        self._source_context = _SourceContext(wake, {}, self.isolate, self._initial_records)
        self._held = 0  # records that the cut must take, whatever the cap
        self._returned = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"source {context.task_name}", daemon=True)

    def source_state(self) -> SourceState | None:
        offsets = self._source_context.offsets
        return SourceState(
            [
                SplitState(None if split is None else tagged_dumps(split), tagged_dumps(offset))
                for split, offset in offsets.items()
            ]
        )

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """A source whose `run` had returned is not run again (I9)."""
        offsets = {
            None if each.split is None else tagged_loads(each.split): tagged_loads(each.position)
            for each in state.splits
        }
        self._source_context = _SourceContext(self._wake, offsets, self.isolate, self._initial_records)
        self._returned = finished

    def seek(self, position: Any) -> None:
        self._returned = bool(position)

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        super().snapshot_user_state(context)
        self._source_context.offsets_of[context.get_checkpoint_id()] = dict(self._source_context.offsets)

    def notify_complete(self, checkpoint_id: int) -> None:
        """The function may ask for `completed_offset`; what is older is forgotten."""
        super().notify_complete(checkpoint_id)
        offsets_of = self._source_context.offsets_of
        for older in [each for each in offsets_of if each < checkpoint_id]:
            del offsets_of[older]

    def hold_for_cut(self) -> None:
        self._source_context.get_checkpoint_lock().acquire()
        self._held = self._source_context.buffered()

    def release_after_cut(self) -> None:
        self._held = 0
        self._source_context.get_checkpoint_lock().release()

    def open(self) -> None:
        super().open()
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
        return not self.finished and (self._source_context.has_data() or self._returned)

    def pull(self, allowance: Allowance) -> int:
        if self.finished:
            return 0
        self._source_context.resize(allowance.max_records)
        pulled = 0
        slices = allowance.slices
        allowance = replace(allowance, max_records=max(allowance.max_records, self._held))
        while True:
            returned = self._returned  # before `take`: what came before the return is then taken
            if self._error is not None:
                raise OperatorFailure(self.name) from self._error
            began = slices.now()
            taken = self._source_context.take(allowance.next_slice(pulled))
            pulled += len(taken.records)
            self._emit(taken)
            slices.took(len(taken.records), slices.now() - began)
            over = pulled >= allowance.max_records or (pulled >= self._held and allowance.is_over())
            if over or allowance.cancelled():
                return pulled
            if not self._source_context.has_data():
                break
        if returned and not self._source_context.has_data():
            self.end_of_input()
        return pulled

    def _emit(self, taken: _Buffered) -> None:
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
            except Exception:  # it is called from the thread that the driver speaks to
                _LOG.exception("cancel() of %s failed", self.context.task_name)

    def close(self) -> None:
        self.cancel()
        if self._thread.ident is not None:
            self._thread.join(timeout=2.0)
        super().close()
