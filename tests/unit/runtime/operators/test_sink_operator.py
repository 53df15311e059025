"""Writer and committer in one operator: order of calls, contents of snapshots, the committer's answers (I18)."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint.manifest import SubtaskState
from rekindle.datastream.connectors import CommitterInitContext, WriterInitContext
from rekindle.errors import CommitError, JobCancelledError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.snapshot import SnapshotDeclinedError
from tests.unit.runtime.operators.sink_samples import Sinking, Subtask, later

# -- order of calls ----------------------------------------------------------------------------------------------------


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


def test_a_writer_hears_of_complete_checkpoints_after_its_commits_and_of_aborted_ones(directory: str) -> None:
    sink = Sinking()
    task = Subtask(directory, sink).begin()
    heard: list[Any] = []
    task.operator._writer.notify_checkpoint_complete = lambda number: heard.append((number, list(sink.committed)))
    task.operator._writer.notify_checkpoint_aborted = heard.append
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_complete(1)
    task.operator.notify_aborted(2)
    assert heard == [(1, [("a",)]), 2]


def test_a_writer_learns_who_it_is(directory: str) -> None:
    """I14: a writer gets timeline and attempt, for the names of its staged files."""
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


# -- uncommitted committables ------------------------------------------------------------------------------------------


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
    task.operator.notify_complete(1)  # late: it covers nothing that came after its barrier
    assert sink.committed == [("a",)]
    task.write("c")
    assert committables(task, task.checkpoint(3)) == [("b",), ("c",)]
    task.operator.notify_complete(3)
    assert sink.committed == [("a",), ("b",), ("c",)]
    assert task.checkpoint(4).committables == []


def test_an_aborted_checkpoint_and_a_savepoint_leave_their_committables_to_the_next(directory: str) -> None:
    """I17, I19: neither commits, so the next checkpoint commits for them."""
    sink = Sinking()
    task = Subtask(directory, sink).begin()
    task.write("a")
    task.checkpoint(1)
    task.operator.notify_aborted(1)
    task.write("b")
    task.checkpoint(2)  # a savepoint: it sends no notification
    task.checkpoint(3)
    assert sink.committed == []
    task.operator.notify_complete(3)
    assert sink.committed == [("a",), ("b",)]


def test_a_sink_has_committed_a_checkpoint_when_none_of_its_committables_waits_for_a_retry(directory: str) -> None:
    task = Subtask(directory, Sinking(answers=[later, None])).begin()
    task.write("a")
    task.checkpoint(1)
    assert task.operator.has_committed(0)
    assert not task.operator.has_committed(1)
    task.operator.notify_complete(1)  # to be tried again
    assert not task.operator.has_committed(1)
    task.operator.notify_complete(2)
    assert task.operator.has_committed(2)


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


# -- the end of input --------------------------------------------------------------------------------------------------


def test_the_end_is_flushed_and_committed_with_the_final_checkpoint(directory: str) -> None:
    """I9: the final checkpoint holds the last records."""
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
