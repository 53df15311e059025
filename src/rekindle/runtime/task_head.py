"""The head of a task: its first operator with the input that it processes, a source or chunks of other chains."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rekindle.clock import Clock
from rekindle.datastream.connectors.base import SourceSplit
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.end_of_input import EndEvent, EndOfInput
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.source_times import SourceTimes
from rekindle.runtime.operators.sources import Allowance, SourceOperator
from rekindle.runtime.operators.split_times import WHOLE_SOURCE
from rekindle.runtime.task_input import Cancellation, Slices, TaskInput


@dataclass(frozen=True)
class EpochBudget:
    """The limits of a source in an epoch, and the checkpoint whose barrier stands at its end."""

    max_records: int
    target_ms: float
    checkpoint: CheckpointOrder | None = None
    #: After this time a task leaves what waits in front of it (unaligned checkpoints); None: never.
    leave_after_ms: float | None = None
    #: The lowest watermark of each alignment group.
    aligned: Mapping[str, int] = field(default_factory=dict)
    #: The nodes at the heads of chains that had input left after the epoch before, and sources that are not read yet.
    backlogged: Collection[int] = ()
    #: The stage that all readers of a source have reached, by the source's node.
    source_stages: Mapping[int, int] = field(default_factory=dict)


class Head(Protocol):
    """The head of a task, as the task sees it. Methods that only a source needs do nothing here."""

    #: The first operator of the chain.
    operator: Operator

    # -- in an epoch --------------------------------------------------------------------------------------------------

    def look_before(self, backlogged: Collection[int], since_ms: int | None) -> None:
        """Count the time since the last epoch in which nothing waited; None: there was no epoch yet."""
        return

    def take(self, budget: EpochBudget) -> int:
        """Process the epoch's share of the input; return the number of its records."""

    def is_dry(self) -> bool:
        """Whether all input that was there is processed."""

    def look_after(self, dry: bool) -> None:
        """Count the time in which nothing waited, after the epoch's share is processed."""
        return

    def has_backlog(self) -> bool:
        """Whether the next epoch should follow at once."""

    def records_left(self) -> int:
        """Return how many records the task had no time for in the last epoch."""

    def aligned(self) -> dict[str, int]:
        """Return the watermark by alignment group, for the driver."""
        return {}

    def source_stage(self) -> int | None:
        """Return the stage that the source's reader has reached, for the driver; None: there are no stages."""
        return None

    def barrier_passed(self, checkpoint_id: int) -> None:
        """Go on after the cut: the checkpoint's snapshot is taken, or it was aborted."""
        return

    # -- between epochs -----------------------------------------------------------------------------------------------

    def assign(self, splits: Sequence[SourceSplit]) -> None:
        """Take the splits of the start."""
        return

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        """Take splits that the driver has discovered while the job runs."""
        return

    def polls(self) -> bool:
        """Whether the task's thread has to poll `has_input`."""
        return False

    def has_input(self) -> bool:
        """Whether a source has something for the next epoch."""
        return False


class SourceHead(Head):
    """A source. It emits up to the epoch's limits, and stands still from a cut to the snapshot."""

    def __init__(
        self,
        source: SourceOperator,
        times: Sequence[SourceTimes],
        slices: Slices,
        clock: Clock,
        end: EndOfInput,
        cancellation: Cancellation,
        on_end: Callable[[], None],
    ) -> None:
        self.operator = source
        self._times = times
        self._slices = slices
        self._clock = clock
        self._end = end
        self._cancellation = cancellation
        self._on_end = on_end
        self._held_for: int | None = None  # the checkpoint for whose cut the source stands still
        source.hold_watermarks = self._hold_watermarks

    def _hold_watermarks(self, held: bool) -> None:
        for times in self._times:
            times.hold(held)

    def take(self, budget: EpochBudget) -> int:
        source, checkpoint = self.operator, budget.checkpoint
        if checkpoint is not None:
            source.hold_for_cut()
            self._held_for = checkpoint.id
        source.align(budget.aligned)
        source.all_reached(budget.source_stages.get(source.node.id))
        pulled = 0 if source.finished else self._pull(budget)
        if checkpoint is not None and checkpoint.drain and not source.finished:
            source.end_of_input()
            self._end.on(EndEvent.INPUT_ENDED)
        return pulled

    def _pull(self, budget: EpochBudget) -> int:
        source, slices, cancellation = self.operator, self._slices, self._cancellation
        if self._end.ended_before:
            source.finished = True
            self._on_end()
            return 0
        may_leave = budget.leave_after_ms is not None
        time_ms = budget.target_ms if budget.leave_after_ms is None else min(budget.target_ms, budget.leave_after_ms)
        deadline = slices.now() + time_ms / 1000
        pulled = source.pull(Allowance(budget.max_records, deadline, slices, lambda: cancellation.asked, may_leave))
        cancellation.check()
        if source.finished:  # it has sent the last watermark and the end itself
            self._end.on(EndEvent.INPUT_ENDED)
        return pulled

    def is_dry(self) -> bool:
        return self.operator.is_dry()

    def look_after(self, dry: bool) -> None:
        now_ms = self._clock.wall_ms()
        self.operator.note_quiet(dry, now_ms)
        _note_quiet(self._times, dry, now_ms)

    def has_backlog(self) -> bool:
        """Whether more follows at once; a reader may say 'available' although its poll was empty."""
        source = self.operator
        return self.polls() and (source.held_back or (source.available() and not source.ran_dry))

    def records_left(self) -> int:
        return self.operator.records_left

    def aligned(self) -> dict[str, int]:
        return self.operator.aligned()

    def source_stage(self) -> int | None:
        return self.operator.stage_reached()

    def barrier_passed(self, checkpoint_id: int) -> None:
        if checkpoint_id == self._held_for:
            self._held_for = None
            self.operator.release_after_cut()

    def assign(self, splits: Sequence[SourceSplit]) -> None:
        self.operator.assign(splits)

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        self.operator.add_splits(splits)

    def polls(self) -> bool:
        return not self._end.finished and not self.operator.finished

    def has_input(self) -> bool:
        return not self._end.finished and self.operator.available()


class InputHead(Head):
    """An operator behind an exchange: it processes the chunks that wait in its inbox."""

    def __init__(
        self, operator: Operator, task_input: TaskInput, times: Sequence[SourceTimes], upstream: Collection[int]
    ) -> None:
        """`upstream`: the nodes that it gets records from, directly or not."""
        self.operator = operator
        self._input = task_input
        self._times = times
        self._upstream = frozenset(upstream)

    def look_before(self, backlogged: Collection[int], since_ms: int | None) -> None:
        if since_ms is not None:
            _note_quiet(self._times, self._upstream.isdisjoint(backlogged), since_ms)

    def take(self, budget: EpochBudget) -> int:
        return self._input.take(self.operator, budget.leave_after_ms)

    def is_dry(self) -> bool:
        return not self._input.inbox.waiting

    def has_backlog(self) -> bool:
        return bool(self._input.inbox.waiting)

    def records_left(self) -> int:
        return self._input.inbox.records_waiting()


def _note_quiet(without_reader: Sequence[SourceTimes], quiet: bool, now_ms: int) -> None:
    """Let strategies count the time in which nothing waits for them; a reader tells its own which splits are quiet."""
    for times in without_reader:
        times.splits.note_quiet([WHOLE_SOURCE] if quiet else [], now_ms)
