"""The time domain of a timer."""

from __future__ import annotations

from enum import Enum


class TimeDomain(Enum):
    """Whether a firing timer is based on event time or processing time.

    >>> TimeDomain.EVENT_TIME.name
    'EVENT_TIME'
    """

    EVENT_TIME = 0
    PROCESSING_TIME = 1
