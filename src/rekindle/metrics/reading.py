"""Readings of metrics: slots send them to the driver, and users get them in the program that started the job."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class MetricKind(StrEnum):
    """The kind of a metric."""

    COUNTER = "counter"
    METER = "meter"
    GAUGE = "gauge"
    DISTRIBUTION = "distribution"


#: A counter's count; a gauge's value; count and rate of a meter; count, sum, min, max and mean of a distribution.
MetricValue = bool | int | float | str | dict[str, int | float | str | None] | None


class MetricReading(msgspec.Struct, frozen=True, array_like=True):
    """The last value of one metric in one subtask of an operator.

    >>> MetricReading("count", "0a1b", 0, "words.seen", MetricKind.COUNTER, 7).value
    7
    """

    operator: str
    uid: str
    subtask: int
    #: The metric's name after the names of its groups: `group.name`.
    name: str
    kind: MetricKind
    value: MetricValue
