"""Sources and sinks for Kafka, under PyFlink's names."""

from __future__ import annotations

__all__: list[str] = []
