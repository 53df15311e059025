"""Spans of checkpoints and restarts, as a program's own exporter gets them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rekindle.common import Configuration
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import AttemptEntered, AttemptFailed, CheckpointChanged, StatusEntered
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.web.span_settings import span_observer
from rekindle.web.spans import SpanReporter
from tests.support.recorded_jobs import JOB_ID, START_MS, RecordedJob

FACTORY = "org.apache.flink.traces.otel.OpenTelemetryTraceReporterFactory"
NANOS = 1_000_000


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


def reported(exporter: InMemorySpanExporter, job: RecordedJob) -> SpanReporter:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return SpanReporter(provider.get_tracer("test"), JOB_ID, job.recorder)


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    exporter.clear()
    return span


def test_a_checkpoint_is_a_span_from_its_trigger_to_its_end(exporter):
    job = RecordedJob().run()
    reporter = reported(exporter, job)
    job.checkpoint(1)
    reporter.on_event(CheckpointChanged(job.checkpoints.overview().history[0]))
    span = only(exporter)
    assert (span.name, span.start_time, span.end_time) == ("Checkpoint", START_MS * NANOS, (START_MS + 30) * NANOS)
    assert dict(span.attributes or {}) == {
        "jobId": JOB_ID,
        "jobName": "orders",
        "checkpointId": 1,
        "checkpointType": "CHECKPOINT",
        "checkpointStatus": "COMPLETED",
        "checkpointedSize": 42,
        "fullSize": 420,
    }
    job.checkpoint(2, failure="Checkpoint was declined.")
    reporter.on_event(CheckpointChanged(job.checkpoints.overview().history[0]))
    assert (only(exporter).attributes or {})["failureMessage"] == "Checkpoint was declined."


def test_a_restart_is_a_span_from_the_failure_until_the_job_runs_again(exporter):
    job = RecordedJob()
    reporter = reported(exporter, job)
    reporter.on_event(AttemptEntered(1, AttemptState.ACQUIRING))
    job.later(2)
    job.run()
    reporter.on_event(StatusEntered(JobStatus.RUNNING))
    first = only(exporter)
    assert (first.name, (first.end_time or 0) - (first.start_time or 0)) == ("JobInitialization", 2000 * NANOS)
    job.fail()
    reporter.on_event(AttemptFailed(ValueError("no amount"), 50))
    job.later(3)
    reporter.on_event(AttemptEntered(2, AttemptState.ACQUIRING))
    job.run(attempt=2)
    reporter.on_event(StatusEntered(JobStatus.RUNNING))
    again = only(exporter)
    assert (again.end_time or 0) - (again.start_time or 0) == 3000 * NANOS
    assert (again.attributes or {})["failureCause"] == "ValueError: no amount"
    assert (again.attributes or {})["restarts"] == 1


def test_the_settings_choose_the_reporter(caplog):
    job = RecordedJob()
    assert span_observer(Configuration(), JOB_ID, job.recorder) is None
    key = "traces.reporter.otel.factory.class"
    assert isinstance(span_observer(Configuration.from_dict({key: FACTORY}), JOB_ID, job.recorder), SpanReporter)
    assert span_observer(Configuration.from_dict({key: "com.example.Mine"}), JOB_ID, job.recorder) is None
    assert "'otel' is ignored: Rekindle has no com.example.Mine." in caplog.text
    left_out = Configuration.from_dict({key: FACTORY, "traces.reporters": "other"})
    assert span_observer(left_out, JOB_ID, job.recorder) is None
