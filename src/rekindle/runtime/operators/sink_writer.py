"""The operator of `sink_to`: a writer and its committer (I18).

At a barrier the operator calls `flush(False)` and `prepare_commit()`, then, as part of the snapshot,
`snapshot_state(id)`. Committables wait in `Commits` until a checkpoint that holds them is complete. After a restore the
committables of the checkpoint are committed again before `open` returns.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

from rekindle.checkpoint.committables import StoredCommittable
from rekindle.common.typeinfo import Types
from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.crash_points import CrashPoint, reach
from rekindle.datastream.connectors.sink_api import CommitterInitContext, InitContext, SinkWriter, WriterInitContext
from rekindle.datastream.state import ListStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.errors import GraphError, JobCancelledError
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.commits import Commits, PlainSerializer
from rekindle.runtime.context import OperatorContext, user_timestamp
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import OperatorFailure, failed_record
from rekindle.runtime.operators.roles import (
    Cancellable,
    Committing,
    PreparesSnapshot,
    SnapshotParticipant,
    refuse_committables,
)
from rekindle.runtime.snapshot import SnapshotContext

#: The name of the operator state that holds the writers' state, each element as bytes.
_WRITER_STATE = "sink-writer"

T = TypeVar("T")
ContextT = TypeVar("ContextT", bound=InitContext)


class _WriterContext(SinkWriter.Context):
    """The context of a writer."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.current_timestamp = NO_TIMESTAMP

    def timestamp(self) -> int | None:
        return user_timestamp(self.current_timestamp)

    def current_watermark(self) -> int:
        return self._operator.current_watermark


class WriterOperator(Operator, SnapshotParticipant, PreparesSnapshot, Committing, Cancellable):
    """Runs the writer and the committer of a `Sink`. Their optional methods are recognised by name."""

    def __init__(self, node: OperatorNode, context: OperatorContext, sink: Any) -> None:
        super().__init__(node, context)
        self._sink = sink
        self._has_committer = callable(getattr(sink, "create_committer", None))
        self._writer: Any = None
        self._committer: Any = None
        self._commits: Commits | None = None
        self._prepare_commit: Callable[..., Any] | None = None
        self._snapshot_state: Callable[..., Any] | None = None
        self._write_watermark: Callable[..., Any] | None = None
        self._restored: list[Iterator[bytes]] = []
        self._restored_id: int | None = None
        self._finished = False
        self._swept = False
        self._cancelled = threading.Event()
        self._files = count()
        self._directory = os.path.join(context.directory, f"sink-{node.id}-{context.subtask}")

    # -- life ---------------------------------------------------------------------------------------------------------

    def restore_committables(self, stored: list[Iterator[bytes]]) -> None:
        if not self._has_committer:
            refuse_committables(self.context, stored)
        self._restored = stored

    def restore_ended(self) -> None:
        """Commit only: no record will be written any more (I9)."""
        self._finished = True

    def initialize_state(self, restored_id: int | None) -> None:
        self._restored_id = restored_id
        descriptor = reserved(ListStateDescriptor(_WRITER_STATE, Types.PRIMITIVE_ARRAY(Types.BYTE())))
        self._writer_states = self.context.operator_state.get_list_state(descriptor)

    def open(self) -> None:
        """Create the committer, commit the committables of the restored checkpoint, then create the writer."""
        self._context = _WriterContext(self)
        self._records = self.context.metrics.counter("numRecordsSend")
        if self._has_committer:
            self._open_committer()
        if not self._finished:
            self._open_writer()

    def _open_committer(self) -> None:
        context, settings = self.context, self.context.settings
        self._committer = self._call_user(self._sink.create_committer, self._init_context(CommitterInitContext))
        self._commits = Commits(
            name=context.task_name,
            serializer=self._serializer("get_committable_serializer"),
            commit=self._committer.commit,
            metrics=context.metrics,
            pause=self._cancelled.wait,
            retries=settings.commits.most_retries,
            retry_delay_s=settings.commits.delay_ms / 1000,
        )
        if self._restored_id is None:
            return
        self._call_user(self._commits.restore, self._restored, self._new_path)
        self._restored = []
        reach(CrashPoint.BEFORE_RECOMMIT)
        self._call_user(self._commits.settle)
        reach(CrashPoint.AFTER_RECOMMIT)

    def _open_writer(self) -> None:
        init = self._init_context(WriterInitContext)
        self._state_serializer = self._serializer("get_writer_state_serializer")
        states = [self._state_serializer.deserialize(data) for data in self._writer_states.get()]
        self._writer = writer = self._restored_writer(init, states) if states else self._new_writer(init)
        self._write = writer.write
        self._prepare_commit = _method(writer, "prepare_commit")
        self._snapshot_state = _method(writer, "snapshot_state")
        watermarks = _method(writer, "write_watermark")
        ignored = getattr(type(writer), "write_watermark", None) is SinkWriter.write_watermark
        self._write_watermark = None if ignored else watermarks
        if self._prepare_commit is not None and self._commits is None:
            raise OperatorFailure(self.name) from GraphError(
                f"The writer of {self.context.task_name} has prepare_commit(), but its sink has no "
                "create_committer(context): nothing would be committed."
            )

    def _new_writer(self, init: WriterInitContext) -> Any:
        return self._call_user(self._sink.create_writer, init)

    def _restored_writer(self, init: WriterInitContext, states: list[Any]) -> Any:
        restore = _method(self._sink, "restore_writer")
        if restore is None:
            raise OperatorFailure(self.name) from GraphError(
                f"The checkpoint holds state of the writer of {self.context.task_name}, but the sink has no "
                "restore_writer(context, recovered_state)."
            )
        return self._call_user(restore, init, states)

    def _init_context(self, kind: type[ContextT]) -> ContextT:
        context, job = self.context, self.context.job
        os.makedirs(self._directory, exist_ok=True)
        return kind(
            subtask=context.subtask,
            parallelism=context.node.parallelism,
            job_name=job.name,
            job_id=job.id,
            task_name=context.task_name,
            uid=context.node.uid,
            timeline=job.timeline,
            attempt=job.attempt,
            claimed_ms=job.claimed_ms,
            restarts=context.attempt,
            restored_checkpoint_id=self._restored_id,
            checkpoint_interval_ms=context.settings.checkpoints.interval_ms if context.checkpointed else None,
            incomplete_checkpoints=context.settings.checkpoints.incomplete,
            directory=self._directory,
            metric_group=context.metrics,
        )

    def _serializer(self, method: str) -> Any:
        maker = getattr(self._sink, method, None)
        return self._call_user(maker) if callable(maker) else PlainSerializer()

    def _new_path(self) -> str:
        return os.path.join(self._directory, f"restored-{next(self._files)}")

    def finish(self) -> None:
        """Write the last records; the final checkpoint commits them, or this call if there is none (I9)."""
        if self._finished:
            return
        self._call_user(self._writer.flush, True)
        self._collect_committables()
        self._finished = True
        only_checkpoints_commit = getattr(self._sink, "only_checkpoints_commit", False)
        if self._commits is not None and not self.context.checkpointed and not only_checkpoints_commit:
            self._call_user(self._commits.settle)
            self._sweep()

    def cancel(self) -> None:
        """Stop waiting for the next retry of a commit."""
        self._cancelled.set()

    def close(self) -> None:
        """Close the writer, then the committer, even if the writer's `close` fails."""
        try:
            _close(self._writer)
        finally:
            _close(self._committer)
            if self._commits is not None:
                self._commits.close()

    # -- data ---------------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        write, context = self._write, self._context
        self.records_sunk += len(records)
        self._records.inc(len(records))
        remaining = iter(records)
        try:
            if timestamps is None:
                context.current_timestamp = NO_TIMESTAMP
                for record in remaining:
                    write(record, context)
            else:
                for record, context.current_timestamp in zip(remaining, timestamps, strict=True):
                    write(record, context)
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error

    def process_watermark(self, watermark: int) -> None:
        super().process_watermark(watermark)
        if self._write_watermark is not None:
            self._call_user(self._write_watermark, watermark)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Flush the writer and collect its committables. An error here may have lost records, so it fails the job."""
        if not self._finished:
            self._call_user(self._writer.flush, False)
            self._collect_committables()
        if self._commits is not None:
            self._commits.barrier(checkpoint_id)

    def _collect_committables(self) -> None:
        if self._prepare_commit is not None and self._commits is not None:
            committables = self._call_user(self._prepare_commit)
            self._call_user(self._commits.hand_over, list(committables or ()))

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        """Snapshot the writer's state, each element by itself, so that any subtask can restore it."""
        if self._writer is not None and self._snapshot_state is not None:
            states = self._snapshot_state(context.get_checkpoint_id())
            self._writer_states.update([self._state_serializer.serialize(state) for state in states or ()])

    def committables(self, checkpoint_id: int) -> list[StoredCommittable]:
        return self._commits.snapshot(checkpoint_id) if self._commits is not None else []

    def notify_complete(self, checkpoint_id: int) -> None:
        if self._commits is not None:
            self._call_user(self._commits.completed, checkpoint_id)
            self._sweep()
        self._notify_writer("notify_checkpoint_complete", checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        """Keep the committables of an aborted checkpoint: the next checkpoint holds them too."""
        self._notify_writer("notify_checkpoint_aborted", checkpoint_id)

    def _notify_writer(self, method: str, checkpoint_id: int) -> None:
        notify = _method(self._writer, method)
        if notify is not None:
            self._call_user(notify, checkpoint_id)

    def has_committed(self, checkpoint_id: int) -> bool:
        return self._commits is None or self._commits.has_committed(checkpoint_id)

    def settle(self) -> None:
        if self._commits is not None:
            self._call_user(self._commits.settle)

    def _sweep(self) -> None:
        """Let the committer of subtask 0 sweep once: all subtasks are open and have committed what they restored."""
        if self._swept:
            return
        self._swept = True
        sweep = _method(self._committer, "sweep")
        if self.context.subtask == 0 and sweep is not None:
            self._call_user(sweep)

    def _call_user(self, call: Callable[..., T], *arguments: Any) -> T:
        try:
            return call(*arguments)
        except JobCancelledError:
            raise
        except Exception as error:
            raise OperatorFailure(self.name) from error


def _method(target: Any, name: str) -> Callable[..., Any] | None:
    method = getattr(target, name, None)
    return method if callable(method) else None


def _close(target: Any) -> None:
    closer = _method(target, "close")
    if closer is not None:
        closer()
