"""Our own answers, for pages and terminals: a whole job in one short document, and its checkpoints on disk."""

from __future__ import annotations

from collections.abc import Iterable

from rekindle.checkpoint.checkpoint_listing import CheckpointEntry
from rekindle.monitor.job_view import NO_WATERMARK, JobView, SlotView, VertexView
from rekindle.web.failure_answers import last_failure
from rekindle.web.flink_values import Json, aggregate_state, state_counts

_END_OF_TIME = 2**63 - 1


def live(view: JobView, most: int = 300) -> Json:
    """`/jobs/:jobid/live`: status, tasks with their rates, exchanges, slots, and the last epochs and checkpoints."""
    return {
        "jid": view.job_id,
        "name": view.name,
        "state": view.status,
        "now": view.taken_ms,
        "start-time": view.started_ms,
        "end-time": view.ended_ms,
        "duration": view.now_ms - view.started_ms,
        "attempt": view.attempt,
        "restarts": view.restarts,
        "failures": view.failure_count,
        "last-failure": last_failure(view),
        "records-in": view.records_in,
        "records-out": view.records_out,
        "checkpoint-age": checkpoint_age_ms(view),
        "spark-url": view.spark_url,
        "vertices": [_vertex(view, vertex) for vertex in view.vertices],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "ship-strategy": edge.ship_strategy,
                "records": edge.records,
                "records-per-second": round(edge.per_s, 3),
            }
            for edge in view.edges
        ],
        "slots": [_slot(view, slot) for slot in view.slots],
        "epochs": _epochs(view, most),
        "checkpoints": _checkpoints(view, most),
    }


def checkpoint_age_ms(view: JobView) -> int | None:
    """The time since the checkpoint was triggered from which a restart would begin; None: there is none."""
    good_ms = view.last_good_checkpoint_ms()
    return None if good_ms is None else max(0, view.now_ms - good_ms)


def _vertex(view: JobView, vertex: VertexView) -> Json:
    figures = [each.figures for each in vertex.subtasks]
    known = [each.input_watermark for each in figures if each.input_watermark != NO_WATERMARK]
    watermark = min(known) if figures and len(known) == len(figures) else None
    count = max(1, len(figures))
    return {
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "stage": vertex.stage,
        "operators": [{"id": each.uid, "name": each.name, "uid": each.user_uid} for each in vertex.operators],
        "status": aggregate_state([each.status for each in vertex.subtasks]),
        "tasks": state_counts(each.status for each in vertex.subtasks),
        "records-in": sum(each.records_in for each in figures),
        "records-out": sum(each.records_out + each.records_sunk for each in figures),
        "records-in-per-second": round(sum(each.in_per_s for each in figures), 3),
        "records-out-per-second": round(sum(each.out_per_s + each.sunk_per_s for each in figures), 3),
        "records-in-flight": sum(each.in_flight for each in figures),
        "busy": round(max((each.busy_ms_per_s for each in figures), default=0.0) / 1000, 3),
        "busy-average": round(sum(each.busy_ms_per_s for each in figures) / count / 1000, 3),
        "back-pressured": round(max((each.back_pressured_ms_per_s for each in figures), default=0.0) / 1000, 3),
        "watermark": watermark,
        "watermark-lag": None if watermark is None or watermark == _END_OF_TIME else view.now_ms - watermark,
        "state-size": _state_size(view, vertex.id),
    }


def _state_size(view: JobView, vertex_id: str) -> int | None:
    """The size of a task's state in the last completed checkpoint."""
    last = view.checkpoints.latest_completed
    task = last.task(vertex_id) if last is not None else None
    return None if task is None else task.state_size


def _slot(view: JobView, slot: SlotView) -> Json:
    subtasks = [
        (vertex, subtask) for vertex in view.vertices for subtask in vertex.subtasks if subtask.slot == slot.index
    ]
    return {
        "id": slot.id,
        "index": slot.index,
        "host": slot.host,
        "pid": slot.pid,
        "memory": slot.memory_bytes,
        "cpu-seconds": round(slot.cpu_s, 3),
        "last-heartbeat": slot.last_heartbeat_ms,
        "state-size": _slot_state_size(view, slot.index),
        "subtasks": [
            {"vertex": vertex.id, "subtask": subtask.index, "status": subtask.status} for vertex, subtask in subtasks
        ],
    }


def _slot_state_size(view: JobView, slot: int) -> int | None:
    last = view.checkpoints.latest_completed
    if last is None:
        return None
    hosted = {(vertex.id, each.index) for vertex in view.vertices for each in vertex.subtasks if each.slot == slot}
    return sum(
        subtask.snapshot.state_size
        for task in last.tasks
        for subtask in task.acknowledged
        if (task.vertex_id, subtask.snapshot.index) in hosted
    )


def _epochs(view: JobView, most: int) -> list[Json]:
    return [
        {
            "epoch": each.epoch,
            "end-time": each.ended_ms,
            "duration": round(each.duration_ms, 1),
            "work": round(each.work_ms, 1),
            "records-in": each.records_in,
            "records-out": each.records_out,
            "in-flight": each.in_flight,
            "watermark": each.watermark,
        }
        for each in view.epochs[max(0, len(view.epochs) - most) :]
    ]


def _checkpoints(view: JobView, most: int) -> Json:
    counts, failed = view.checkpoints.counts, view.checkpoints.latest_failed
    return {
        "completed": counts.completed,
        "failed": counts.failed,
        "in-progress": counts.in_progress,
        "last-failed": None if failed is None else {"id": failed.id, "message": failed.failure_message},
        "interval": view.checkpoint_config.interval_ms,
        "timeout": view.checkpoint_config.timeout_ms,
        "directory": view.checkpoint_config.directory,
        "savepoint-directory": view.checkpoint_config.savepoint_directory,
        "trend": [
            {
                "id": each.id,
                "trigger-time": each.triggered_ms,
                "duration": each.duration_ms,
                "checkpointed-size": each.size,
                "state-size": each.full_size,
                "status": each.status,
                "is-savepoint": each.is_savepoint,
            }
            for each in view.checkpoint_trend[max(0, len(view.checkpoint_trend) - most) :]
        ],
    }


def checkpoint_operators(view: JobView, checkpoint_id: int) -> Json | None:
    """`/jobs/:jobid/checkpoints/details/:checkpointid/operators`: each operator's part; None: it is not known."""
    checkpoint = view.checkpoints.find(checkpoint_id)
    if checkpoint is None:
        return None
    return {
        "id": checkpoint.id,
        "status": checkpoint.status.value,
        "failure_message": checkpoint.failure_message,
        "tasks": [
            {
                "id": task.vertex_id,
                "subtasks": [
                    {
                        "index": subtask.snapshot.index,
                        "operators": [
                            {
                                "name": operator.operator,
                                "checkpointed_size": operator.checkpointed_size,
                                "state_size": operator.state_size,
                                "sync": operator.sync_duration_ms,
                                "async": operator.async_duration_ms,
                            }
                            for operator in subtask.snapshot.operators
                        ],
                    }
                    for subtask in task.acknowledged
                ],
            }
            for task in checkpoint.tasks
        ],
    }


def catalogue(directory: str, entries: Iterable[CheckpointEntry]) -> Json:
    """`/jobs/:jobid/catalogue`: the checkpoints and savepoints of a job that are on disk."""
    return {
        "directory": directory,
        "checkpoints": [
            {
                "path": each.url,
                "kind": each.kind.value,
                "job-name": each.job_name,
                "timeline": each.timeline,
                "id": each.checkpoint_id,
                "timestamp": each.taken_ms,
                "duration": each.duration_ms,
                "state-size": each.full_bytes,
                "checkpointed-size": each.new_bytes,
                "is-latest": each.is_latest,
                "of-last-run": each.of_last_run,
                "damage": each.damage,
            }
            for each in entries
        ],
    }
