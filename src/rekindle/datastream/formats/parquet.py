"""Parquet files under PyFlink's names."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rekindle.common.configuration import Configuration
from rekindle.common.data_types import RowType
from rekindle.datastream.connectors.files.bulk import ParquetBulkWriters
from rekindle.datastream.connectors.files.columnar import ParquetFormat
from rekindle.datastream.formats.avro_parquet import AvroParquetReaders, AvroParquetWriters
from rekindle.errors import ConnectorError, GraphError

__all__ = ["AvroParquetReaders", "AvroParquetWriters", "ParquetBulkWriters", "ParquetColumnarRowInputFormat"]


class ParquetColumnarRowInputFormat(ParquetFormat):
    """Reads Parquet files as rows with the columns of a type, for `FileSource.for_bulk_file_format`.

    >>> from rekindle.table.types import DataTypes
    >>> row_type = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])
    >>> ParquetColumnarRowInputFormat(row_type).get_produced_type(None)
    Row<a: Integer, b: String>

    :param row_type: the columns to read.
    :param hadoop_config: accepted without effect: there is no Hadoop here.
    :param batch_size: the number of rows that are read at once.
    :param is_utc_timestamp: accepted without effect: a timestamp without a time zone is read as it is written.
    :param is_case_sensitive: whether the names of the columns must be written as in the files.
    """

    def __init__(
        self,
        row_type: RowType,
        hadoop_config: Configuration | None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        if not isinstance(row_type, RowType):
            raise GraphError(
                f"ParquetColumnarRowInputFormat takes a RowType, such as DataTypes.ROW(), not {row_type!r}."
            )
        if not isinstance(batch_size, int) or batch_size < 1:
            raise GraphError(f"ParquetColumnarRowInputFormat takes a batch_size of 1 or more, not {batch_size!r}.")
        super().__init__(row_type.to_type_info(), None, batch_size)
        self._case_sensitive = is_case_sensitive

    def _chosen(self, schema: Any, path: str) -> Any:
        if self._case_sensitive:
            return super()._chosen(schema, path)
        by_lower_name = {name.lower(): name for name in schema.names}
        missing = [name for name in self._columns or () if name.lower() not in by_lower_name]
        if missing:
            raise ConnectorError(f"{path} has no column '{missing[0]}': it has {', '.join(schema.names)}.")
        return pa.schema([schema.field(by_lower_name[name.lower()]) for name in self._columns or ()])
