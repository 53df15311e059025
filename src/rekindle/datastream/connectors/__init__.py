"""The interfaces of sources that are polled and of sinks that commit in two phases."""

from __future__ import annotations

from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    DeliveryGuarantee,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.datastream.connectors.sink_api import (
    CommitRequest,
    CommittableFile,
    Committer,
    CommitterInitContext,
    CommittingSinkWriter,
    InitContext,
    Sink,
    SinkSerializer,
    SinkWriter,
    StatefulSinkWriter,
    SupportsCommitter,
    SupportsWriterState,
    TypedSerializer,
    WriterInitContext,
)

__all__ = [
    "Batch",
    "Boundedness",
    "CommitRequest",
    "CommittableFile",
    "Committer",
    "CommitterInitContext",
    "CommittingSinkWriter",
    "DeliveryGuarantee",
    "InitContext",
    "Sink",
    "SinkSerializer",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SourceReaderContext",
    "SourceSplit",
    "StatefulSinkWriter",
    "SupportsCommitter",
    "SupportsWriterState",
    "TypedSerializer",
    "WriterInitContext",
]
