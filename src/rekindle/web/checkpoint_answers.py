"""Flink's answers about checkpoints: statistics, history, details per task and subtask, settings."""

from __future__ import annotations

from rekindle.common.checkpoint_statistics import (
    NO_BUFFERS,
    CheckpointOverview,
    CheckpointStatistics,
    CheckpointStatus,
    RestoredCheckpoint,
    SubtaskStatistics,
    TaskStatistics,
)
from rekindle.monitor.job_view import JobView
from rekindle.web.flink_values import Json, summary

#: Flink's interval of a job without periodic checkpoints.
_NEVER = 2**63 - 1


def checkpoints(view: JobView) -> Json:
    """`/jobs/:jobid/checkpoints`."""
    overview = view.checkpoints
    counts = overview.counts
    return {
        "counts": {
            "restored": counts.restored,
            "total": counts.total,
            "in_progress": counts.in_progress,
            "completed": counts.completed,
            "failed": counts.failed,
        },
        "summary": _completed_summary(overview),
        "latest": {
            "completed": _in_list(overview.latest_completed),
            "savepoint": _in_list(overview.latest_savepoint),
            "failed": _in_list(overview.latest_failed),
            "restored": _restored(overview.latest_restored),
        },
        "history": [_in_list(each) for each in overview.history],
    }


def _completed_summary(overview: CheckpointOverview) -> Json:
    figures = overview.summary
    return {
        "checkpointed_size": summary(figures.checkpointed_size),
        "state_size": summary(figures.state_size),
        "end_to_end_duration": summary(figures.end_to_end_duration_ms),
        "alignment_buffered": summary(NO_BUFFERS),
        "processed_data": summary(figures.processed_data),
        "persisted_data": summary(figures.persisted_data),
    }


def _restored(restored: RestoredCheckpoint | None) -> Json | None:
    if restored is None:
        return None
    return {
        "id": restored.id,
        "restore_timestamp": restored.restore_timestamp_ms,
        "is_savepoint": restored.is_savepoint,
        "external_path": restored.external_path or "<checkpoint-not-externally-addressable>",
    }


def _in_list(checkpoint: CheckpointStatistics | None) -> Json | None:
    return None if checkpoint is None else _checkpoint(checkpoint, {})


def checkpoint_details(checkpoint: CheckpointStatistics) -> Json:
    """`/jobs/:jobid/checkpoints/details/:checkpointid`."""
    return _checkpoint(checkpoint, {task.vertex_id: _task(checkpoint, task) for task in checkpoint.tasks})


def _checkpoint(checkpoint: CheckpointStatistics, tasks: Json) -> Json:
    answer: Json = {
        "className": checkpoint.status.value.lower(),
        "id": checkpoint.id,
        "status": checkpoint.status.value,
        "is_savepoint": checkpoint.is_savepoint,
        "savepointFormat": (checkpoint.savepoint_format or "CANONICAL") if checkpoint.is_savepoint else None,
        "trigger_timestamp": checkpoint.trigger_timestamp_ms,
        "latest_ack_timestamp": checkpoint.latest_ack_timestamp_ms,
        "checkpointed_size": checkpoint.checkpointed_size,
        "state_size": checkpoint.state_size,
        "end_to_end_duration": checkpoint.end_to_end_duration_ms,
        "alignment_buffered": 0,
        "processed_data": checkpoint.processed_data,
        "persisted_data": checkpoint.persisted_data,
        "num_subtasks": checkpoint.num_subtasks,
        "num_acknowledged_subtasks": checkpoint.num_acknowledged_subtasks,
        "checkpoint_type": checkpoint.checkpoint_type,
        "tasks": tasks,
    }
    if checkpoint.status is CheckpointStatus.COMPLETED:
        path = checkpoint.external_path or "<checkpoint-not-externally-addressable>"
        answer |= {"external_path": path, "discarded": checkpoint.discarded}
    if checkpoint.status is CheckpointStatus.FAILED:
        answer |= {
            "failure_timestamp": checkpoint.failure_timestamp_ms,
            "failure_message": checkpoint.failure_message,
        }
    return answer


def _task(checkpoint: CheckpointStatistics, task: TaskStatistics) -> Json:
    return {
        "id": checkpoint.id,
        "status": checkpoint.status.value,
        "latest_ack_timestamp": task.latest_ack_timestamp_ms,
        "checkpointed_size": task.checkpointed_size,
        "state_size": task.state_size,
        "end_to_end_duration": task.end_to_end_duration_ms,
        "alignment_buffered": 0,
        "processed_data": task.processed_data,
        "persisted_data": task.persisted_data,
        "num_subtasks": task.num_subtasks,
        "num_acknowledged_subtasks": task.num_acknowledged_subtasks,
    }


def checkpoint_subtasks(checkpoint: CheckpointStatistics, task: TaskStatistics) -> Json:
    """`/jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid`."""
    return {
        **_task(checkpoint, task),
        "summary": _task_summary(task),
        "subtasks": [_subtask(index, subtask) for index, subtask in enumerate(task.subtasks)],
    }


def _task_summary(task: TaskStatistics) -> Json:
    figures = task.summary
    return {
        "checkpointed_size": summary(figures.checkpointed_size),
        "state_size": summary(figures.state_size),
        "end_to_end_duration": summary(figures.end_to_end_duration_ms),
        "checkpoint_duration": {
            "sync": summary(figures.sync_duration_ms),
            "async": summary(figures.async_duration_ms),
        },
        "alignment": {
            "buffered": summary(NO_BUFFERS),
            "processed": summary(figures.processed_data),
            "persisted": summary(figures.persisted_data),
            "duration": summary(figures.alignment_duration_ms),
        },
        "start_delay": summary(figures.start_delay_ms),
    }


def _subtask(index: int, subtask: SubtaskStatistics | None) -> Json:
    if subtask is None:
        return {"className": "pending", "index": index, "status": "pending_or_failed"}
    snapshot = subtask.snapshot
    return {
        "className": "completed",
        "index": index,
        "ack_timestamp": subtask.ack_timestamp_ms,
        "end_to_end_duration": subtask.end_to_end_duration_ms,
        "checkpointed_size": snapshot.checkpointed_size,
        "state_size": snapshot.state_size,
        "checkpoint": {"sync": snapshot.sync_duration_ms, "async": snapshot.async_duration_ms},
        "alignment": {
            "buffered": 0,
            "processed": snapshot.processed_data,
            "persisted": snapshot.persisted_data,
            "duration": snapshot.alignment_duration_ms,
        },
        "start_delay": snapshot.start_delay_ms,
        "unaligned_checkpoint": snapshot.persisted_data > 0,
        "aborted": False,
        "status": "completed",
    }


def checkpoint_config(view: JobView) -> Json:
    """`/jobs/:jobid/checkpoints/config`. Every cut is consistent here, so the mode is always exactly once."""
    config = view.checkpoint_config
    return {
        "mode": "exactly_once",
        "interval": config.interval_ms if config.interval_ms > 0 else _NEVER,
        "timeout": config.timeout_ms,
        "min_pause": config.min_pause_ms,
        "max_concurrent": config.max_concurrent,
        "externalization": {
            "enabled": config.externalized,
            "delete_on_cancellation": config.delete_on_cancellation,
        },
        "state_backend": config.state_backend,
        "checkpoint_storage": config.storage,
        "unaligned_checkpoints": config.unaligned,
        "tolerable_failed_checkpoints": config.tolerable_failures,
        "aligned_checkpoint_timeout": config.aligned_timeout_ms,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": 600_000,
        "changelog_storage": "memory",
    }
