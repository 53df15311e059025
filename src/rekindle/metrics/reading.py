"""What a metric said last: what slots send, and what users see of it in the program that started the job."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class MetricKind(StrEnum):
    """What a value stands for."""

    COUNTER = "counter"
    METER = "meter"
    GAUGE = "gauge"
    DISTRIBUTION = "distribution"


#: A count; what a gauge said; count and rate of a meter; count, sum, min, max and mean of a distribution.
MetricValue = bool | int | float | str | dict[str, int | float | str | None] | None


class MetricReading(msgspec.Struct, frozen=True, array_like=True):
    """The last value of one metric in one subtask of an operator.

    >>> MetricReading("count", "0a1b", 0, "words.seen", MetricKind.COUNTER, 7).value
    7
    """

    operator: str
    uid: str
    subtask: int
    #: With the names of its groups before it: `group.name`.
    name: str
    kind: MetricKind
    value: MetricValue
