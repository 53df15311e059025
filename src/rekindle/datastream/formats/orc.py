"""ORC files under PyFlink's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from rekindle.common.configuration import Configuration
from rekindle.common.data_types import RowType
from rekindle.common.serialization import BulkWriter, RowDataBulkWriterFactory
from rekindle.datastream.connectors.files.bulk import ColumnarWriter, columnar_columns, hadoop_settings
from rekindle.errors import GraphError

__all__ = ["OrcBulkWriters"]

#: ORC's own setting of the compression.
_COMPRESSION_KEY = "orc.compress"
_COMPRESSIONS = ("none", "zlib", "snappy", "lz4", "zstd")


class OrcBulkWriters:
    """Writers of ORC files.

    >>> from rekindle.table.types import DataTypes
    >>> factory = OrcBulkWriters.for_row_type(DataTypes.ROW([DataTypes.FIELD("word", DataTypes.STRING())]))
    """

    @staticmethod
    def for_row_type(
        row_type: RowType,
        writer_properties: Configuration | Mapping[str, str] | None = None,
        hadoop_config: Configuration | Mapping[str, str] | None = None,
    ) -> RowDataBulkWriterFactory:
        """Return a writer factory for rows of the type.

        :param writer_properties: ORC's settings, of which `orc.compress` counts: none, zlib, snappy, lz4 or zstd.
        :param hadoop_config: accepted without effect: there is no Hadoop here.
        """
        if not isinstance(row_type, RowType):
            raise TypeError("row_type must be an instance of RowType")
        given = hadoop_settings(writer_properties)
        compression = str(given.get(_COMPRESSION_KEY, "zlib")).lower()
        if compression not in _COMPRESSIONS:
            raise GraphError(f"{_COMPRESSION_KEY} is one of {', '.join(_COMPRESSIONS)}, not '{compression}'.")
        return _OrcFactory(row_type, "uncompressed" if compression == "none" else compression)


class _OrcFactory(RowDataBulkWriterFactory):
    def __init__(self, row_type: RowType, compression: str) -> None:
        from pyarrow import types

        self._row_type = row_type
        self._compression = compression
        schema, _ = columnar_columns("OrcBulkWriters.for_row_type()", row_type)
        for field in schema:
            if types.is_time(field.type):
                raise GraphError(f"ORC has no times of a day: make the column '{field.name}' a TIMESTAMP or a STRING.")

    def get_row_type(self) -> RowType:
        return self._row_type

    def create(self, file: BinaryIO) -> BulkWriter:
        from pyarrow import orc

        schema, columns = columnar_columns("OrcBulkWriters.for_row_type()", self._row_type)
        return ColumnarWriter(_OrcBatches(orc.ORCWriter(file, compression=self._compression)), schema, columns)


class _OrcBatches:
    """pyarrow's writer of ORC files, with the methods that its other writers have."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write_batch(self, batch: Any) -> None:
        import pyarrow as pa

        self._writer.write(pa.Table.from_batches([batch]))

    def close(self) -> None:
        self._writer.close()
