"""The metrics of a job, under Flink's names: of the job, of a subtask, of an operator in a subtask, of a slot."""

from __future__ import annotations

from collections.abc import Iterator

from rekindle.metrics import MetricKind, MetricReading
from rekindle.monitor.job_view import JobView, OperatorFigures, SlotView, SubtaskView, VertexView

#: The value of a metric.
Value = bool | int | float | str
Values = dict[str, Value]

_NANOS_PER_MS = 1_000_000
#: The times that Flink measures in each status of a job.
_STATUS_TIMES = {
    "initializingTime": "INITIALIZING",
    "createdTime": "CREATED",
    "runningTime": "RUNNING",
    "restartingTime": "RESTARTING",
    "failingTime": "FAILING",
    "cancellingTime": "CANCELLING",
}


def job_metrics(view: JobView) -> Values:
    """The metrics of a job."""
    counts = view.checkpoints.counts
    return {
        **_status_times(view),
        **_last_checkpoint(view),
        "numRestarts": view.restarts,
        "numRescales": 0,
        "totalNumberOfCheckpoints": counts.total,
        "numberOfInProgressCheckpoints": counts.in_progress,
        "numberOfCompletedCheckpoints": counts.completed,
        "numberOfFailedCheckpoints": counts.failed,
    }


def _status_times(view: JobView) -> Values:
    def elapsed(status: str) -> int:
        return view.now_ms - view.entered_ms.get(status, view.now_ms) if view.status == status else 0

    times: Values = {name: elapsed(status) for name, status in _STATUS_TIMES.items()}
    down = view.status in ("RESTARTING", "FAILING", "CREATED", "INITIALIZING") and view.restarts > 0
    since_ms = max((failure.at_ms for failure in view.failures), default=view.now_ms)
    return times | {
        "deployingTime": 0,
        "uptime": elapsed("RUNNING"),
        "downtime": view.now_ms - since_ms if down else 0,
        "allSubTasksRunningOrFinishedTime": elapsed("RUNNING"),
    }


def _last_checkpoint(view: JobView) -> Values:
    """The last completed checkpoint; as in Flink -1 and n/a while there is none."""
    last = view.checkpoints.latest_completed
    restored = view.checkpoints.latest_restored
    return {
        "lastCompletedCheckpointId": last.id if last else -1,
        "lastCheckpointSize": last.checkpointed_size if last else -1,
        "lastCheckpointFullSize": last.state_size if last else -1,
        "lastCheckpointMetadataSize": -1,
        "lastCheckpointDuration": last.end_to_end_duration_ms if last else -1,
        "lastCheckpointProcessedData": last.processed_data if last else -1,
        "lastCheckpointPersistedData": last.persisted_data if last else -1,
        "lastCheckpointCompletedTimestamp": last.latest_ack_timestamp_ms if last else -1,
        "lastCheckpointExternalPath": (last.external_path or "n/a") if last else "n/a",
        "lastCheckpointRestoreTimestamp": restored.restore_timestamp_ms if restored else -1,
    }


def task_metrics(view: JobView, vertex: VertexView, subtask: SubtaskView) -> Values:
    """The metrics of a subtask."""
    figures = subtask.figures
    pressed = figures.back_pressured_ms_per_s
    return {
        "numRecordsIn": figures.records_in,
        "numRecordsOut": figures.records_out,
        "numRecordsInPerSecond": figures.in_per_s,
        "numRecordsOutPerSecond": figures.out_per_s,
        "busyTimeMsPerSecond": figures.busy_ms_per_s,
        "idleTimeMsPerSecond": figures.idle_ms_per_s,
        "backPressuredTimeMsPerSecond": pressed,
        "softBackPressuredTimeMsPerSecond": pressed,
        "hardBackPressuredTimeMsPerSecond": 0.0,
        "accumulateBusyTimeMs": figures.busy_ms,
        "accumulateIdleTimeMs": figures.idle_ms,
        "accumulateBackPressuredTimeMs": figures.back_pressured_ms,
        "isBackPressured": pressed > 0,
        "currentInputWatermark": figures.input_watermark,
        "numRecordsInFlight": figures.in_flight,
        "checkpointAlignmentTime": 0,
        "checkpointStartDelayNanos": _start_delay_ms(view, vertex.id, subtask.index) * _NANOS_PER_MS,
        "initializationTime": _initialization_ms(subtask),
    }


def _start_delay_ms(view: JobView, vertex_id: str, index: int) -> int:
    last = view.checkpoints.latest_completed
    task = last.task(vertex_id) if last is not None else None
    subtask = task.subtasks[index] if task is not None and index < len(task.subtasks) else None
    return subtask.snapshot.start_delay_ms if subtask is not None else 0


def _initialization_ms(subtask: SubtaskView) -> int:
    began, ran = subtask.entered_ms.get("INITIALIZING"), subtask.entered_ms.get("RUNNING")
    return ran - began if began is not None and ran is not None else 0


def operator_metrics(subtask: SubtaskView, operator: OperatorFigures) -> Values:
    """The metrics of an operator in a subtask; its users' own are in `user_metrics`."""
    return {
        "numRecordsIn": operator.records_in,
        "numRecordsOut": operator.records_out,
        "numRecordsInPerSecond": operator.in_per_s,
        "numRecordsOutPerSecond": operator.out_per_s,
        "currentInputWatermark": subtask.figures.input_watermark,
        "currentOutputWatermark": subtask.figures.output_watermark,
    }


def user_metrics(view: JobView) -> dict[tuple[str, int], Values]:
    """The metrics that functions have registered, by operator and subtask."""
    found: dict[tuple[str, int], Values] = {}
    for reading in view.metrics:
        found.setdefault((reading.uid, reading.subtask), {}).update(_parts(reading))
    return found


def _parts(reading: MetricReading) -> Iterator[tuple[str, Value]]:
    """A reading as plain values: of a meter its rate, of a distribution each of its figures."""
    value = reading.value
    if reading.kind is MetricKind.METER and isinstance(value, dict):
        if (rate := value.get("rate")) is not None:
            yield reading.name, rate
    elif isinstance(value, dict):
        yield from ((f"{reading.name}_{part}", figure) for part, figure in value.items() if figure is not None)
    elif value is not None:
        yield reading.name, value


def slot_metrics(slot: SlotView) -> Values:
    """The metrics of a slot, under the names that Flink's dashboards look for: a slot has no JVM, but has memory."""
    return {
        "Status.JVM.Memory.Heap.Used": slot.memory_bytes,
        "Status.JVM.Memory.Heap.Committed": slot.memory_bytes,
        "Status.JVM.CPU.Time": int(slot.cpu_s * 1e9),
    }
