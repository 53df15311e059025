"""The file source and the file sink, under PyFlink's import path."""

from __future__ import annotations

from rekindle.common.serialization import BulkWriter, BulkWriterFactory
from rekindle.datastream.connectors.files.buckets import BucketAssigner
from rekindle.datastream.connectors.files.bulk import ArrowBulkWriters, ParquetBulkWriters
from rekindle.datastream.connectors.files.compaction import FileCompactor, FileCompactStrategy
from rekindle.datastream.connectors.files.formats import BulkFormat, FileFormat, RecordReader, StreamFormat
from rekindle.datastream.connectors.files.names import OutputFileConfig
from rekindle.datastream.connectors.files.rolling import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    RollingPolicy,
)
from rekindle.datastream.connectors.files.sink import FileSink
from rekindle.datastream.connectors.files.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.connectors.files.streaming_file_sink import StreamingFileSink

__all__ = [
    "ArrowBulkWriters",
    "BucketAssigner",
    "BulkFormat",
    "BulkWriter",
    "BulkWriterFactory",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileFormat",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplit",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "ParquetBulkWriters",
    "RecordReader",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]
