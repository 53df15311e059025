"""A task that records its input, for a replay of its failure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec

from rekindle.checkpoint.recordings import (
    Barrier,
    Epoch,
    Looked,
    RecordedAbort,
    RecordedCompletion,
    RecordedSegment,
    SplitsAdded,
    Start,
)
from rekindle.datastream.connectors.base import SourceSplit
from rekindle.datastream.connectors.split_codec import encode_splits
from rekindle.errors import SerializationError
from rekindle.graph.nodes import Chain, JobPlan, OperatorKind
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.build_chain import SlotServices
from rekindle.runtime.exchange.chunk import ChunkHeader
from rekindle.runtime.recording.recorded_sources import building
from rekindle.runtime.recording.recorder import Recorder, RecordingClock
from rekindle.runtime.snapshot import CapturedTask
from rekindle.runtime.task import EpochOutcome, Task
from rekindle.runtime.task_head import EpochBudget
from rekindle.runtime.task_snapshots import TaskShare

_encode = msgspec.msgpack.Encoder().encode
#: Which operators hear of a completed checkpoint.
ALL, ALL_BUT_SOURCE, SOURCE = "all", "all but the source", "source"


class RecordedTask(Task):
    """Records every call that can change the task, with what it brings."""

    def __init__(self, plan: JobPlan, chain: Chain, subtask: int, services: SlotServices) -> None:
        name = f"{chain.name} ({subtask + 1}/{chain.parallelism})"
        self._recorder = Recorder(name, plan.settings.replay.max_bytes)
        clock = RecordingClock(services.clock, self._recorder)
        super().__init__(
            plan, chain, subtask, replace(services, clock=clock, build=building(self._recorder, services.build))
        )
        if plan.nodes[chain.head].kind is not OperatorKind.SOURCE_FUNCTION:
            self._slices.now = self._recorder.ticking(services.clock.monotonic)
        self._asks_generators = any(times.asks_generator for times in self._roles.times)

    def recorded(self) -> tuple[Start | None, list[RecordedSegment]] | None:
        """The input that was recorded since the last completed checkpoint; None: more than is kept."""
        return self._recorder.recorded()

    # -- what is recorded ---------------------------------------------------------------------------------------------

    def start(self, share: TaskShare | None, restored_id: int | None, splits: Sequence[SourceSplit] = ()) -> None:
        start = Start(restored_id)
        with suppress(SerializationError):
            start.splits = encode_splits(splits)
        if share is not None:
            start.store_url, start.root = share.store.url, share.root
            uids = {operator.node.uid for operator in self._operators.values()}
            start.shares = [_encode(each) for uid, each in share.subtasks.items() if uid in uids]
        with self._recorder.starting(start):
            super().start(share, restored_id, splits)

    def receive(self, header: ChunkHeader, chunk: bytes) -> None:
        super().receive(header, chunk)
        self._recorder.received(chunk)

    def run_epoch(self, budget: EpochBudget) -> EpochOutcome:
        epoch = Epoch(
            max_records=budget.max_records,
            target_ms=budget.target_ms,
            leave_after_ms=budget.leave_after_ms,
            aligned=dict(budget.aligned),
            checkpoint=budget.checkpoint,
            backlogged=list(budget.backlogged),
            slice_records=self._slices.size,
        )
        with self._recorder.during(epoch):
            return super().run_epoch(budget)

    def _is_dry(self) -> bool:
        dry = super()._is_dry()
        self._recorder.ran_dry(dry)
        return dry

    def snapshot(self, order: CheckpointOrder) -> CapturedTask:
        try:
            with self._recorder.during(Barrier(order)):
                return super().snapshot(order)
        finally:
            if not order.savepoint:
                self._recorder.barrier_passed(order.id)

    def notify_complete(self, checkpoint_id: int, *, with_source: bool = True) -> None:
        self._recorder.completed(checkpoint_id)
        with self._recorder.during(RecordedCompletion(checkpoint_id, ALL if with_source else ALL_BUT_SOURCE)):
            super().notify_complete(checkpoint_id, with_source=with_source)

    def notify_source_complete(self, checkpoint_id: int) -> None:
        with self._recorder.during(RecordedCompletion(checkpoint_id, SOURCE)):
            super().notify_source_complete(checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        self._recorder.aborted(checkpoint_id)
        with self._recorder.during(RecordedAbort(checkpoint_id)):
            super().notify_aborted(checkpoint_id)

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        with self._recorder.during(SplitsAdded(encode_splits(splits))):
            super().add_splits(splits)

    def next_due_ms(self) -> int | None:
        if not self._asks_generators:
            return super().next_due_ms()
        with self._recorder.during(Looked()):
            return super().next_due_ms()
