"""The interfaces of sources that are polled and of sinks that commit in two phases."""

from __future__ import annotations

from importlib import import_module
from typing import Any

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

#: Names that PyFlink's older programs import from here, by their module. They are imported when they are asked for.
_ELSEWHERE = {
    **dict.fromkeys(
        (
            "BucketAssigner",
            "FileEnumeratorProvider",
            "FileSink",
            "FileSource",
            "FileSourceBuilder",
            "FileSplitAssignerProvider",
            "OutputFileConfig",
            "RollingPolicy",
            "StreamFormat",
            "StreamingFileSink",
        ),
        "file_system",
    ),
    **dict.fromkeys(("JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"), "jdbc"),
    **dict.fromkeys(("FlinkKafkaConsumer", "FlinkKafkaProducer", "KafkaSource", "Semantic"), "kafka"),
    "NumberSequenceSource": "number_seq",
}


def __getattr__(name: str) -> Any:
    module = _ELSEWHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
