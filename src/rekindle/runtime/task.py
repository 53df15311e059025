"""One task: subtask i of a chain, its operators, inputs and outputs. Runs on one thread; knows nothing of sockets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.crash_points import CrashPoint, reach
from rekindle.datastream.connectors.base import SourceSplit
from rekindle.graph.nodes import Chain, JobPlan
from rekindle.protocol import CheckpointOrder, EdgeCount, TaskReport
from rekindle.runtime.build_chain import ChainBuilder, OperatorRoles, SlotServices
from rekindle.runtime.end_of_input import EndAction, EndEvent, EndOfInput
from rekindle.runtime.exchange.chunk import ChunkHeader
from rekindle.runtime.exchange.inbox import Inbox
from rekindle.runtime.exchange.outbox import Outbox
from rekindle.runtime.exchange.writers import EdgeWriter
from rekindle.runtime.operators.output import CountedConsumer
from rekindle.runtime.restore_checks import restoring_state
from rekindle.runtime.snapshot import CapturedTask
from rekindle.runtime.task_head import EpochBudget, Head, InputHead, SourceHead
from rekindle.runtime.task_input import (
    LOOK_AROUND_S,
    LOOK_AROUND_UNALIGNED_S,
    Cancellation,
    Slices,
    TaskInput,
)
from rekindle.runtime.task_metrics import TaskMetrics
from rekindle.runtime.task_snapshots import TaskShare, TaskSnapshots

#: The most stack frames of an operator of a chain, and of everything else, the user's own calls included.
_FRAMES_PER_OPERATOR: Final = 8
_FRAMES: Final = 1000


def _allow_calls_through(operators: int) -> None:
    """Chained operators call each other: a long chain needs a deeper stack than Python allows at first."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES + _FRAMES_PER_OPERATOR * operators))


@dataclass(frozen=True)
class EpochOutcome:
    """The report of a task's epoch, and its counts of records per channel."""

    report: TaskReport
    sent: list[EdgeCount]
    received: list[EdgeCount]
    more: bool


class Task:
    """Builds the operators of a chain for one subtask and runs epochs through them."""

    def __init__(self, plan: JobPlan, chain: Chain, subtask: int, services: SlotServices) -> None:
        _allow_calls_through(len(chain.nodes))
        self.chain = chain
        self.subtask = subtask
        self._end = EndOfInput()
        self._plan = plan
        self._clock = services.clock
        self._epoch_ended_ms: int | None = None
        self._error_between_epochs: BaseException | None = None
        unaligned = plan.settings.epochs.leave_after_ms is not None
        self._slices = Slices(services.clock, LOOK_AROUND_UNALIGNED_S if unaligned else LOOK_AROUND_S)
        buffer_bytes = plan.settings.exchange.memory_buffer_bytes
        self.inbox = Inbox(buffer_bytes, services.directory)
        self.outbox = Outbox(buffer_bytes, services.directory)
        self._builder = ChainBuilder(plan, chain, subtask, services, self.outbox)
        self.name = self._builder.task_name
        self._cancellation = Cancellation(self.name)
        self._operators = self._builder.operators()
        self._roles = OperatorRoles(list(self._operators.values()))
        self.metrics = TaskMetrics([operator.context for operator in self._operators.values()])
        self._writers: list[EdgeWriter] = []
        self._counted: dict[int, CountedConsumer] = {}  # by edge, those inside the chain
        self._connect_outputs()
        task_input = self._make_input()
        self._head: Head = self._make_head(task_input)
        self._snapshots = TaskSnapshots(self._builder, self._roles, self._head, task_input, self._writers, self._end)

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

    def _make_input(self) -> TaskInput:
        chain, second = self.chain, self._roles.second_input
        edges = [edge for edge in self._plan.edges if edge.target == chain.head and edge.source not in chain.nodes]
        channels = [channel for edge in edges for channel in self._builder.channels(edge)]
        slices, cancellation = self._slices, self._cancellation
        return TaskInput(self.inbox, edges, channels, slices, cancellation, self._on_input_ended, second)

    def _make_head(self, task_input: TaskInput) -> Head:
        roles = self._roles
        if roles.source is None:
            upstream = self._plan.upstream(self.chain.head)
            return InputHead(roles.operators[0], task_input, roles.times_without_reader, upstream)
        shared = self._slices, self._clock, self._end, self._cancellation
        return SourceHead(roles.source, roles.times_without_reader, *shared, self._on_input_ended)

    @property
    def finished(self) -> bool:
        """Whether the input has ended and every operator has passed on the end."""
        return self._end.finished

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def snapshot(self, order: CheckpointOrder) -> CapturedTask:
        """Capture the state of all operators, from tail to head (I2); the uploading thread writes it."""
        return self._snapshots.capture(order)

    def skip_if_aborted(self, order: CheckpointOrder) -> bool:
        """Whether the checkpoint was aborted before its barrier came: then the barrier passes without a snapshot."""
        return self._snapshots.skip_if_aborted(order)

    def notify_complete(self, checkpoint_id: int, *, with_source: bool = True) -> None:
        """Tell the operators, from tail to head; without the source, if it waits for the commits of other tasks."""
        self._snapshots.notify_complete(checkpoint_id, with_source=with_source)

    def notify_source_complete(self, checkpoint_id: int) -> None:
        """Tell the source, which has waited for the commits of other tasks."""
        self._snapshots.notify_source_complete(checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        """Tell the operators, from tail to head."""
        self._snapshots.notify_aborted(checkpoint_id)

    @property
    def has_source(self) -> bool:
        """Whether the chain begins with a source."""
        return self._roles.source is not None

    @property
    def has_sink(self) -> bool:
        """Whether a sink is in the chain."""
        return any(operator.node.kind.is_sink for operator in self._roles.operators)

    def has_committed(self, checkpoint_id: int) -> bool:
        """Whether the task's sinks have committed all output up to a checkpoint of which they were notified."""
        return all(sink.has_committed(checkpoint_id) for sink in self._roles.committing.values())

    def settle(self) -> None:
        """Let sinks commit everything: the job's last checkpoint was notified (I9)."""
        for sink in reversed(self._roles.committing.values()):
            sink.settle()

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self, share: TaskShare | None, restored_id: int | None, splits: Sequence[SourceSplit] = ()) -> None:
        """Restore the state of `share`, initialise the functions and open them, on the task's thread.

        `splits` are those that the source begins with if it has no state, else those that its state may lack.
        """
        if share is not None:
            reach(CrashPoint.BEFORE_RESTORE)
            self._snapshots.restore(share)
            reach(CrashPoint.AFTER_RESTORE)
        self._head.assign(splits)
        self._snapshots.initialize(restored_id)
        self.open()

    def open(self) -> None:
        """Open the operators from tail to head (I2)."""
        for operator in reversed(self._roles.operators):
            with restoring_state(operator):
                operator.open()

    def close(self) -> list[tuple[str, BaseException]]:
        """Close the operators from tail to head; errors are told, by subtask, not raised."""
        errors: list[tuple[str, BaseException]] = []
        for operator in reversed(self._roles.operators):
            try:
                operator.close()
            except BaseException as error:  # a sys.exit() too: the others are to be closed
                errors.append((operator.context.task_name, error))
        return errors

    @property
    def source_uid(self) -> str:
        """The uid of the chain's head, by which the driver addresses splits."""
        return self._head.operator.node.uid

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        """Read splits that the driver has discovered while the job runs."""
        self._head.add_splits(splits)

    def cancel(self) -> None:
        """Leave the epoch at the next batch; called from another thread."""
        self._cancellation.asked = True
        for operator in self._roles.cancellable:
            operator.cancel()

    # -- epochs -------------------------------------------------------------------------------------------------------

    def receive(self, header: ChunkHeader, chunk: bytes) -> None:
        """Put a chunk into the inbox, until the task's stage of the epoch; called from other threads."""
        self.inbox.put(header, chunk)

    def run_epoch(self, budget: EpochBudget) -> EpochOutcome:
        """This chain's part of an epoch: what is due by the clock, then the input, then flush (I4)."""
        if self._error_between_epochs is not None:
            raise self._error_between_epochs
        started = self._slices.now()
        received = self.inbox.counts()
        head = self._head
        head.look_before(budget.backlogged, self._epoch_ended_ms)
        sunk_before = self._records_sunk()
        held_before = self._holds_end()
        self._on_processing_time()
        records_in = head.take(budget)
        dry = self._is_dry()
        head.look_after(dry)
        for listener in self._roles.epoch_listeners:
            listener.end_of_epoch()
        self._on_processing_time()
        if budget.checkpoint is not None and budget.checkpoint.drain:
            for operator in self._roles.operators:
                operator.release_end()
        self._end.epoch_ended(held_before, self._holds_end())
        sent = self._end_epoch()
        self._epoch_ended_ms = self._clock.wall_ms()
        report = TaskReport(
            chain=self.chain.id,
            subtask=self.subtask,
            records_in=records_in,
            records_sunk=self._records_sunk() - sunk_before,
            watermark=self._roles.operators[-1].current_watermark,
            finished=self.finished,
            busy_ms=(self._slices.now() - started) * 1000,
            in_flight=self.records_in_flight(),
            metrics=self.metrics.read_if_due(last=self.finished),
            aligned=head.aligned(),
            passed=self._passed(),
            input_watermark=head.operator.current_watermark,
            backlog=not dry,
            source_stage=head.source_stage(),
        )
        return EpochOutcome(report, sent, received, head.has_backlog())

    def _is_dry(self) -> bool:
        """Whether all input that was there is processed."""
        return self._head.is_dry()

    def _passed(self) -> dict[int, int]:
        """The records handed on over each edge inside the chain in this epoch."""
        passed = {edge: counted.records for edge, counted in self._counted.items() if counted.records}
        for counted in self._counted.values():
            counted.records = 0
        return passed

    def _records_sunk(self) -> int:
        return sum(operator.records_sunk for operator in self._roles.operators)

    def records_in_flight(self) -> int:
        """Records that the task had no time for in the last epoch."""
        return self._head.records_left()

    def _on_input_ended(self) -> None:
        match self._end.on(EndEvent.INPUT_ENDED):
            case EndAction.FINISH_OPERATORS:
                operator = self._head.operator
                if operator.current_watermark < MAX_WATERMARK:
                    operator.process_watermark(MAX_WATERMARK)
                operator.emit_end()
            case EndAction.RESEND_END:
                self._resend_end()

    def _holds_end(self) -> bool:
        """Whether an operator has not passed on the end of the input, because it waits for calls of its own."""
        return any(operator.end_held for operator in self._roles.operators)

    def _resend_end(self) -> None:
        """Send the end again after a restore: tasks with another parallelism than before have no memory of it."""
        for writer in self._writers:
            if self._end.resends(self._plan.edges[writer.edge.edge].source):
                writer.emit_watermark(MAX_WATERMARK)
                writer.emit_end()

    def _on_processing_time(self) -> None:
        if self.finished:
            return
        now_ms = self._clock.wall_ms()
        for operator in self._roles.timed:
            operator.on_processing_time(now_ms)

    def _end_epoch(self) -> list[EdgeCount]:
        if not self._plan.settings.checkpointed:
            for operator in self._roles.operators:
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
        return self._head.has_input()

    def fail_next_epoch(self, error: BaseException) -> None:
        """Raise an error that occurred between two epochs in the next one."""
        self._error_between_epochs = error

    def polls(self) -> bool:
        """Whether the task's thread has to poll `has_input`."""
        return self._head.polls()

    def next_due_ms(self) -> int | None:
        """Wall-clock time at which some operator wants an epoch."""
        if self.finished:
            return None
        due = [time for operator in self._roles.timed if (time := operator.next_due_ms()) is not None]
        return min(due, default=None)
