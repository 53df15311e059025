"""Bulk writers of the file sink: Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from rekindle.common.configuration import Configuration
from rekindle.common.data_types import RowType
from rekindle.common.serialization import BulkWriter, BulkWriterFactory, RowDataBulkWriterFactory
from rekindle.common.type_system.fields import ColumnsOf, columns_of
from rekindle.common.types import Row
from rekindle.datastream.validation import declared_type
from rekindle.errors import GraphError, TypeMismatchError

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetBulkWriters:
    """Writers of Parquet files.

    >>> factory = ParquetBulkWriters.for_row_type(tuple[str, int])
    """

    @staticmethod
    def for_row_type(
        row_type: Any,
        hadoop_config: Configuration | Mapping[str, str] | None = None,
        utc_timestamp: bool = False,
        compression: str = "snappy",
    ) -> BulkWriterFactory:
        """Return a writer factory for records of a row, tuple or class type, a `RowType`, or a `pyarrow.Schema`.

        Of `hadoop_config` the setting `parquet.compression` counts. `utc_timestamp` has no effect: a timestamp without
        a time zone is written as it is.
        """
        chosen = str(hadoop_settings(hadoop_config).get("parquet.compression", compression)).lower()
        return _ColumnarFactory("ParquetBulkWriters.for_row_type()", row_type, chosen, parquet=True)


def hadoop_settings(given: Configuration | Mapping[str, str] | None) -> Mapping[str, str]:
    """Return settings of Hadoop's formats by name."""
    if given is None:
        return {}
    return given.to_dict() if isinstance(given, Configuration) else given


class ArrowBulkWriters:
    """Writers of Arrow IPC files (also known as Feather).

    >>> factory = ArrowBulkWriters.for_row_type(tuple[str, int])
    """

    @staticmethod
    def for_row_type(row_type: Any, compression: str | None = None) -> BulkWriterFactory:
        """Return a writer factory, as `ParquetBulkWriters.for_row_type` does. Compression is `lz4` or `zstd`."""
        return _ColumnarFactory("ArrowBulkWriters.for_row_type()", row_type, compression, parquet=False)


class _ColumnarFactory(RowDataBulkWriterFactory):
    def __init__(self, where: str, row_type: Any, compression: str | None, parquet: bool) -> None:
        self._where = where
        self._row_type = row_type
        columnar_columns(where, row_type)  # refuses what is no type of rows
        if compression is not None and not _is_available(compression):
            raise GraphError(f"{where}: pyarrow has no compression {compression!r} here; try 'zstd' or 'lz4'.")
        self._compression = compression
        self._parquet = parquet

    def get_row_type(self) -> Any:
        return self._row_type

    def create(self, file: BinaryIO) -> BulkWriter:
        import pyarrow as pa
        import pyarrow.parquet as pq

        writer: Any
        schema, columns = columnar_columns(self._where, self._row_type)
        if self._parquet:
            writer = pq.ParquetWriter(file, schema, compression=self._compression or "none")
        else:
            options = pa.ipc.IpcWriteOptions(compression=self._compression)
            writer = pa.ipc.new_file(file, schema, options=options)
        return ColumnarWriter(writer, schema, columns)


def columnar_columns(where: str, row_type: Any) -> tuple[Any, ColumnsOf]:
    """Return the schema of a file of records of a type, and the function that makes columns of records."""
    import pyarrow as pa

    from rekindle.datastream.connectors.files.arrow_types import arrow_schema
    from rekindle.datastream.connectors.files.table_columns import columns_of_row_type, schema_of_row_type

    if isinstance(row_type, pa.Schema):
        return row_type, _columns_by_name(row_type.names)
    if isinstance(row_type, RowType):
        return schema_of_row_type(row_type), columns_of_row_type(row_type)
    type_info = declared_type(where, row_type)
    if type_info is None:
        raise GraphError(f"{where} takes the records' type, or a pyarrow.Schema.")
    return arrow_schema(type_info), columns_of(type_info)


def _is_available(compression: str) -> bool:
    import pyarrow as pa

    try:
        return bool(pa.Codec.is_available(compression))
    except (ValueError, TypeError):
        return False


class ColumnarWriter(BulkWriter):
    """Writes records as batches of columns."""

    def __init__(self, writer: Any, schema: pa.Schema, columns: ColumnsOf) -> None:
        self._writer = writer
        self._schema = schema
        self._columns = columns

    def add_elements(self, elements: list[Any]) -> None:
        import pyarrow as pa

        if not elements:
            return
        columns = self._columns(elements)
        arrays = []
        for field, column in zip(self._schema, columns, strict=True):
            try:
                arrays.append(pa.array(column, field.type))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise TypeMismatchError(
                    f"Column '{field.name}' holds {field.type}, not {_misfit(column, field.type)!r}: {error}."
                ) from error
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))

    def finish(self) -> None:
        self._writer.close()


def _misfit(column: Sequence[Any], kind: Any) -> Any:
    """Return the first value that the column cannot hold."""
    import pyarrow as pa

    for value in column:
        try:
            pa.array([value], kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return value
    raise AssertionError("a column failed to convert, but each of its values converts")


def _columns_by_name(names: list[str]) -> ColumnsOf:
    """Return a function that turns rows, dicts, sequences or objects into columns, in the order of `names`."""

    def values(element: Any) -> Sequence[Any]:
        if isinstance(element, Row):
            return element.get_fields_by_names(names)
        if isinstance(element, dict):
            return [element.get(name) for name in names]
        if isinstance(element, list | tuple) and not hasattr(element, "_fields"):
            return element
        return [getattr(element, name) for name in names]

    return lambda elements: list(zip(*map(values, elements), strict=True))
