"""Checkpoint statistics have the numbers that Flink's REST API shows for the same events."""

from __future__ import annotations

import math

import pytest

from rekindle.common.checkpoint_statistics import (
    NO_BUFFERS,
    CheckpointCounts,
    CheckpointStatus,
    OperatorSnapshot,
    RestoredCheckpoint,
    SubtaskSnapshot,
    Summary,
    percentile,
)
from rekindle.coordinator.checkpoints.statistics import CheckpointRecorder
from rekindle.coordinator.checkpoints.types import CheckpointKind

Kind = CheckpointKind
KEYED, SOURCE = "90bea66de1c231edf33913ecd54406c1", "cbc357ccb763df2852fee8c4fc7d55f2"
WALL_MS = 1_794_771_185_999


def recorder(history: int = 10) -> CheckpointRecorder:
    return CheckpointRecorder({KEYED: 2, SOURCE: 2}, history)


def flinks_checkpoint_19() -> CheckpointRecorder:
    """The events behind Flink's answer about checkpoint 19 of its job."""
    recorded = recorder()
    recorded.triggered(19, Kind.CHECKPOINT, now_ms=500.4, wall_ms=WALL_MS)
    recorded.acknowledged(19, SOURCE, SubtaskSnapshot(0), now_ms=507.4)
    recorded.acknowledged(19, SOURCE, SubtaskSnapshot(1), now_ms=509.4)
    for index, size, async_ms, now_ms in ((1, 4692, 1, 518.4), (0, 4643, 3, 519.4)):
        snapshot = SubtaskSnapshot(
            index,
            start_delay_ms=5,
            async_duration_ms=async_ms,
            checkpointed_size=size,
            state_size=size,
            operators=(OperatorSnapshot("counter", size, size, 0, async_ms),),
        )
        recorded.acknowledged(19, KEYED, snapshot, now_ms)
    recorded.completed(19, "file:/data/ckpt/chk-19")
    return recorded


def test_a_completed_checkpoint_has_flinks_numbers():
    checkpoint = flinks_checkpoint_19().overview().latest_completed
    assert checkpoint is not None
    assert (checkpoint.id, checkpoint.status, checkpoint.checkpoint_type) == (
        19,
        CheckpointStatus.COMPLETED,
        "CHECKPOINT",
    )
    assert (checkpoint.trigger_timestamp_ms, checkpoint.latest_ack_timestamp_ms) == (WALL_MS, 1_794_771_186_018)
    assert (checkpoint.checkpointed_size, checkpoint.state_size, checkpoint.end_to_end_duration_ms) == (9335, 9335, 19)
    assert (checkpoint.num_subtasks, checkpoint.num_acknowledged_subtasks) == (4, 4)
    assert (checkpoint.external_path, checkpoint.discarded) == ("file:/data/ckpt/chk-19", False)
    assert (checkpoint.is_savepoint, checkpoint.savepoint_format) == (False, None)


def test_the_tasks_and_subtasks_of_a_completed_checkpoint_have_flinks_numbers():
    checkpoint = flinks_checkpoint_19().overview().find(19)
    assert checkpoint is not None
    keyed, source = checkpoint.task(KEYED), checkpoint.task(SOURCE)
    assert keyed is not None
    assert source is not None
    assert (keyed.latest_ack_timestamp_ms, keyed.end_to_end_duration_ms) == (1_794_771_186_018, 19)
    assert (source.latest_ack_timestamp_ms, source.end_to_end_duration_ms, source.state_size) == (
        1_794_771_186_008,
        9,
        0,
    )
    summary = keyed.summary
    assert (summary.state_size.min, summary.state_size.max, summary.state_size.avg) == (4643, 4692, 4667)
    assert math.isnan(summary.state_size.p50)
    assert (summary.end_to_end_duration_ms.min, summary.end_to_end_duration_ms.avg) == (18, 18)
    assert (summary.async_duration_ms.max, summary.async_duration_ms.avg) == (3, 2)
    assert (summary.start_delay_ms.avg, summary.alignment_duration_ms.max) == (5, 0)
    first = keyed.subtasks[0]
    assert first is not None
    assert (first.ack_timestamp_ms, first.end_to_end_duration_ms) == (1_794_771_186_018, 19)
    assert first.snapshot.operators == (OperatorSnapshot("counter", 4643, 4643, 0, 3),)
    assert checkpoint.task("nobody") is None


def test_a_failed_savepoint_has_flinks_numbers():
    recorded = recorder()
    recorded.triggered(17, Kind.SAVEPOINT, now_ms=0, wall_ms=1_794_771_181_592, savepoint_format="CANONICAL")
    recorded.failed(17, "An Exception occurred while triggering the checkpoint. IO-problem detected.", now_ms=44)
    failed = recorded.overview().latest_failed
    assert failed is not None
    assert (failed.status, failed.checkpoint_type) == (CheckpointStatus.FAILED, "SAVEPOINT")
    assert failed.savepoint_format == "CANONICAL"
    assert (failed.latest_ack_timestamp_ms, failed.end_to_end_duration_ms) == (-1, 44)
    assert failed.failure_timestamp_ms == 1_794_771_181_636
    assert failed.num_acknowledged_subtasks == 0
    keyed = failed.task(KEYED)
    assert keyed is not None
    assert (keyed.end_to_end_duration_ms, keyed.subtasks, keyed.summary.state_size.max) == (-1, (None, None), 0)


def test_percentiles_are_estimated_as_flink_does():
    # The median, the 90th and the maximum, to the last digit, as Flink's API printed them for 18 checkpoints.
    durations = [19, 19, 19, 20, 33, 52, 61, 66, 69, 71, 73, 74, 78, 86, 101, 119, 134, 318]
    assert percentile(durations, 90.0) == 152.40000000000026
    assert percentile(durations, 50.0) == 70.0
    assert percentile(durations, 95.0) == percentile(durations, 99.9) == 318.0
    assert percentile([6198], 50.0) == 6198.0
    assert percentile([1, 9], 0.1) == 1.0
    assert math.isnan(percentile([], 50.0))


def test_the_summary_covers_checkpoints_and_savepoints():
    recorded = recorder()
    for checkpoint, (kind, size) in enumerate([(Kind.CHECKPOINT, 10), (Kind.SAVEPOINT, 70), (Kind.CHECKPOINT, 21)], 1):
        recorded.triggered(checkpoint, kind, now_ms=0, wall_ms=0)
        recorded.acknowledged(checkpoint, KEYED, SubtaskSnapshot(0, checkpointed_size=size, state_size=100), now_ms=5)
        recorded.completed(checkpoint, "somewhere")
    summary = recorded.overview().summary
    assert summary.checkpointed_size == Summary(10, 70, 33, 21.0, 70.0, 70.0, 70.0, 70.0)
    assert summary.state_size == Summary(100, 100, 100, 100.0, 100.0, 100.0, 100.0, 100.0)
    assert (summary.end_to_end_duration_ms.avg, summary.alignment_buffered) == (5, NO_BUFFERS)


def test_statistics_without_a_checkpoint_are_zeros_and_not_a_number():
    overview = recorder().overview()
    assert overview.counts == CheckpointCounts(0, 0, 0, 0, 0)
    assert (overview.summary.state_size.min, overview.summary.state_size.avg) == (0, 0)
    assert math.isnan(overview.summary.state_size.p999)
    assert overview.summary.alignment_buffered.p50 == 0.0
    assert overview.history == ()
    assert (overview.latest_completed, overview.latest_savepoint) == (None, None)
    assert (overview.latest_failed, overview.latest_restored) == (None, None)


def test_counts():
    recorded = recorder()
    for checkpoint in (1, 2, 3):
        recorded.triggered(checkpoint, Kind.CHECKPOINT, 0, 0)
    assert recorded.overview().counts == CheckpointCounts(total=3, in_progress=3)
    recorded.completed(2, "x")
    recorded.failed(1, "Checkpoint has been subsumed.", 1)
    recorded.restored(2, is_savepoint=False, external_path="file:/chk-2", wall_ms=77)
    overview = recorded.overview()
    assert overview.counts == CheckpointCounts(restored=1, total=3, in_progress=1, completed=1, failed=1)
    assert overview.latest_restored == RestoredCheckpoint(2, 77, False, "file:/chk-2")


def test_the_history_is_bounded_newest_first_and_the_latest_outlive_it():
    recorded = recorder(history=3)
    recorded.triggered(1, Kind.SAVEPOINT, 0, 0)
    recorded.completed(1, "sp")
    for checkpoint in range(2, 9):
        recorded.triggered(checkpoint, Kind.CHECKPOINT, 0, 0)
        recorded.completed(checkpoint, "x")
    overview = recorded.overview()
    assert [each.id for each in overview.history] == [8, 7, 6]
    assert overview.latest_savepoint is not None
    assert overview.find(1) is overview.latest_savepoint
    assert overview.find(2) is None
    assert overview.counts.completed == 8


def test_a_checkpoint_that_fell_out_of_the_history_is_still_counted():
    recorded = recorder(history=2)
    for checkpoint in (1, 2, 3):
        recorded.triggered(checkpoint, Kind.SAVEPOINT, 0, 0)
    recorded.completed(3, "c")
    recorded.completed(1, "a")
    overview = recorded.overview()
    assert [each.id for each in overview.history] == [3, 2]
    assert overview.counts == CheckpointCounts(total=3, in_progress=1, completed=2)
    assert overview.latest_savepoint is not None
    assert overview.latest_savepoint.id == 3, "the highest id, not the last to complete"


def test_deleted_checkpoints_are_marked():
    recorded = recorder()
    for checkpoint in (1, 2):
        recorded.triggered(checkpoint, Kind.CHECKPOINT, 0, 0)
        recorded.completed(checkpoint, "x")
    recorded.discarded([1, 99])
    assert [each.discarded for each in recorded.overview().history] == [False, True]
    recorded.discarded([2])
    latest = recorded.overview().latest_completed
    assert latest is not None
    assert latest.discarded


def test_late_and_repeated_acknowledgements_change_nothing():
    recorded = recorder()
    recorded.triggered(1, Kind.CHECKPOINT, 0, 0)
    recorded.acknowledged(1, KEYED, SubtaskSnapshot(0, state_size=5), 1)
    recorded.acknowledged(1, KEYED, SubtaskSnapshot(0, state_size=500), 2)
    recorded.failed(1, "Checkpoint expired before completing.", 3)
    recorded.acknowledged(1, KEYED, SubtaskSnapshot(1, state_size=5), 4)
    (checkpoint,) = recorded.overview().history
    assert (checkpoint.num_acknowledged_subtasks, checkpoint.state_size) == (1, 5)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind.CHECKPOINT, "CHECKPOINT"),
        (Kind.FINAL, "CHECKPOINT"),
        (Kind.SAVEPOINT, "SAVEPOINT"),
        (Kind.STOP, "SYNC_SAVEPOINT"),
    ],
)
def test_the_types_have_flinks_names(kind: CheckpointKind, name: str):
    recorded = recorder()
    recorded.triggered(1, kind, 0, 0)
    (checkpoint,) = recorded.overview().history
    assert checkpoint.checkpoint_type == name
    assert checkpoint.status is CheckpointStatus.IN_PROGRESS
