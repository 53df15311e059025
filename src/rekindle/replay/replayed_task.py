"""The task of a replay: it goes through the recorded events again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from rekindle.checkpoint.recordings import Barrier, Epoch, Event, Looked, RecordedAbort, RecordedCompletion, SplitsAdded
from rekindle.datastream.connectors.split_codec import decode_splits
from rekindle.datastream.functions import TwoPhaseCommitSinkFunction
from rekindle.errors import ReplayError
from rekindle.graph.nodes import Chain, JobPlan, OperatorKind
from rekindle.protocol import CheckpointOrder
from rekindle.replay.key_trace import Trace
from rekindle.replay.replay_clock import ReplayClock
from rekindle.replay.replayed_ends import DroppingSink, Feed, ReplayedFunctionSource, ReplayedSource
from rekindle.runtime.build_chain import SlotServices
from rekindle.runtime.exchange.chunk import on_edge, read_header
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.build_operator import Blueprint, build_operator, selector_function
from rekindle.runtime.operators.windows.general_windows import GeneralWindowOperator
from rekindle.runtime.recording.recorded_task import ALL_BUT_SOURCE, SOURCE
from rekindle.runtime.snapshot import SnapshotDeclinedError
from rekindle.runtime.state.described_states import values_of
from rekindle.runtime.task import Task
from rekindle.runtime.task_head import EpochBudget


def building(
    feed: Feed, clock: ReplayClock, with_sinks: bool, trace: Trace | None = None
) -> Callable[[Blueprint], Operator]:
    """Return the function that builds the operators of a replay."""

    def build(blueprint: Blueprint) -> Operator:
        node = blueprint.node
        if node.kind is OperatorKind.SOURCE_FUNCTION:
            return ReplayedFunctionSource(node, blueprint.context, feed, clock)
        if node.kind is OperatorKind.SOURCE_READER:
            blueprint.function = ReplayedSource(blueprint.function, node, feed)
        # A two-phase function commits what its state holds when it is opened: that is left to the job.
        commits = isinstance(blueprint.function, TwoPhaseCommitSinkFunction)
        if node.kind.is_sink and (commits or not with_sinks):
            return DroppingSink(node, blueprint.context)
        return build_operator(blueprint)

    if trace is None:
        return build
    return lambda blueprint: trace.watch(_traceable(blueprint) or build(blueprint))


def _traceable(blueprint: Blueprint) -> Operator | None:
    """A window operator that keeps all its state in the backend, where a trace sees it; None for other nodes."""
    if blueprint.node.kind is not OperatorKind.WINDOW:
        return None
    selector = selector_function(blueprint.selectors[0])
    return GeneralWindowOperator(blueprint.node, blueprint.context, blueprint.function, selector)


class ReplayedTask(Task):
    """A task that reads recorded events and times. Its output for other tasks is dropped."""

    def __init__(
        self, plan: JobPlan, chain: Chain, subtask: int, services: SlotServices, clock: ReplayClock, feed: Feed
    ) -> None:
        super().__init__(plan, chain, subtask, services)
        self.plan = plan
        self._replayed_clock = clock
        self._feed = feed
        self._taken: set[int] = set()  # the checkpoints whose snapshot was taken
        recorded_ticks = plan.nodes[chain.head].kind is not OperatorKind.SOURCE_FUNCTION
        self._slices.now = clock.tick if recorded_ticks else clock.monotonic

    def state_of(self, operator: str, key: Any) -> dict[str, Any]:
        """The values of a key in the states of the operator with this name or uid."""
        for each in self._operators.values():
            if operator in (each.name, each.node.uid) and each.context.keyed is not None:
                return values_of(each.context.keyed, key)
        raise ReplayError(f"Task '{self.name}' has no keyed operator '{operator}'.")

    def play(self, event: Event, edges: dict[int, int]) -> None:
        """Do what the task did on an event. `edges`: recorded edge -> edge of this plan."""
        self._replayed_clock.enter(event.time)
        match event:
            case Epoch():
                self._play_epoch(event, edges)
            case Barrier(order=order):
                self._play_barrier(order)
            case RecordedCompletion(id=checkpoint_id, part=part):
                self._hear(checkpoint_id, part)
            case RecordedAbort(id=checkpoint_id):
                if checkpoint_id in self._taken:
                    self.notify_aborted(checkpoint_id)
            case SplitsAdded(splits=splits):
                self.add_splits(decode_splits(splits))
            case Looked():
                self.next_due_ms()

    def _play_epoch(self, epoch: Epoch, edges: dict[int, int]) -> None:
        for chunk in epoch.chunks:
            chunk = on_edge(chunk, edges[read_header(chunk).edge])
            self.receive(read_header(chunk), chunk)
        self._feed.begin(epoch)
        self._slices.size = epoch.slice_records
        limits = epoch.max_records, epoch.target_ms, epoch.checkpoint, epoch.leave_after_ms
        self.run_epoch(EpochBudget(*limits, epoch.aligned, epoch.backlogged))
        for _ in self.outbox.drain():
            pass

    def _is_dry(self) -> bool:
        return self._feed.dry

    def _play_barrier(self, order: CheckpointOrder) -> None:
        """Take the snapshot, which calls the user's `snapshot_state`, and drop it; it stands on nothing."""
        with suppress(SnapshotDeclinedError):  # the job went on without it (I19)
            self.snapshot(replace(order, base_id=None)).cancel()
        self._taken.add(order.id)

    def _hear(self, checkpoint_id: int, part: str) -> None:
        """Tell functions of a completed checkpoint; sinks commit nothing in a replay."""
        roles = self._roles
        for operator in reversed(roles.operators):
            uid, is_source = operator.node.uid, operator is roles.source
            if uid in roles.committing or (part == SOURCE and not is_source):
                continue
            if part == ALL_BUT_SOURCE and is_source:
                continue
            if checkpoint_id in self._taken:
                operator.context.checkpoint_completed(checkpoint_id)
            if uid in roles.participants:
                roles.participants[uid].notify_complete(checkpoint_id)
