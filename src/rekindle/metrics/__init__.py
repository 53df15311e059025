"""Metrics that user functions register through `RuntimeContext.get_metric_group()`."""

from __future__ import annotations

from rekindle.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup
from rekindle.metrics.reading import MetricKind, MetricReading

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup", "MetricKind", "MetricReading"]
