"""Writer and committer in one operator: what is called when, what a snapshot holds, what is committed (I18)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rekindle.checkpoint.manifest import FileRef, SubtaskState
from rekindle.checkpoint.parts import OperatorSnapshotFutures, write_subtask
from rekindle.checkpoint.statefile import InlineWriter, StateFileWriter, read_pieces
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.common import Configuration
from rekindle.datastream.connectors import CommittableFile, CommitterInitContext, TypedSerializer, WriterInitContext
from rekindle.errors import (
    CheckpointError,
    CommitError,
    CorruptCheckpointError,
    GraphError,
    IncompatibleStateError,
    JobCancelledError,
    SerializationError,
)
from rekindle.graph.nodes import OperatorKind, OperatorNode
from rekindle.graph.settings import JobSettings
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.context import Accumulators, JobIdentity, OperatorContext
from rekindle.runtime.metrics import TaskMetricGroup
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.operators.sink_writer import WriterOperator
from rekindle.runtime.snapshot import CaptureInput, SnapshotDeclinedError, capture_operator
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.testing import ManualClock

# -- a sink that writes down what happens to it; its methods count by name ---------------------------------------------


@dataclass
class Sinking:
    """Hands over what it wrote as one committable: a tuple, or whatever `hand_over` makes of the records."""

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


# -- one subtask's life ------------------------------------------------------------------------------------------------


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
                checkpoint_interval_ms=1000 if self.checkpointed else -1,
                commit_retries=self.retries,
                commit_retry_delay_ms=1,
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

    def barrier(self, checkpoint_id: int) -> OperatorSnapshotFutures:
        self.operator.prepare_snapshot(checkpoint_id)
        source = CaptureInput(
            "sink",
            "Sink: Writer (1/2)",
            self.context,
            self.operator.snapshot_user_state,
            committables=self.operator.committables,
        )
        return capture_operator(source, CheckpointOrder(checkpoint_id, 0))

    def upload(self, futures: OperatorSnapshotFutures, checkpoint_id: int, inline: int = 0) -> SubtaskState:
        writer = StateFileWriter(self.store, "t", f"shared/{checkpoint_id}.state", inline_bytes=inline)
        return write_subtask(writer, futures)

    def checkpoint(self, checkpoint_id: int) -> SubtaskState:
        return self.upload(self.barrier(checkpoint_id), checkpoint_id)


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path)


# -- order -------------------------------------------------------------------------------------------------------------


def test_at_a_barrier_the_writer_is_flushed_asked_and_snapshotted_and_committed_after_completion(
    directory: str,
) -> None:
    """I18: nothing is committed before the checkpoint is complete."""
    sink = Sinking()
    task = Subtask(directory, sink).begin()
    task.write("a", "b", timestamps=[1, 2])
    task.operator.process_watermark(2)
    task.checkpoint(1)
    assert sink.log == [
        "create_writer",
        ("write", "a", 1),
        ("write", "b", 2),
        ("watermark", 2),
        ("flush", False),
        ("prepare_commit",),
        ("snapshot_state", 1),
    ]
    assert sink.committed == []
    task.operator.notify_complete(1)
    assert sink.committed == [("a", "b")]
    task.operator.notify_complete(1)
    assert sink.committed == [("a", "b")]
    task.operator.close()
    assert sink.log[-2:] == [("close writer",), "close committer"]


def test_a_writer_learns_who_it_is(directory: str) -> None:
    """I14: timeline and attempt are there for staging names."""
    sink = Sinking()
    task = Subtask(directory, sink, subtask=1).begin(restored_id=5)
    committer, writer = sink.contexts
    assert isinstance(committer, CommitterInitContext)
    assert isinstance(writer, WriterInitContext)
    assert writer.staging_prefix() == "00000001-0a1b2c3d-7-1"
    assert (writer.job_name, writer.job_id, writer.task_name) == ("orders", "id", "Sink: Writer (2/2)")
    assert (writer.get_index_of_this_subtask(), writer.get_number_of_parallel_subtasks()) == (1, 2)
    assert (writer.get_attempt_number(), writer.get_restored_checkpoint_id()) == (1, 5)
    assert writer.get_metrics_group() is task.context.metrics
    assert os.path.isdir(writer.directory)
    assert Path(writer.directory).parent == Path(directory)


def test_a_record_that_cannot_be_written_is_named(directory: str) -> None:
    sink = Sinking(failing="write")
    with pytest.raises(OperatorFailure) as failure:
        Subtask(directory, sink).begin().write("a", "b")
    assert (failure.value.record, str(failure.value.__cause__)) == ("a", "write failed")


# -- what waits is in every snapshot -----------------------------------------------------------------------------------


def committables(task: Subtask, state: SubtaskState) -> list[Any]:
    restored = Sinking()
    other = Subtask(task.directory, restored, store=task.store)
    other.begin(99, state)
    return restored.committed


def test_all_that_is_not_committed_is_in_every_snapshot(directory: str) -> None:
    """I18: what was not yet committed is carried into the next."""
    sink = Sinking()
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.checkpoint(1)
    task.write("b")
    second = task.checkpoint(2)
    assert committables(task, second) == [("a",), ("b",)]
    task.operator.notify_complete(1)  # late: it says nothing about what came after its barrier
    assert sink.committed == [("a",)]
    task.write("c")
    assert committables(task, task.checkpoint(3)) == [("b",), ("c",)]
    task.operator.notify_complete(3)
    assert sink.committed == [("a",), ("b",), ("c",)]
    assert task.checkpoint(4).committables == []


def test_an_aborted_checkpoint_and_a_savepoint_leave_their_committables_to_the_next(directory: str) -> None:
    """I17, I19."""
    sink = Sinking()
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_aborted(1)
    task.write("b")
    task.checkpoint(2)  # a savepoint: nobody is told
    task.checkpoint(3)
    assert sink.committed == []
    task.operator.notify_complete(3)
    assert sink.committed == [("a",), ("b",)]


def test_a_snapshot_that_fails_declines_the_checkpoint_and_loses_nothing(directory: str) -> None:
    """I19: the records were handed over by then."""
    sink = Sinking(failing="snapshot_state")
    task = Subtask(directory, sink).begin()
    task.write("a")
    with pytest.raises(SnapshotDeclinedError, match=r"Could not complete snapshot 1 for operator Sink: Writer \(1/2\)"):
        task.checkpoint(1)
    sink.failing = ""
    task.checkpoint(2)
    task.operator.notify_complete(2)
    assert sink.committed == [("a",)]


@pytest.mark.parametrize("step", ["flush", "prepare_commit"])
def test_what_may_have_lost_records_fails_the_job_not_the_checkpoint(directory: str, step: str) -> None:
    task = Subtask(directory, Sinking(failing=step)).begin()
    task.write("a")
    with pytest.raises(OperatorFailure) as failure:
        task.checkpoint(1)
    assert str(failure.value.__cause__) == f"{step} failed"


# -- the committer's answers -------------------------------------------------------------------------------------------


def test_a_commit_that_is_wanted_again_is_carried_on_and_retried_with_the_next_checkpoint(directory: str) -> None:
    sink = Sinking(answers=[later, None])
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_complete(1)
    assert sink.committed == []
    task.write("b")
    assert committables(task, task.checkpoint(2)) == [("a",), ("b",)]
    task.operator.notify_complete(2)
    assert sink.requests == [(("a",), 0), (("a",), 1), (("b",), 0)]
    assert sink.committed == [("a",), ("b",)]


def test_a_part_that_is_left_takes_the_place_of_the_whole(directory: str) -> None:
    sink = Sinking(answers=[lambda request: request.update_and_retry_later(request.get_committable()[1:])])
    task = Subtask(directory, sink).begin()
    task.write("a", "b")
    task.checkpoint(1)
    task.operator.notify_complete(1)
    assert committables(task, task.checkpoint(2)) == [("b",)]
    task.operator.notify_complete(2)
    assert sink.committed == [("b",)]


def test_a_failure_with_a_known_reason_is_logged_and_dropped(directory: str, caplog: pytest.LogCaptureFixture) -> None:
    sink = Sinking(answers=[lambda request: request.signal_failed_with_known_reason(OSError("too large"))])
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.checkpoint(1)
    with caplog.at_level(logging.ERROR, "rekindle.sink"):
        task.operator.notify_complete(1)
    assert "Sink: Writer (1/2) drops ('a',): OSError('too large')" in caplog.text
    assert task.checkpoint(2).committables == []


@pytest.mark.parametrize("way", ["signal", "raise"])
def test_an_unknown_failure_fails_the_job_and_a_restart_commits_again(directory: str, way: str) -> None:
    def answer(request: Any) -> None:
        if way == "raise":
            raise OSError("connection lost")
        request.signal_failed_with_unknown_reason(OSError("connection lost"))

    sink = Sinking(answers=[None, answer])
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.checkpoint(1)
    task.write("b")
    state = task.checkpoint(2)
    with pytest.raises(OperatorFailure) as failure:
        task.operator.notify_complete(2)
    assert isinstance(failure.value.__cause__, OSError if way == "raise" else CommitError)
    assert "connection lost" in str(failure.value.__cause__)
    assert committables(task, state) == [("a",), ("b",)]


def test_what_was_committed_before_counts_as_committed(directory: str) -> None:
    sink = Sinking(answers=[lambda request: request.signal_already_committed()])
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_complete(1)
    assert task.checkpoint(2).committables == []
    counted = [
        task.context.metrics.counter(f"{name}Committables").get_count() for name in ("alreadyCommitted", "successful")
    ]
    assert counted == [1, 0]


# -- the end -----------------------------------------------------------------------------------------------------------


def test_the_end_is_flushed_and_committed_with_the_final_checkpoint(directory: str) -> None:
    """I9."""
    sink = Sinking()
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.operator.finish()
    assert sink.log[-2:] == [("flush", True), ("prepare_commit",)]
    assert sink.committed == []
    task.checkpoint(1)
    assert ("flush", False) not in sink.log
    task.operator.notify_complete(1)
    assert sink.committed == [("a",)]


def test_without_checkpoints_the_end_commits(directory: str) -> None:
    sink = Sinking(answers=[later])
    task = Subtask(directory, sink, checkpointed=False).begin()
    task.write("a")
    task.operator.finish()
    assert (sink.committed, sink.sweeps) == ([("a",)], 1)


def test_the_last_checkpoints_commits_are_retried_before_the_job_ends(directory: str) -> None:
    sink = Sinking(answers=[later, later])
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_complete(1)
    assert sink.committed == []
    task.operator.settle()
    assert sink.committed == [("a",)]


def test_a_commit_that_never_succeeds_fails_the_job_with_a_sentence(directory: str) -> None:
    sink = Sinking(answers=[later] * 10)
    task = Subtask(directory, sink, retries=3).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_complete(1)
    with pytest.raises(OperatorFailure) as failure:
        task.operator.settle()
    assert isinstance(failure.value.__cause__, CommitError)
    assert str(failure.value.__cause__).startswith(
        "Sink: Writer (1/2) could not commit 1 of its committables in 4 tries: ('a',)."
    )
    assert len(sink.answers) == 10 - 1 - 4


def test_a_cancelled_job_waits_for_no_retry(directory: str) -> None:
    sink = Sinking(answers=[later] * 10)
    task = Subtask(directory, sink, retries=1_000_000).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.cancel()
    with pytest.raises(JobCancelledError):
        task.operator.settle()
    assert sink.committed == []


# -- after a restore ---------------------------------------------------------------------------------------------------


def test_a_restore_commits_again_before_the_writer_exists(directory: str) -> None:
    """I18: the restart counts as a try."""
    first = Sinking(answers=[later])
    task = Subtask(directory, first).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_complete(1)
    task.write("b")
    state = task.checkpoint(2)
    again = Sinking(answers=[later])
    restored = Subtask(directory, again, store=task.store).begin(2, state)
    assert again.log == ["commit", "commit", "create_writer"]
    assert again.requests == [(("a",), 2), (("b",), 1), (("a",), 3)]
    assert again.committed == [("b",), ("a",)]
    assert restored.checkpoint(3).committables == []


def test_a_restore_that_cannot_commit_fails_before_any_record(directory: str) -> None:
    task = Subtask(directory, Sinking()).begin()
    task.write("a")
    state = task.checkpoint(1)
    with pytest.raises(OperatorFailure) as failure:
        Subtask(directory, Sinking(answers=[later] * 10), store=task.store).begin(1, state)
    assert "could not commit 1 of its committables in 3 tries" in str(failure.value.__cause__)


def test_a_restore_from_the_final_checkpoint_makes_no_writer(directory: str) -> None:
    """I9: it only commits."""
    task = Subtask(directory, Sinking()).begin()
    task.write("a")
    task.operator.finish()
    state = task.checkpoint(1)
    sink = Sinking()
    restored = Subtask(directory, sink, store=task.store).begin(1, state, ended=True)
    restored.operator.process_watermark(2**63 - 1)
    restored.checkpoint(2)
    restored.operator.notify_complete(2)
    restored.operator.finish()
    restored.operator.close()
    assert sink.log == ["commit", "close committer"]
    assert sink.committed == [("a",)]


def test_staging_is_swept_once_by_the_first_subtask_when_a_checkpoint_is_complete(directory: str) -> None:
    """I18: by then every subtask has committed what the restored checkpoint held."""
    first, second = Sinking(), Sinking()
    tasks = [Subtask(directory, first).begin(), Subtask(directory, second, subtask=1).begin()]
    for checkpoint_id in (1, 2):
        for task in tasks:
            task.checkpoint(checkpoint_id)
        assert first.sweeps == checkpoint_id - 1
        for task in tasks:
            task.operator.notify_complete(checkpoint_id)
    assert (first.sweeps, second.sweeps) == (1, 0)


# -- state of writers, and how things become bytes ---------------------------------------------------------------------


@dataclass
class Offset:
    file: str
    length: int


class Resuming(Sinking):
    """Its writer has state of a declared type, and its committables are dataclasses too."""

    restored: Sequence[Any] = ()

    def create_writer(self, context: WriterInitContext) -> Writer:
        return ResumingWriter(self)

    def restore_writer(self, context: WriterInitContext, recovered_state: list[Offset]) -> Writer:
        self.restored = recovered_state
        return ResumingWriter(self)

    def get_writer_state_serializer(self) -> TypedSerializer:
        return TypedSerializer(Offset)

    def get_committable_serializer(self) -> TypedSerializer:
        return TypedSerializer(Offset)


class ResumingWriter(Writer):
    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return [Offset("open", checkpoint_id), Offset("other", 0)]


def test_writers_go_on_from_their_state_and_serializers_make_the_bytes(directory: str) -> None:
    task = Subtask(directory, Resuming(hand_over=lambda records: Offset(records[0], len(records)))).begin()
    task.write("a", "b")
    state = task.checkpoint(1)
    sink = Resuming()
    Subtask(directory, sink, store=task.store).begin(1, state)
    assert sink.restored == [Offset("open", 1), Offset("other", 0)]
    assert sink.committed == [Offset("a", 2)]


def test_state_without_restore_writer_is_refused(directory: str) -> None:
    task = Subtask(directory, Resuming()).begin()
    state = task.checkpoint(1)
    with pytest.raises(OperatorFailure) as failure:
        Subtask(directory, Sinking(), store=task.store).begin(1, state)
    assert isinstance(failure.value.__cause__, GraphError)
    assert "has no restore_writer(context, recovered_state)" in str(failure.value.__cause__)


def test_a_committable_that_is_no_plain_data_is_refused_never_pickled(directory: str) -> None:
    """I20."""
    task = Subtask(directory, Sinking(hand_over=lambda records: Offset("a", 1))).begin()
    task.write("a")
    with pytest.raises(OperatorFailure) as failure:
        task.checkpoint(1)
    assert isinstance(failure.value.__cause__, SerializationError)
    message = str(failure.value.__cause__)
    assert message.startswith("A committable of Sink: Writer (1/2) has no place in a checkpoint: ")
    assert message.endswith("Or give the sink a get_committable_serializer().")


@pytest.mark.parametrize("allowed", [False, True])
def test_committables_that_nobody_would_commit_are_refused_unless_that_is_allowed(
    directory: str, allowed: bool
) -> None:
    class Plain:
        def create_writer(self, context: WriterInitContext) -> Any:
            return SimpleNamespace(write=lambda element, context: None, flush=lambda end_of_input: None)

    task = Subtask(directory, Sinking()).begin()
    task.write("a")
    state = task.checkpoint(1)
    other = Subtask(directory, Plain(), store=task.store)
    other.context.settings = replace(other.context.settings, allow_non_restored_state=allowed)
    if allowed:
        assert other.begin(1, state).checkpoint(2).committables == []
        return
    with pytest.raises(OperatorFailure) as failure:
        other.begin(1, state)
    assert isinstance(failure.value.__cause__, IncompatibleStateError)
    assert "holds 1 committables for Sink: Writer (1/2), which commits nothing" in str(failure.value.__cause__)


def test_committables_without_a_committer_are_refused(directory: str) -> None:
    class NoCommitter:
        def create_writer(self, context: WriterInitContext) -> Writer:
            return Writer(Sinking())

    with pytest.raises(OperatorFailure) as failure:
        Subtask(directory, NoCommitter()).begin()
    assert "has prepare_commit(), but its sink has no create_committer(context)" in str(failure.value.__cause__)


# -- files -------------------------------------------------------------------------------------------------------------


class Filing(Sinking):
    """Hands over files; commits by reading them."""

    contents: list[bytes]

    def __init__(self, folder: Path, content: bytes = b"some bytes", **settings: Any) -> None:
        super().__init__(**settings)
        self.folder, self.content, self.contents, self.number = folder, content, [], 0
        self.hand_over = self._file

    def _file(self, records: list[Any]) -> CommittableFile:
        self.number += 1
        path = self.folder / f"staged-{self.number}"
        path.write_bytes(self.content)
        return CommittableFile(str(path), metadata={"records": records})

    def create_committer(self, context: CommitterInitContext) -> SinkingCommitter:
        return FilingCommitter(self)


class FilingCommitter(SinkingCommitter):
    def commit(self, requests: list[Any]) -> None:
        super().commit(requests)
        for request in requests:
            self.sink.contents.append(Path(request.get_committable().path).read_bytes())  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [0, 10, 20 << 20])
def test_a_files_content_is_in_the_checkpoint_and_comes_back_as_a_local_file(tmp_path: Path, size: int) -> None:
    """I18: the writer's machine may be gone."""
    gone, new = tmp_path / "gone", tmp_path / "new"
    gone.mkdir()
    content = os.urandom(1 << 10) * (size >> 10) if size > 10 else b"x" * size
    task = Subtask(str(gone), Filing(gone, content)).begin()
    task.write("a", "b")
    state = task.checkpoint(1)
    (gone / "staged-1").unlink()
    sink = Filing(new)
    Subtask(str(new), sink, store=task.store).begin(1, state)
    (file,) = sink.committed
    assert (file.name, file.metadata, sink.contents) == ("staged-1", {"records": ["a", "b"]}, [content])
    assert file.path.startswith(str(new))
    assert not Path(file.path).exists(), "its commit is over"


def test_a_committed_file_is_removed_when_no_snapshot_reads_it_any_more(tmp_path: Path) -> None:
    sink = Filing(tmp_path)
    task = Subtask(str(tmp_path), sink).begin()
    staged = tmp_path / "staged-1"
    task.write("a")
    first = task.barrier(1)
    task.upload(first, 1)
    savepoint = task.barrier(2)  # holds it too, and is not yet written
    task.operator.notify_complete(1)
    assert len(sink.committed) == 1
    assert staged.exists()
    state = task.upload(savepoint, 2)
    assert len(state.committables) == 1
    task.checkpoint(3)
    task.operator.notify_complete(3)
    assert not staged.exists()


def test_a_committed_file_does_not_outlive_the_task(tmp_path: Path) -> None:
    task = Subtask(str(tmp_path), Filing(tmp_path)).begin()
    task.write("a")
    task.barrier(1)
    task.barrier(2)
    task.operator.notify_complete(1)
    task.operator.close()
    assert not (tmp_path / "staged-1").exists()


def test_a_file_that_was_moved_away_fails_the_upload_with_a_sentence(tmp_path: Path) -> None:
    task = Subtask(str(tmp_path), Filing(tmp_path, b"x" * 100)).begin()
    task.write("a")
    snapshot = task.barrier(1)
    (tmp_path / "staged-1").unlink()
    with pytest.raises(CheckpointError, match=r"staged-1, which waits to be committed, is gone"):
        task.upload(snapshot, 1)


def test_a_large_file_does_not_fit_into_a_checkpoint_in_memory(tmp_path: Path) -> None:
    task = Subtask(str(tmp_path), Filing(tmp_path, b"x" * 1000)).begin()
    task.write("a")
    parts = task.barrier(1)
    with pytest.raises(CheckpointError, match=r"set execution\.checkpointing\.dir"):
        write_subtask(InlineWriter("Sink: Writer (1/2)", 500), parts)


def test_a_damaged_file_in_the_checkpoint_is_refused(tmp_path: Path) -> None:
    """I16."""
    task = Subtask(str(tmp_path), Filing(tmp_path, b"x" * 10_000)).begin()
    task.write("a")
    state = task.checkpoint(1)
    (blob,) = state.committables
    assert isinstance(blob, FileRef)
    path = f"t/{blob.path}"
    data = bytearray(task.store.read(path))
    data[-1] ^= 1
    task.store.put(path, bytes(data))
    sink = Filing(tmp_path)
    with pytest.raises(OperatorFailure) as failure:
        Subtask(str(tmp_path), sink, store=task.store).begin(1, state)
    assert isinstance(failure.value.__cause__, CorruptCheckpointError)
    assert sink.committed == []


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[begin : begin + size] for begin in range(0, len(data), size))


def test_a_committable_is_read_whatever_pieces_it_comes_in(tmp_path: Path) -> None:
    task = Subtask(str(tmp_path), Filing(tmp_path, b"content")).begin()
    task.write("a")
    (stored,) = task.barrier(1).committables
    data = b"".join(stored)
    assert len(stored) == len(data)
    for size in (1, 3, 7, len(data)):
        sink = Filing(tmp_path)
        other = Subtask(str(tmp_path), sink)
        other.operator.restore_committables([pieces(data, size)])
        other.begin(1)
        assert sink.contents == [b"content"]
