"""Flink's answers about the tasks of a job: details, times, slots, watermarks, back-pressure, accumulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rekindle.monitor.job_view import ENDED_TASK_STATES, TASK_STATES, JobView, SlotView, SubtaskView, VertexView
from rekindle.web.flink_values import Json, aggregate_state, state_counts, statistics

#: Shares of back-pressured time above which the level is low and high, as in Flink.
_LOW, _HIGH = 0.10, 0.50
_STATES_IN_ORDER = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")


def start_ms(subtask: SubtaskView) -> int:
    """When the subtask was deployed; -1 before."""
    return subtask.entered_ms.get("DEPLOYING", -1)


def end_ms(subtask: SubtaskView) -> int:
    """When the subtask ended; -1 before."""
    return max((at for state, at in subtask.entered_ms.items() if state in ENDED_TASK_STATES), default=-1)


def duration_ms(view: JobView, subtask: SubtaskView) -> int:
    """How long the subtask has run; -1 before its start."""
    began, ended = start_ms(subtask), end_ms(subtask)
    return -1 if began < 0 else max(0, (ended if ended >= 0 else view.now_ms) - began)


def io_metrics(subtasks: Sequence[SubtaskView]) -> Json:
    """The work of subtasks. Bytes are not counted: chunks are Spark's to move."""
    figures = [each.figures for each in subtasks]
    return {
        "read-bytes": 0,
        "read-bytes-complete": True,
        "write-bytes": 0,
        "write-bytes-complete": True,
        "read-records": sum(each.records_in for each in figures),
        "read-records-complete": True,
        "write-records": sum(each.records_out for each in figures),
        "write-records-complete": True,
        "accumulated-backpressured-time": int(sum(each.back_pressured_ms for each in figures)),
        "accumulated-idle-time": int(sum(each.idle_ms for each in figures)),
        "accumulated-busy-time": float(round(sum(each.busy_ms for each in figures))),
    }


def vertex_summary(view: JobView, vertex: VertexView) -> Json:
    """A task in the details of its job."""
    began, ended = _bounds(vertex.subtasks)
    return {
        "id": vertex.id,
        "slotSharingGroupId": vertex.slot_sharing_group,
        "name": vertex.name,
        "maxParallelism": vertex.max_parallelism,
        "parallelism": vertex.parallelism,
        "status": aggregate_state([each.status for each in vertex.subtasks]),
        "start-time": began,
        "end-time": ended,
        "duration": -1 if began < 0 else (ended if ended >= 0 else view.now_ms) - began,
        "tasks": state_counts(each.status for each in vertex.subtasks),
        "metrics": io_metrics(vertex.subtasks),
    }


def _bounds(subtasks: Sequence[SubtaskView]) -> tuple[int, int]:
    """The start of the first subtask and the end of the last; -1 while there is none."""
    began = min((start_ms(each) for each in subtasks if start_ms(each) >= 0), default=-1)
    ends = [end_ms(each) for each in subtasks]
    return began, max(ends) if ends and all(end >= 0 for end in ends) else -1


def vertex_details(view: JobView, vertex: VertexView) -> Json:
    """`/jobs/:jobid/vertices/:vertexid`."""
    return {
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "maxParallelism": vertex.max_parallelism,
        "now": view.taken_ms,
        "subtasks": [subtask_details(view, each) for each in vertex.subtasks],
        "aggregated": _aggregated(view, vertex.subtasks),
    }


def subtask_details(view: JobView, subtask: SubtaskView) -> Json:
    """A subtask's current attempt; also `/jobs/:jobid/vertices/:vertexid/subtasks/:index`."""
    return {
        "subtask": subtask.index,
        "status": subtask.status,
        "attempt": view.restarts,
        "endpoint": _endpoint(view, subtask.slot),
        "start-time": start_ms(subtask),
        "end-time": end_ms(subtask),
        "duration": duration_ms(view, subtask),
        "metrics": io_metrics([subtask]),
        "taskmanager-id": _slot_id(view, subtask.slot),
        "status-duration": _status_durations(view, subtask),
        "start_time": start_ms(subtask),
    }


def _slot(view: JobView, index: int) -> SlotView | None:
    return next((each for each in view.slots if each.index == index), None)


def _slot_id(view: JobView, index: int) -> str:
    slot = _slot(view, index)
    return "(unassigned)" if slot is None else slot.id


def _endpoint(view: JobView, index: int) -> str:
    slot = _slot(view, index)
    return "(unassigned)" if slot is None else f"{slot.host}:{slot.pid}"


def _status_durations(view: JobView, subtask: SubtaskView) -> dict[str, int]:
    """How long the subtask was in each state that it has passed through."""
    states, times = list(subtask.entered_ms), list(subtask.entered_ms.values())
    ends = [*times[1:], view.now_ms]
    spent = {state: max(0, end - at) for state, at, end in zip(states, times, ends, strict=False)}
    return {state: spent.get(state, -1) for state in _STATES_IN_ORDER}


def _aggregated(view: JobView, subtasks: Sequence[SubtaskView]) -> Json:
    metrics = [io_metrics([each]) for each in subtasks]
    names = [name for name in io_metrics([]) if not name.endswith("-complete")]
    durations = [_status_durations(view, each) for each in subtasks]
    return {
        "metrics": {name: statistics([each[name] for each in metrics]) for name in names},
        "status-duration": {state: statistics([each[state] for each in durations]) for state in _STATES_IN_ORDER},
    }


def subtask_times(view: JobView, vertex: VertexView) -> Json:
    """`/jobs/:jobid/vertices/:vertexid/subtasktimes`."""
    return {
        "id": vertex.id,
        "name": vertex.name,
        "now": view.taken_ms,
        "subtasks": [
            {
                "subtask": each.index,
                "endpoint": _endpoint(view, each.slot),
                "duration": duration_ms(view, each),
                "timestamps": {state: each.entered_ms.get(state, 0) for state in TASK_STATES},
            }
            for each in vertex.subtasks
        ],
    }


def vertex_slots(view: JobView, vertex: VertexView) -> Json:
    """`/jobs/:jobid/vertices/:vertexid/taskmanagers`: the subtasks by slot."""
    by_slot: dict[int, list[SubtaskView]] = {}
    for subtask in vertex.subtasks:
        by_slot.setdefault(subtask.slot, []).append(subtask)
    return {
        "id": vertex.id,
        "name": vertex.name,
        "now": view.taken_ms,
        "taskmanagers": [_vertex_slot(view, slot, subtasks) for slot, subtasks in sorted(by_slot.items())],
    }


def _vertex_slot(view: JobView, slot: int, subtasks: Sequence[SubtaskView]) -> Json:
    began, ended = _bounds(subtasks)
    return {
        "endpoint": _endpoint(view, slot),
        "status": aggregate_state([each.status for each in subtasks]),
        "start-time": began,
        "end-time": ended,
        "duration": -1 if began < 0 else (ended if ended >= 0 else view.now_ms) - began,
        "metrics": io_metrics(subtasks),
        "status-counts": state_counts(each.status for each in subtasks),
        "taskmanager-id": _slot_id(view, slot),
        "aggregated": _aggregated(view, subtasks),
    }


def watermarks(vertex: VertexView) -> list[Json]:
    """`/jobs/:jobid/vertices/:vertexid/watermarks`."""
    return [
        {"id": f"{each.index}.currentInputWatermark", "value": str(each.figures.input_watermark)}
        for each in vertex.subtasks
    ]


def back_pressure(view: JobView, vertex: VertexView) -> Json:
    """`/jobs/:jobid/vertices/:vertexid/backpressure`."""
    subtasks = [_pressed(each) for each in vertex.subtasks]
    worst = max((each["ratio"] for each in subtasks), default=0.0)
    level = _level(worst)
    return {
        "status": "ok",
        "backpressureLevel": level,
        "end-timestamp": view.taken_ms,
        "subtasks": subtasks,
        "backpressure-level": level,
    }


def _pressed(subtask: SubtaskView) -> Json:
    figures = subtask.figures
    ratio = round(figures.back_pressured_ms_per_s / 1000, 3)
    return {
        "subtask": subtask.index,
        "backpressureLevel": _level(ratio),
        "ratio": ratio,
        "idleRatio": round(figures.idle_ms_per_s / 1000, 3),
        "busyRatio": round(figures.busy_ms_per_s / 1000, 3),
        "backpressure-level": _level(ratio),
    }


def _level(ratio: float) -> str:
    return "ok" if ratio <= _LOW else "low" if ratio <= _HIGH else "high"


def vertex_accumulators(vertex: VertexView) -> Json:
    """`/jobs/:jobid/vertices/:vertexid/accumulators`: accumulators are the job's here, not a task's."""
    return {"id": vertex.id, "user-accumulators": []}


def subtask_accumulators(view: JobView, vertex: VertexView) -> Json:
    """`/jobs/:jobid/vertices/:vertexid/subtasks/accumulators`."""
    return {
        "id": vertex.id,
        "parallelism": vertex.parallelism,
        "subtasks": [
            {
                "subtask": each.index,
                "attempt": view.restarts,
                "endpoint": _endpoint(view, each.slot),
                "user-accumulators": [],
            }
            for each in vertex.subtasks
        ],
    }


def tasks_by_slot(views: Sequence[JobView]) -> Mapping[str, int]:
    """The number of subtasks that each slot hosts."""
    counts: dict[str, int] = {}
    for view in views:
        for vertex in view.vertices:
            for subtask in vertex.subtasks:
                slot = _slot_id(view, subtask.slot)
                counts[slot] = counts.get(slot, 0) + 1
    return counts
