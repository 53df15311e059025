"""A sink that notes every call of its writers and committers, and one subtask of its operator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from rekindle.checkpoint.manifest import SubtaskState
from rekindle.checkpoint.parts import CapturedOperator, write_subtask
from rekindle.checkpoint.statefile import StateFileWriter, read_pieces
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.common import Configuration
from rekindle.datastream.connectors import CommitterInitContext, WriterInitContext
from rekindle.graph.nodes import OperatorKind, OperatorNode
from rekindle.graph.settings import CheckpointPolicy, CommitRetries, JobSettings
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.context import Accumulators, JobIdentity, OperatorContext
from rekindle.runtime.operators.sink_writer import WriterOperator
from rekindle.runtime.snapshot import CaptureInput, capture_operator
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.task_metrics import TaskMetricGroup
from rekindle.testing import ManualClock


@dataclass
class Sinking:
    """Hands over its records as one committable: a tuple, or the result of `hand_over`."""

    log: list[Any] = field(default_factory=list)
    committed: list[Any] = field(default_factory=list)
    requests: list[tuple[Any, int]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)  # called with each request, one after the other
    contexts: list[Any] = field(default_factory=list)
    failing: str = ""
    sweeps: int = 0
    hand_over: Any = tuple

    def create_writer(self, context: WriterInitContext) -> Writer:
        self.contexts.append(context)
        self.log.append("create_writer")
        return Writer(self)

    def create_committer(self, context: CommitterInitContext) -> SinkingCommitter:
        self.contexts.append(context)
        return SinkingCommitter(self)


class Writer:
    def __init__(self, sink: Sinking) -> None:
        self.sink = sink
        self.records: list[Any] = []

    def _note(self, *what: Any) -> None:
        self.sink.log.append(what)
        if self.sink.failing == what[0]:
            raise OSError(f"{what[0]} failed")

    def write(self, element: Any, context: Any) -> None:
        self._note("write", element, context.timestamp())
        self.records.append(element)

    def flush(self, end_of_input: bool) -> None:
        self._note("flush", end_of_input)

    def prepare_commit(self) -> list[Any]:
        self._note("prepare_commit")
        records, self.records = self.records, []
        return [self.sink.hand_over(records)] if records else []

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        self._note("snapshot_state", checkpoint_id)
        return []

    def write_watermark(self, watermark: int) -> None:
        self._note("watermark", watermark)

    def close(self) -> None:
        self._note("close writer")


class SinkingCommitter:
    def __init__(self, sink: Sinking) -> None:
        self.sink = sink

    def commit(self, requests: list[Any]) -> None:
        self.sink.log.append("commit")
        for request in requests:
            self.sink.requests.append((request.get_committable(), request.get_number_of_retries()))
            answer = self.sink.answers.pop(0) if self.sink.answers else None
            if answer is None:
                self.sink.committed.append(request.get_committable())
            else:
                answer(request)

    def sweep(self) -> None:
        self.sink.sweeps += 1

    def close(self) -> None:
        self.sink.log.append("close committer")


def later(request: Any) -> None:
    request.retry_later()


@dataclass
class Subtask:
    """An operator as its task drives it."""

    directory: str
    sink: Any
    checkpointed: bool = True
    subtask: int = 0
    retries: int = 2
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        node = OperatorNode(0, "uid", None, "Sink: Writer", OperatorKind.SINK, None, 2, 128, None)
        self.context = OperatorContext(
            node=node,
            subtask=self.subtask,
            attempt=1,
            clock=ManualClock(),
            accumulators=Accumulators(),
            metrics=TaskMetricGroup(ManualClock(), ("job",)),
            keyed=None,
            timers=None,
            operator_state=OperatorStateBackend(self.subtask, allow_pickle=False),
            batch=False,
            job=JobIdentity("orders", "id", "00000001-0a1b2c3d", 7),
            directory=self.directory,
            settings=replace(
                JobSettings.of(Configuration()),
                checkpoints=CheckpointPolicy(1000 if self.checkpointed else -1),
                commits=CommitRetries(self.retries, 1),
            ),
        )
        self.operator = WriterOperator(node, self.context, self.sink)

    def begin(self, restored_id: int | None = None, state: SubtaskState | None = None, ended: bool = False) -> Subtask:
        if state is not None:
            if state.operator_state is not None:
                self.context.operator_state.restore(b"".join(read_pieces(self.store, "t", state.operator_state)))
            self.operator.restore_committables([read_pieces(self.store, "t", blob) for blob in state.committables])
        if ended:
            self.operator.restore_ended()
        self.operator.initialize_state(restored_id)
        self.operator.open()
        return self

    def write(self, *records: Any, timestamps: list[int] | None = None) -> None:
        self.operator.process_batch(list(records), timestamps)

    def barrier(self, checkpoint_id: int) -> CapturedOperator:
        self.operator.prepare_snapshot(checkpoint_id)
        source = CaptureInput(
            "sink",
            "Sink: Writer (1/2)",
            self.context,
            self.operator.snapshot_user_state,
            committables=self.operator.committables,
        )
        return capture_operator(source, CheckpointOrder(checkpoint_id, 0))

    def upload(self, futures: CapturedOperator, checkpoint_id: int, inline: int = 0) -> SubtaskState:
        writer = StateFileWriter(self.store, "t", f"shared/{checkpoint_id}.state", inline_bytes=inline)
        return write_subtask(writer, futures)

    def checkpoint(self, checkpoint_id: int) -> SubtaskState:
        return self.upload(self.barrier(checkpoint_id), checkpoint_id)
