"""Spans of checkpoints, restarts and failures, with the names and attributes of Flink's reporter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rekindle.common.checkpoint_statistics import CheckpointStatistics, CheckpointStatus
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import AttemptEntered, AttemptFailed, CheckpointChanged, JobEvent, StatusEntered
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.monitor.job_recorder import JobRecorder

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_SCOPE = "rekindle"
_NANOS_PER_MS = 1_000_000
#: The tracers of this process by the endpoint that their spans go to.
_tracers: dict[str, Tracer] = {}


def tracer_for(endpoint: str | None) -> Tracer:
    """The program's own tracer; with an endpoint, one that sends there over HTTP (OTLP)."""
    from opentelemetry import trace

    if endpoint is None:
        return trace.get_tracer(_SCOPE)
    if endpoint not in _tracers:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(resource=Resource.create({"service.name": _SCOPE}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")))
        _tracers[endpoint] = provider.get_tracer(_SCOPE)
    return _tracers[endpoint]


class SpanReporter:
    """Makes a span of every checkpoint that is over, and of every attempt from its start or failure to RUNNING."""

    def __init__(self, tracer: Tracer, job_id: str, recorder: JobRecorder) -> None:
        self._tracer = tracer
        self._job_id = job_id
        self._recorder = recorder
        self._began_ms: int | None = None
        self._cause = ""

    def on_event(self, event: JobEvent) -> None:
        """Make the span that ends with an event, or note the beginning of one."""
        match event:
            case CheckpointChanged(checkpoint):
                self._checkpoint(checkpoint)
            case AttemptEntered(_, AttemptState.ACQUIRING) if self._began_ms is None:
                self._began_ms = self._recorder.view().taken_ms
            case AttemptFailed(error):
                self._began_ms = self._recorder.view().taken_ms
                self._cause = f"{type(error).__name__}: {error}"
            case StatusEntered(JobStatus.RUNNING) if self._began_ms is not None:
                self._running(self._began_ms)

    def _checkpoint(self, checkpoint: CheckpointStatistics) -> None:
        if checkpoint.status is CheckpointStatus.IN_PROGRESS:
            return
        ended_ms = checkpoint.trigger_timestamp_ms + max(0, checkpoint.end_to_end_duration_ms)
        attributes: dict[str, str | int] = {
            "checkpointId": checkpoint.id,
            "checkpointType": checkpoint.checkpoint_type,
            "checkpointStatus": checkpoint.status.value,
            "checkpointedSize": checkpoint.checkpointed_size,
            "fullSize": checkpoint.state_size,
        }
        if checkpoint.failure_message is not None:
            attributes["failureMessage"] = checkpoint.failure_message
        self._span("Checkpoint", checkpoint.trigger_timestamp_ms, ended_ms, attributes)

    def _running(self, began_ms: int) -> None:
        view = self._recorder.view()
        restored = view.checkpoints.latest_restored
        attributes: dict[str, str | int] = {
            "attempt": view.attempt,
            "restarts": view.restarts,
            "checkpointId": restored.id if restored is not None else -1,
        }
        if self._cause:
            attributes["failureCause"] = self._cause
        self._span("JobInitialization", began_ms, view.taken_ms, attributes)
        self._began_ms, self._cause = None, ""

    def _span(self, name: str, began_ms: int, ended_ms: int, attributes: dict[str, str | int]) -> None:
        named = {"jobId": self._job_id, "jobName": self._recorder.job_name, **attributes}
        span = self._tracer.start_span(name, attributes=named, start_time=began_ms * _NANOS_PER_MS)
        span.end(end_time=ended_ms * _NANOS_PER_MS)
