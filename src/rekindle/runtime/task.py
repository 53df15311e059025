"""One task: subtask i of a chain, its operators, inputs and outputs. Runs on one thread; knows nothing of sockets."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Final

from rekindle.checkpoint.part_formats import TaskState
from rekindle.checkpoint.parts import OperatorSnapshotFutures
from rekindle.checkpoint.read_state import RestoredSubtask, read_parts, read_subtask
from rekindle.checkpoint.rescale import SubtaskShare
from rekindle.checkpoint.store.port import Store
from rekindle.common.watermark_strategy import MAX_WATERMARK, MIN_WATERMARK
from rekindle.crash_points import CrashPoint, reach
from rekindle.datastream.connectors.base import SourceSplit
from rekindle.errors import IncompatibleStateError, JobCancelledError, SerializationError, TypeMismatchError
from rekindle.graph.nodes import Chain, JobPlan
from rekindle.protocol import CheckpointOrder, EdgeCount, TaskReport
from rekindle.runtime.barriers import Barriers
from rekindle.runtime.build_chain import ChainBuilder, SlotServices
from rekindle.runtime.end_of_input import EndAction, EndEvent, EndOfInput
from rekindle.runtime.exchange.chunk import ChunkHeader
from rekindle.runtime.exchange.inbox import Inbox
from rekindle.runtime.exchange.outbox import Outbox
from rekindle.runtime.exchange.writers import (
    EdgeWriter,
)
from rekindle.runtime.in_flight import InFlightRestore
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import CountedConsumer
from rekindle.runtime.operators.reader_source import ReaderSourceOperator
from rekindle.runtime.operators.roles import (
    Committing,
    OperatorRoles,
    PreparesSnapshot,
    SnapshotParticipant,
    refuse_committables,
)
from rekindle.runtime.operators.sources import Allowance, SourceOperator
from rekindle.runtime.operators.split_times import WHOLE_SOURCE
from rekindle.runtime.raw_streams import RawInputs
from rekindle.runtime.restore_checks import restoring_state, warn_unclaimed_state, warn_unread_raw_state
from rekindle.runtime.snapshot import CapturedTask, CaptureInput, SnapshotDeclinedError, capture_operator
from rekindle.runtime.task_input import LOOK_AROUND_S, LOOK_AROUND_UNALIGNED_S, Slices, TaskInput
from rekindle.runtime.task_metrics import TaskMetrics
from rekindle.runtime.task_position import edge_names, seek_valve, seek_writers, valve_position, writer_positions
from rekindle.serde import tagged_dumps, tagged_loads

#: The most stack frames of an operator of a chain, and of everything else, the user's own calls included.
_FRAMES_PER_OPERATOR: Final = 8
_FRAMES: Final = 1000


def _allow_calls_through(operators: int) -> None:
    """Chained operators call each other: a long chain needs a deeper stack than Python allows at first."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES + _FRAMES_PER_OPERATOR * operators))


def _one_by_one(parts: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Parts of keyed state, as they are taken."""
    for part in parts:
        reach(CrashPoint.BEFORE_PART)
        yield part
        reach(CrashPoint.AFTER_PART)


@dataclass(frozen=True)
class EpochBudget:
    """How much a source may bring into an epoch, and whether a checkpoint's barrier stands at its end."""

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


@dataclass(frozen=True)
class EpochOutcome:
    """The report of a task's epoch, and its counts of records per channel."""

    report: TaskReport
    sent: list[EdgeCount]
    received: list[EdgeCount]
    more: bool


@dataclass(frozen=True)
class TaskShare:
    """A task's share of a checkpoint, by operator uid; references in it are relative to `root` in `store`."""

    store: Store
    root: str
    subtasks: Mapping[str, SubtaskShare]


class Task:
    """Builds the operators of a chain for one subtask and runs epochs through them."""

    def __init__(self, plan: JobPlan, chain: Chain, subtask: int, services: SlotServices) -> None:
        _allow_calls_through(len(chain.nodes))
        self.chain = chain
        self.subtask = subtask
        self.name = f"{chain.name} ({subtask + 1}/{chain.parallelism})"
        self._end = EndOfInput()
        self._barriers = Barriers()
        self._plan = plan
        self._services = services
        self._cancelled = False
        self._checkpointed = plan.settings.checkpointed
        self._epoch_ended_ms: int | None = None
        self._upstream = plan.upstream(chain.head)
        self._source_held_for: int | None = None  # the checkpoint for whose cut the source stands still
        self._error_between_epochs: BaseException | None = None
        unaligned = plan.settings.checkpointed and plan.settings.unaligned_checkpoints
        self._slices = Slices(services.clock, LOOK_AROUND_UNALIGNED_S if unaligned else LOOK_AROUND_S)
        buffer_bytes = plan.settings.memory_buffer_bytes
        self.inbox = Inbox(buffer_bytes, services.directory)
        self.outbox = Outbox(buffer_bytes, services.directory)
        self._writers: list[EdgeWriter] = []
        self._counted: dict[int, CountedConsumer] = {}  # by edge, those inside the chain
        self._builder = ChainBuilder(plan, chain, subtask, services, self.outbox)
        self._operators = {node_id: self._builder.operator(node_id) for node_id in chain.nodes}
        self._roles = OperatorRoles(list(self._operators.values()))
        self.metrics = TaskMetrics([operator.context for operator in self._operators.values()])
        self._head = self._operators[chain.head]
        if isinstance(self._head, SourceOperator):
            self._head.hold_watermarks = self._hold_watermarks
        self._connect_outputs()
        self._edge_names = edge_names(plan)
        self._looks_for_unclaimed = False  # whether the next snapshot warns of restored state that is not registered
        edges = [edge for edge in plan.edges if edge.target == chain.head and edge.source not in chain.nodes]
        channels = [channel for edge in edges for channel in self._builder.channels(edge)]
        self._input = TaskInput(self.inbox, edges, channels, self._slices, self._check_cancelled, self._on_input_ended)

    @property
    def finished(self) -> bool:
        """Whether the input has ended and every operator has passed on the end."""
        return self._end.finished

    def _connect_outputs(self) -> None:
        for edge in self._plan.edges:
            if edge.source not in self._operators:
                continue
            output = self._operators[edge.source].output
            if edge.target in self._operators and self._plan.chained(edge):
                counted = self._counted[edge.id] = CountedConsumer(self._operators[edge.target])
                output.add(counted, edge.tag)
            else:
                writer = self._builder.writer(edge)
                self._writers.append(writer)
                output.add(writer, edge.tag)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def restore(self, share: TaskShare) -> None:
        """Restore every operator's state and the task's position at the cut; call it before `open`."""
        self._looks_for_unclaimed = True
        watermarks: list[tuple[Operator, int]] = []
        not_ended: set[int] = set()
        for node_id in reversed(self.chain.nodes):
            operator = self._operators[node_id]
            found = share.subtasks.get(operator.node.uid)
            if found is None:
                continue
            with restoring_state(operator, SerializationError, TypeMismatchError):
                state = self._restore_operator(operator, found, share)
                anew = self._edges_anew(found)
                if operator is self._head and state.task is not None and self._seek(state.task, state.finished, anew):
                    self._end.restored(isinstance(operator, SourceOperator), not_ended)
                self._restore_in_flight(state, found, anew)
            if not state.finished:
                not_ended.add(node_id)
            if state.task is not None:
                watermarks.append((operator, state.task.watermark))
        for operator, watermark in watermarks:
            # The last watermark holds only for a task that nothing can reach any more.
            if watermark < MAX_WATERMARK or self._end.ended_before:
                operator.restore_watermark(watermark)
        if self._end.ended_before:
            for node_id, operator in self._operators.items():
                if node_id not in not_ended:
                    operator.restore_ended()

    def _restore_operator(self, operator: Operator, found: SubtaskShare, share: TaskShare) -> RestoredSubtask:
        context = operator.context
        context.has_restored_state = found.has_state
        if context.keyed is not None and context.timers is not None:
            context.keyed.restore(_one_by_one(read_parts(share.store, share.root, found.keyed)))
            context.keyed.inventories.restored(found)
            context.timers.restore(read_parts(share.store, share.root, found.timers))
        elif found.keyed or found.timers or found.raw_keyed:
            raise IncompatibleStateError(
                "it was saved by key, but the operator's input is not keyed any more: call key_by(...) before it, or "
                "give the operator another uid()."
            )
        state = read_subtask(share.store, share.root, found, operator.name)
        if state.operator_state is not None:
            context.operator_state.restore(state.operator_state)
        raw_keyed = list(read_parts(share.store, share.root, found.raw_keyed))
        context.raw_inputs = RawInputs(raw_keyed, state.raw_operator)
        if isinstance(operator, Committing):
            operator.restore_committables(state.committables)
        else:
            refuse_committables(context, state.committables)
        if state.source is not None and isinstance(operator, SourceOperator):
            operator.restore_source(state.source, state.finished)
        return state

    def _edges_anew(self, found: SubtaskShare) -> frozenset[str]:
        """The names of edges whose channels begin anew: what they carry is not what they carried before."""
        senders = set(found.regrouped_senders)
        edges = self._plan.edges
        return frozenset(
            name for edge, name in self._edge_names.items() if self._plan.nodes[edges[edge].source].uid in senders
        )

    def _restore_in_flight(self, state: RestoredSubtask, found: SubtaskShare, anew: frozenset[str]) -> None:
        """Put back the records in flight; the valve must know its channels already."""
        if state.in_flight:
            edges = {name: edge for edge, name in self._edge_names.items() if edge in self._input.edges}
            writer_for = self._builder.redistributor
            restore = InFlightRestore(self._plan, self.subtask, edges, self._input.valve, writer_for, anew)
            self._input.restore_in_flight(state.in_flight, restore, len(found.task) if found.regrouped else None)

    def _seek(self, task: TaskState, finished: bool, anew: frozenset[str]) -> bool:
        """Take back the head's part of the cut. Returns whether the head's input had ended (I9)."""
        if task.details is not None:
            valve, writers, positions = tagged_loads(task.details)
            seek_valve(self._input.valve, self._edge_names, valve, anew)
            seek_writers(self._writers, self._edge_names, writers)
            for uid, operator in self._roles.positioned.items():
                if uid in positions:
                    operator.seek(positions[uid])
            finished = finished and self._input.valve.all_ended
        else:
            self._input.valve.current = task.watermark
        if not finished and self._input.valve.current == MAX_WATERMARK:
            self._input.valve.current = MIN_WATERMARK  # other senders than those that had ended
        return finished

    def _task_state(self, operator: Operator) -> TaskState:
        """The operator's watermark (a restore may chain it elsewhere); for the head, the task's position too."""
        watermark = operator.current_watermark
        if operator is not self._head:
            return TaskState(watermark)
        positions = {uid: each.position() for uid, each in self._roles.positioned.items()}
        details = [
            valve_position(self._input.valve, self._edge_names),
            writer_positions(self._writers, self._edge_names),
            {uid: position for uid, position in positions.items() if position is not None},
        ]
        return TaskState(watermark, self._input.valve.all_idle, tagged_dumps(details))

    def snapshot(self, order: CheckpointOrder) -> CapturedTask:
        """Capture the state of all operators, from tail to head (I2); the uploading thread writes it."""
        reach(CrashPoint.BEFORE_SNAPSHOT)
        if self._looks_for_unclaimed:
            self._looks_for_unclaimed = False
            for operator in self._operators.values():
                warn_unclaimed_state(operator.context)
        captured: list[OperatorSnapshotFutures] = []
        try:
            for node_id in reversed(self.chain.nodes):
                operator = self._operators[node_id]
                started = monotonic()
                if isinstance(operator, PreparesSnapshot):
                    operator.prepare_snapshot(order.id)
                futures = capture_operator(self._capture_input(operator), order)
                futures.sync_ms = (monotonic() - started) * 1000
                captured.append(futures)
        except SnapshotDeclinedError as declined:
            for futures in captured:
                declined.clean_up(futures.cancel)
            raise
        finally:
            self._barrier_passed(order)
        reach(CrashPoint.AFTER_SNAPSHOT)
        return CapturedTask(order, self.name, self.chain.id, self.subtask, captured, self.finished)

    def _capture_input(self, operator: Operator) -> CaptureInput:
        return CaptureInput(
            uid=operator.node.uid,
            name=operator.context.task_name,
            context=operator.context,
            user_snapshot=operator.snapshot_user_state if isinstance(operator, SnapshotParticipant) else lambda _: None,
            source=operator.source_state if isinstance(operator, SourceOperator) else lambda: None,
            task=partial(self._task_state, operator),
            committables=operator.committables if isinstance(operator, Committing) else lambda _: (),
            in_flight=partial(self._input.in_flight, self._edge_names) if operator is self._head else lambda: None,
        )

    def notify_complete(self, checkpoint_id: int, *, with_source: bool = True) -> None:
        """Tell the operators, from tail to head; without the source, if it waits for the commits of other tasks."""
        for node_id in reversed(self.chain.nodes):
            operator = self._operators[node_id]
            if with_source or not isinstance(operator, SourceOperator):
                self._notify_operator(operator, checkpoint_id)

    def notify_source_complete(self, checkpoint_id: int) -> None:
        """Tell the source, which has waited for the commits of other tasks."""
        self._notify_operator(self._head, checkpoint_id)

    @staticmethod
    def _notify_operator(operator: Operator, checkpoint_id: int) -> None:
        operator.context.checkpoint_completed(checkpoint_id)
        if isinstance(operator, SnapshotParticipant):
            operator.notify_complete(checkpoint_id)

    @property
    def has_source(self) -> bool:
        """Whether the chain begins with a source."""
        return isinstance(self._head, SourceOperator)

    @property
    def has_sink(self) -> bool:
        """Whether a sink is in the chain."""
        return any(operator.node.kind.is_sink for operator in self._operators.values())

    def has_committed(self, checkpoint_id: int) -> bool:
        """Whether the task's sinks have committed all output up to a checkpoint of which they were notified."""
        return all(sink.has_committed(checkpoint_id) for sink in self._roles.committing)

    def settle(self) -> None:
        """Let sinks commit everything: the job's last checkpoint was notified (I9)."""
        for sink in reversed(self._roles.committing):
            sink.settle()

    def skip_if_aborted(self, order: CheckpointOrder) -> bool:
        """Whether the checkpoint was aborted before its barrier came: then the barrier passes without a snapshot."""
        if not self._barriers.is_aborted(order.id):
            return False
        self._barrier_passed(order)
        return True

    def _barrier_passed(self, order: CheckpointOrder) -> None:
        self._barriers.passed(order.id)
        if isinstance(self._head, SourceOperator) and order.id == self._source_held_for:
            self._source_held_for = None
            self._head.release_after_cut()

    def notify_aborted(self, checkpoint_id: int) -> None:
        """Tell the operators, from tail to head."""
        self._barriers.aborted(checkpoint_id)
        for node_id in reversed(self.chain.nodes):
            operator = self._operators[node_id]
            operator.context.checkpoint_aborted(checkpoint_id)
            if isinstance(operator, SnapshotParticipant):
                operator.notify_aborted(checkpoint_id)

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self, share: TaskShare | None, restored_id: int | None, splits: Sequence[SourceSplit] = ()) -> None:
        """Restore the state of `share`, initialise the functions and open them, on the task's thread.

        `splits` are those that the source begins with if it has no state, else those that its state may lack.
        """
        if share is not None:
            reach(CrashPoint.BEFORE_RESTORE)
            self.restore(share)
            reach(CrashPoint.AFTER_RESTORE)
        if isinstance(self._head, ReaderSourceOperator):
            self._head.assign(splits)
        self.initialize(restored_id)
        self.open()

    def initialize(self, restored_id: int | None) -> None:
        """State is there; functions see it from tail to head, before any is opened."""
        for node_id in reversed(self.chain.nodes):
            operator = self._operators[node_id]
            if isinstance(operator, SnapshotParticipant):
                with restoring_state(operator):
                    operator.initialize_state(restored_id)
            warn_unread_raw_state(operator.context)

    def open(self) -> None:
        """Open the operators from tail to head (I2)."""
        for node_id in reversed(self.chain.nodes):
            operator = self._operators[node_id]
            with restoring_state(operator):
                operator.open()

    def close(self) -> list[tuple[str, BaseException]]:
        """Close the operators from tail to head; errors are told, by subtask, not raised."""
        errors: list[tuple[str, BaseException]] = []
        for node_id in reversed(self.chain.nodes):
            operator = self._operators[node_id]
            try:
                operator.close()
            except BaseException as error:  # a sys.exit() too: the others are to be closed
                errors.append((operator.context.task_name, error))
        return errors

    @property
    def source_uid(self) -> str:
        """The uid of the chain's head, by which the driver addresses splits."""
        return self._head.node.uid

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        """Read splits that the driver has discovered while the job runs."""
        if isinstance(self._head, ReaderSourceOperator):
            self._head.add_splits(splits)

    def cancel(self) -> None:
        """Leave the epoch at the next batch; called from another thread."""
        self._cancelled = True
        for operator in self._roles.cancellable:
            operator.cancel()

    # -- epochs -------------------------------------------------------------------------------------------------------

    def receive(self, header: ChunkHeader, row: bytes) -> None:
        """Put a chunk into the inbox, until the task's stage of the epoch; called from other threads."""
        self.inbox.put(header, row)

    def run_epoch(self, budget: EpochBudget) -> EpochOutcome:
        """This chain's part of an epoch: what is due by the clock, then the input, then flush (I4)."""
        if self._error_between_epochs is not None:
            raise self._error_between_epochs
        started = self._slices.now()
        received = self.inbox.counts()
        if not self.has_source and self._epoch_ended_ms is not None:
            self._note_quiet(self._upstream.isdisjoint(budget.backlogged), self._epoch_ended_ms)
        sunk_before = self._records_sunk()
        held_before = self._holds_end()
        self._on_processing_time()
        records_in = self._take_input(budget)
        dry = self._is_dry()
        if isinstance(self._head, SourceOperator):
            self._note_quiet(dry, self._services.clock.wall_ms())
        for listener in self._roles.epoch_listeners:
            listener.end_of_epoch()
        self._on_processing_time()
        if budget.checkpoint is not None and budget.checkpoint.drain:
            for operator in self._operators.values():
                operator.release_end()
        self._end.epoch_ended(held_before, self._holds_end())
        sent = self._end_epoch()
        self._epoch_ended_ms = self._services.clock.wall_ms()
        report = TaskReport(
            chain=self.chain.id,
            subtask=self.subtask,
            records_in=records_in,
            records_sunk=self._records_sunk() - sunk_before,
            watermark=self._operators[self.chain.nodes[-1]].current_watermark,
            finished=self.finished,
            busy_ms=(self._slices.now() - started) * 1000,
            in_flight=self.records_in_flight(),
            metrics=self.metrics.read_if_due(last=self.finished),
            aligned=self._head.aligned() if isinstance(self._head, ReaderSourceOperator) else {},
            passed=self._passed(),
            input_watermark=self._head.current_watermark,
            backlog=not dry,
            source_stage=self._head.stage_reached() if isinstance(self._head, ReaderSourceOperator) else None,
        )
        return EpochOutcome(report, sent, received, self._has_backlog() or bool(self.inbox.waiting))

    def _take_input(self, budget: EpochBudget) -> int:
        """Process the epoch's share of the input; return the number of its records."""
        if not isinstance(self._head, SourceOperator):
            return self._input.take(self._head, budget.leave_after_ms)
        if budget.checkpoint is not None:
            self._head.hold_for_cut()
            self._source_held_for = budget.checkpoint.id
        if isinstance(self._head, ReaderSourceOperator):
            self._head.align(budget.aligned)
            self._head.all_reached(budget.source_stages.get(self.chain.head))
        records_in = 0 if self._head.finished else self._pull(self._head, budget)
        if budget.checkpoint is not None and budget.checkpoint.drain and not self._head.finished:
            self._head.end_of_input()
            self._end.on(EndEvent.INPUT_ENDED)
        return records_in

    def _is_dry(self) -> bool:
        """Whether all input that was there is processed."""
        return self._head.is_dry() if isinstance(self._head, SourceOperator) else not self.inbox.waiting

    def _note_quiet(self, quiet: bool, now_ms: int) -> None:
        """Let strategies in the chain count the time in which nothing waits for them; a reader tells its own."""
        if isinstance(self._head, ReaderSourceOperator):
            self._head.note_quiet(quiet, now_ms)
        for operator in self._roles.idling:
            if not operator.has_reader:
                operator.note_quiet([WHOLE_SOURCE] if quiet else [], now_ms)

    def _hold_watermarks(self, held: bool) -> None:
        for operator in self._roles.idling:
            operator.hold_watermark(held)

    def _passed(self) -> dict[int, int]:
        """The records handed on over each edge inside the chain in this epoch."""
        passed = {edge: counted.records for edge, counted in self._counted.items() if counted.records}
        for counted in self._counted.values():
            counted.records = 0
        return passed

    def _records_sunk(self) -> int:
        return sum(operator.records_sunk for operator in self._operators.values())

    def _pull(self, source: SourceOperator, budget: EpochBudget) -> int:
        if self._end.ended_before:
            source.finished = True
            self._on_input_ended()
            return 0
        may_leave = budget.leave_after_ms is not None
        time_ms = budget.target_ms if budget.leave_after_ms is None else min(budget.target_ms, budget.leave_after_ms)
        deadline = self._slices.now() + time_ms / 1000
        pulled = source.pull(Allowance(budget.max_records, deadline, self._slices, lambda: self._cancelled, may_leave))
        self._check_cancelled()
        if source.finished:  # it has sent the last watermark and the end itself
            self._end.on(EndEvent.INPUT_ENDED)
        return pulled

    def _check_cancelled(self) -> None:
        if self._cancelled:
            raise JobCancelledError(f"{self.name} was cancelled")

    def records_in_flight(self) -> int:
        """Records that the task had no time for in the last epoch."""
        left = self._head.records_left if isinstance(self._head, SourceOperator) else 0
        return self.inbox.records_waiting() + left

    def _on_input_ended(self) -> None:
        match self._end.on(EndEvent.INPUT_ENDED):
            case EndAction.FINISH_OPERATORS:
                if self._head.current_watermark < MAX_WATERMARK:
                    self._head.process_watermark(MAX_WATERMARK)
                self._head.emit_end()
            case EndAction.RESEND_END:
                self._resend_end()

    def _holds_end(self) -> bool:
        """Whether an operator has not passed on the end of the input, because it waits for calls of its own."""
        return any(operator.end_held for operator in self._operators.values())

    def _resend_end(self) -> None:
        """Send the end again after a restore: tasks with another parallelism than before have no memory of it."""
        for writer in self._writers:
            if self._end.resends(self._plan.edges[writer.edge.edge].source):
                writer.emit_watermark(MAX_WATERMARK)
                writer.emit_end()

    def _on_processing_time(self) -> None:
        if self.finished:
            return
        now_ms = self._services.clock.wall_ms()
        for operator in self._roles.timed:
            operator.on_processing_time(now_ms)

    def _end_epoch(self) -> list[EdgeCount]:
        if not self._checkpointed:
            for operator in self._operators.values():
                if operator.context.keyed is not None:
                    operator.context.keyed.forget_changes()
        sent: list[EdgeCount] = []
        for writer in self._writers:
            writer.flush()
            sent.extend(writer.end_epoch())
        return sent

    # -- between epochs -----------------------------------------------------------------------------------------------

    def has_input(self) -> bool:
        """Whether the source has something for the next epoch."""
        return isinstance(self._head, SourceOperator) and not self.finished and self._head.available()

    def _has_backlog(self) -> bool:
        """Whether the next epoch should follow at once; a reader may say 'available' although its poll was empty."""
        source = self._head
        if not isinstance(source, SourceOperator) or self.finished or source.finished:
            return False
        return source.held_back or (source.available() and not source.ran_dry)

    def fail_next_epoch(self, error: BaseException) -> None:
        """Raise an error that occurred between two epochs in the next one."""
        self._error_between_epochs = error

    def polls(self) -> bool:
        """Whether the task's thread has to poll `has_input`."""
        return isinstance(self._head, SourceOperator) and not self.finished and not self._head.finished

    def next_due_ms(self) -> int | None:
        """Wall-clock time at which some operator wants an epoch."""
        if self.finished:
            return None
        due = [time for operator in self._roles.timed if (time := operator.next_due_ms()) is not None]
        return min(due, default=None)
