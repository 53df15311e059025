"""Sources that are polled, and the base classes to write one's own."""

from __future__ import annotations

from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)

__all__ = ["Batch", "Boundedness", "Source", "SourceReader", "SourceReaderContext", "SourceSplit"]
