"""Spans of checkpoints and restarts for OpenTelemetry: their settings, and the observer that is made of them."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.coordinator.observer import JobObserver
from rekindle.errors import ConfigurationError
from rekindle.monitor.job_recorder import JobRecorder

_LOG = logging.getLogger("rekindle.web")
_OPEN_TELEMETRY = "org.apache.flink.traces.otel.OpenTelemetryTraceReporterFactory"
_PREFIX = "traces.reporter."


def span_observer(configuration: Configuration, job_id: str, recorder: JobRecorder) -> JobObserver | None:
    """The observer that sends the spans of a job; None: no reporter is set."""
    settings = configuration.with_prefix(_PREFIX)
    wanted = configuration.get(config.TRACE_REPORTERS)
    for key, factory in settings.items():
        name, _, rest = key.partition(".")
        if rest != "factory.class" or (wanted is not None and name not in wanted):
            continue
        if factory != _OPEN_TELEMETRY:
            _LOG.warning("The reporter of spans '%s' is ignored: Rekindle has no %s.", name, factory)
            continue
        if find_spec("opentelemetry") is None:
            raise ConfigurationError(f"The reporter of spans '{name}' needs pip install 'rekindle[otel]'.")
        from rekindle.web.spans import SpanReporter, tracer_for

        return SpanReporter(tracer_for(settings.get(f"{name}.exporter.endpoint")), job_id, recorder)
    return None
