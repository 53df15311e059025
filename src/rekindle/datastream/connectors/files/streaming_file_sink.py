"""`StreamingFileSink`: the older spelling of `FileSink`, for `add_sink`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from rekindle.common.serialization import BulkWriterFactory, Encoder
from rekindle.datastream.connectors.files.sink import (
    FileSink,
    FileSinkBuilder,
    FileSinkSettings,
    bulk_settings,
    row_settings,
)
from rekindle.datastream.functions.sink import SinkFunction
from rekindle.errors import GraphError


class _StreamingBuilder(FileSinkBuilder):
    def build(self) -> StreamingFileSink:
        """Return the sink."""
        return StreamingFileSink(self._settings)


class StreamingFileSink(SinkFunction):
    """Writes records exactly once into files, as `FileSink` does.

    As in Flink, files get their names at checkpoints only: those of a job without checkpoints stay in progress, hidden.

    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     sink = StreamingFileSink.for_row_format("/data/words", Encoder.simple_string_encoder()).build()
    """

    class DefaultRowFormatBuilder(_StreamingBuilder):
        """Builds a sink whose records are encoded one by one."""

    class DefaultBulkFormatBuilder(_StreamingBuilder):
        """Builds a sink whose records are written many at a time."""

    def __init__(self, settings: FileSinkSettings) -> None:
        """Do not call directly: use `for_row_format` or `for_bulk_format`."""
        warnings.warn(
            "StreamingFileSink is deprecated since Flink 1.15: use FileSink.", DeprecationWarning, stacklevel=3
        )
        self._settings = replace(settings, only_checkpoints_finish=True)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> StreamingFileSink.DefaultRowFormatBuilder:
        """Build a sink that encodes records one by one: text, JSON, CSV."""
        settings = row_settings("StreamingFileSink.for_row_format()", base_path, encoder)
        return StreamingFileSink.DefaultRowFormatBuilder(settings)

    @staticmethod
    def for_bulk_format(
        base_path: str, writer_factory: BulkWriterFactory
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        """Build a sink that writes records many at a time: Parquet, Avro, ORC, Arrow."""
        settings = bulk_settings("StreamingFileSink.for_bulk_format()", base_path, writer_factory)
        return StreamingFileSink.DefaultBulkFormatBuilder(settings)

    def invoke(self, value: Any, context: Any) -> None:
        """Never called: `add_sink` runs `as_sink()`."""
        raise GraphError("A StreamingFileSink belongs in add_sink().")

    def as_sink(self) -> FileSink[Any]:
        """Return the sink that `add_sink` runs."""
        return FileSink(self._settings)
