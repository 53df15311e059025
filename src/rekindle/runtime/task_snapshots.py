"""A task's part in checkpoints: its operators' state is restored, captured at a barrier, and they are notified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rekindle.checkpoint.manifest import BY_KEY_GROUP
from rekindle.checkpoint.part_formats import TaskState
from rekindle.checkpoint.parts import CapturedOperator
from rekindle.checkpoint.read_state import RestoredSubtask, read_parts, read_subtask
from rekindle.checkpoint.rescale import SubtaskShare
from rekindle.checkpoint.store.port import Store
from rekindle.common.watermark_strategy import MAX_WATERMARK, MIN_WATERMARK
from rekindle.crash_points import CrashPoint, reach
from rekindle.errors import IncompatibleStateError, SerializationError, TypeMismatchError
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.barriers import Barriers
from rekindle.runtime.build_chain import ChainBuilder, OperatorRoles
from rekindle.runtime.end_of_input import EndOfInput
from rekindle.runtime.exchange.writers import EdgeWriter
from rekindle.runtime.in_flight import InFlightRestore
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.roles import refuse_committables
from rekindle.runtime.raw_streams import RawInputs
from rekindle.runtime.restore_checks import restoring_state, warn_unclaimed_state, warn_unread_raw_state
from rekindle.runtime.snapshot import CapturedTask, CaptureInput, SnapshotDeclinedError, capture_operator
from rekindle.runtime.task_head import Head
from rekindle.runtime.task_input import TaskInput
from rekindle.runtime.task_position import edge_names, seek_valve, seek_writers, valve_position, writer_positions
from rekindle.serde import tagged_dumps, tagged_loads


@dataclass(frozen=True)
class TaskShare:
    """A task's share of a checkpoint, by operator uid; references in it are relative to `root` in `store`."""

    store: Store
    root: str
    subtasks: Mapping[str, SubtaskShare]


def _one_by_one(parts: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Parts of keyed state, as they are taken."""
    for part in parts:
        reach(CrashPoint.BEFORE_PART)
        yield part
        reach(CrashPoint.AFTER_PART)


class TaskSnapshots:
    """The state of one task's operators in checkpoints, from tail to head (I2)."""

    def __init__(
        self,
        builder: ChainBuilder,
        roles: OperatorRoles,
        head: Head,
        task_input: TaskInput,
        writers: Sequence[EdgeWriter],
        end: EndOfInput,
    ) -> None:
        self._builder = builder
        self._plan = builder.plan
        self._roles = roles
        self._head = head
        self._input = task_input
        self._writers = writers
        self._end = end
        self._tail_to_head = roles.operators[::-1]
        self._edge_names = edge_names(builder.plan)
        self._barriers = Barriers()
        self._looks_for_unclaimed = False  # whether the next snapshot warns of restored state that is not registered

    # -- restore ------------------------------------------------------------------------------------------------------

    def restore(self, share: TaskShare) -> None:
        """Restore every operator's state and the task's position at the cut; call it before the operators open."""
        self._looks_for_unclaimed = True
        watermarks: list[tuple[Operator, int]] = []
        not_ended: set[int] = set()
        for operator in self._tail_to_head:
            found = share.subtasks.get(operator.node.uid)
            if found is None:
                continue
            with restoring_state(operator, SerializationError, TypeMismatchError):
                state = self._restore_operator(operator, found, share)
                anew = self._edges_anew(found)
                is_head = operator is self._head.operator
                if is_head and state.task is not None and self._seek(state.task, state.finished, anew):
                    self._end.restored(self._roles.source is not None, not_ended)
                self._restore_in_flight(state, found, anew)
            if not state.finished:
                not_ended.add(operator.node.id)
            if state.task is not None:
                watermarks.append((operator, state.task.watermark))
        for operator, watermark in watermarks:
            # The last watermark holds only for a task that nothing can reach any more.
            if watermark < MAX_WATERMARK or self._end.ended_before:
                operator.restore_watermark(watermark)
        if self._end.ended_before:
            for operator in self._roles.operators:
                if operator.node.id not in not_ended:
                    operator.restore_ended()

    def _restore_operator(self, operator: Operator, found: SubtaskShare, share: TaskShare) -> RestoredSubtask:
        context = operator.context
        context.has_restored_state = found.has_state
        if context.keyed is not None and context.timers is not None:
            context.keyed.restore(_one_by_one(read_parts(share.store, share.root, found.own.keyed)))
            context.keyed.inventories.restored(found.own)
            context.timers.restore(read_parts(share.store, share.root, found.own.timers))
        elif found.own.holds(*BY_KEY_GROUP):
            raise IncompatibleStateError(
                "it was saved by key, but the operator's input is not keyed any more: call key_by(...) before it, or "
                "give the operator another uid()."
            )
        state = read_subtask(share.store, share.root, found, operator.name)
        if state.operator_state is not None:
            context.operator_state.restore(state.operator_state)
        raw_keyed = list(read_parts(share.store, share.root, found.own.raw_keyed))
        context.raw_inputs = RawInputs(raw_keyed, state.raw_operator)
        committing = self._roles.committing.get(operator.node.uid)
        if committing is not None:
            committing.restore_committables(state.committables)
        else:
            refuse_committables(context, state.committables)
        source = self._roles.source
        if state.source is not None and source is not None and source is operator:
            source.restore_source(state.source, state.finished)
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
            builder = self._builder
            live, writer_for = self._input.valve, builder.redistributor
            restore = InFlightRestore(self._plan, builder.subtask, edges, live, writer_for, anew)
            old_subtasks = len(found.saved("task", of_all=True)) if found.regrouped else None
            self._input.restore_in_flight(state.in_flight, restore, old_subtasks)

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

    def initialize(self, restored_id: int | None) -> None:
        """State is there; functions see it before any is opened."""
        for operator in self._tail_to_head:
            participant = self._roles.participants.get(operator.node.uid)
            if participant is not None:
                with restoring_state(operator):
                    participant.initialize_state(restored_id)
            warn_unread_raw_state(operator.context)

    # -- capture ------------------------------------------------------------------------------------------------------

    def skip_if_aborted(self, order: CheckpointOrder) -> bool:
        """Whether the checkpoint was aborted before its barrier came: then the barrier passes without a snapshot."""
        if not self._barriers.is_aborted(order.id):
            return False
        self._barrier_passed(order)
        return True

    def capture(self, order: CheckpointOrder) -> CapturedTask:
        """Capture the state of all operators; the uploading thread writes it."""
        reach(CrashPoint.BEFORE_SNAPSHOT)
        if self._looks_for_unclaimed:
            self._looks_for_unclaimed = False
            for operator in self._roles.operators:
                warn_unclaimed_state(operator.context)
        captured: list[CapturedOperator] = []
        try:
            for operator in self._tail_to_head:
                captured.append(self._capture_operator(operator, order))
        except SnapshotDeclinedError as declined:
            for futures in captured:
                declined.clean_up(futures.cancel)
            raise
        finally:
            self._barrier_passed(order)
        reach(CrashPoint.AFTER_SNAPSHOT)
        builder = self._builder
        return CapturedTask(order, builder.task_name, builder.chain.id, builder.subtask, captured, self._end.finished)

    def _capture_operator(self, operator: Operator, order: CheckpointOrder) -> CapturedOperator:
        now = self._builder.services.clock.monotonic
        started = now()
        preparing = self._roles.preparing.get(operator.node.uid)
        if preparing is not None:
            preparing.prepare_snapshot(order.id)
        futures = capture_operator(self._capture_input(operator), order)
        futures.sync_ms = (now() - started) * 1000
        return futures

    def _capture_input(self, operator: Operator) -> CaptureInput:
        roles, uid = self._roles, operator.node.uid
        participant, committing = roles.participants.get(uid), roles.committing.get(uid)
        source = roles.source if roles.source is operator else None
        is_head = operator is self._head.operator
        return CaptureInput(
            uid=uid,
            name=operator.context.task_name,
            context=operator.context,
            user_snapshot=participant.snapshot_user_state if participant is not None else lambda _: None,
            source=source.source_state if source is not None else lambda: None,
            task=partial(self._task_state, operator),
            committables=committing.committables if committing is not None else lambda _: (),
            in_flight=partial(self._input.in_flight, self._edge_names) if is_head else lambda: None,
        )

    def _task_state(self, operator: Operator) -> TaskState:
        """The operator's watermark (a restore may chain it elsewhere); for the head, the task's position too."""
        watermark = operator.current_watermark
        if operator is not self._head.operator:
            return TaskState(watermark)
        positions = {uid: each.position() for uid, each in self._roles.positioned.items()}
        details = [
            valve_position(self._input.valve, self._edge_names),
            writer_positions(self._writers, self._edge_names),
            {uid: position for uid, position in positions.items() if position is not None},
        ]
        return TaskState(watermark, self._input.valve.all_idle, tagged_dumps(details))

    def _barrier_passed(self, order: CheckpointOrder) -> None:
        self._barriers.passed(order.id)
        self._head.barrier_passed(order.id)

    # -- notifications ------------------------------------------------------------------------------------------------

    def notify_complete(self, checkpoint_id: int, *, with_source: bool) -> None:
        """Tell the operators; without the source, if it waits for the commits of other tasks."""
        for operator in self._tail_to_head:
            if with_source or operator is not self._roles.source:
                self._notify_operator(operator, checkpoint_id)

    def notify_source_complete(self, checkpoint_id: int) -> None:
        """Tell the source, which has waited for the commits of other tasks."""
        self._notify_operator(self._head.operator, checkpoint_id)

    def _notify_operator(self, operator: Operator, checkpoint_id: int) -> None:
        operator.context.checkpoint_completed(checkpoint_id)
        participant = self._roles.participants.get(operator.node.uid)
        if participant is not None:
            participant.notify_complete(checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        """Tell the operators."""
        self._barriers.aborted(checkpoint_id)
        for operator in self._tail_to_head:
            operator.context.checkpoint_aborted(checkpoint_id)
            participant = self._roles.participants.get(operator.node.uid)
            if participant is not None:
                participant.notify_aborted(checkpoint_id)
