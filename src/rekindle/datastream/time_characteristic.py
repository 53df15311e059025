"""`TimeCharacteristic`: which time a whole program went by in Flink 1; gone since 2.0."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeCharacteristic"]


class TimeCharacteristic(Enum):
    """Which time a program goes by: since Flink 1.12 each window and timer says so itself."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
