"""Bulk writers of the file sink: Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from rekindle.common.serialization import BulkWriter, BulkWriterFactory
from rekindle.common.type_system.fields import ColumnsOf, columns_of
from rekindle.common.typeinfo import TypeInformation
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
    def for_row_type(row_type: Any, compression: str = "snappy") -> BulkWriterFactory:
        """Return a writer factory for records of a row, tuple or class type, or of a `pyarrow.Schema`."""
        return _ColumnarFactory("ParquetBulkWriters.for_row_type()", row_type, compression, parquet=True)


class ArrowBulkWriters:
    """Writers of Arrow IPC files (also known as Feather).

    >>> factory = ArrowBulkWriters.for_row_type(tuple[str, int])
    """

    @staticmethod
    def for_row_type(row_type: Any, compression: str | None = None) -> BulkWriterFactory:
        """Return a writer factory, as `ParquetBulkWriters.for_row_type` does. Compression is `lz4` or `zstd`."""
        return _ColumnarFactory("ArrowBulkWriters.for_row_type()", row_type, compression, parquet=False)


class _ColumnarFactory(BulkWriterFactory):
    def __init__(self, where: str, row_type: Any, compression: str | None, parquet: bool) -> None:
        import pyarrow as pa

        from rekindle.datastream.connectors.files.arrow_types import arrow_schema

        self._type_info: TypeInformation | None = None
        if isinstance(row_type, pa.Schema):
            self._schema = row_type
        else:
            self._type_info = declared_type(where, row_type)
            if self._type_info is None:
                raise GraphError(f"{where} takes the records' type, or a pyarrow.Schema.")
            self._schema = arrow_schema(self._type_info)
        if compression is not None and not _is_available(compression):
            raise GraphError(f"{where}: pyarrow has no compression {compression!r} here; try 'zstd' or 'lz4'.")
        self._compression = compression
        self._parquet = parquet

    def create(self, file: BinaryIO) -> BulkWriter:
        import pyarrow as pa
        import pyarrow.parquet as pq

        writer: Any
        if self._parquet:
            writer = pq.ParquetWriter(file, self._schema, compression=self._compression or "none")
        else:
            options = pa.ipc.IpcWriteOptions(compression=self._compression)
            writer = pa.ipc.new_file(file, self._schema, options=options)
        columns = columns_of(self._type_info) if self._type_info is not None else _columns_by_name(self._schema.names)
        return _ColumnarWriter(writer, self._schema, columns)


def _is_available(compression: str) -> bool:
    import pyarrow as pa

    try:
        return bool(pa.Codec.is_available(compression))
    except (ValueError, TypeError):
        return False


class _ColumnarWriter(BulkWriter):
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
