"""Avro's generic records in Parquet files: `AvroParquetReaders`, `AvroParquetWriters`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from rekindle.common.serialization import BulkWriter, BulkWriterFactory
from rekindle.datastream.connectors.files.columnar import ParquetFormat
from rekindle.datastream.connectors.files.formats import RecordReader, StreamFormat
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.formats.avro_columns import AvroColumn, avro_column
from rekindle.datastream.formats.avro_records import UNFIT, GenericRecordAvroTypeInfo
from rekindle.datastream.formats.avro_schemas import AvroSchema, bare
from rekindle.datastream.formats.mismatch import shown
from rekindle.errors import GraphError, SerializationError

#: Where Java's readers of Parquet find the schema of the records.
_SCHEMA_KEYS = (b"parquet.avro.schema", b"avro.schema")


class AvroParquetReaders:
    """Formats that read Avro's generic records from Parquet files.

    >>> schema = AvroSchema('{"type": "record", "name": "Click", "fields": [{"name": "n", "type": "int"}]}')
    >>> AvroParquetReaders.for_generic_record(schema).get_produced_type(None)
    Avro<Click>
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Return the format of records with this schema, which are dicts."""
        return _AvroParquetFormat(GenericRecordAvroTypeInfo(schema))


class AvroParquetWriters:
    """Writers of Avro's generic records into Parquet files.

    >>> schema = AvroSchema('{"type": "record", "name": "Click", "fields": [{"name": "n", "type": "int"}]}')
    >>> factory = AvroParquetWriters.for_generic_record(schema)
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema, compression: str = "snappy") -> BulkWriterFactory:
        """Return a writer factory for records of the schema: dicts, lists and plain values."""
        _record_column(str(schema))
        return _AvroParquetFactory(str(schema), compression)


class _AvroParquetFormat(StreamFormat):
    def __init__(self, type_info: GenericRecordAvroTypeInfo) -> None:
        self._type_info = type_info
        _record_column(str(type_info.get_schema()))

    def open(self, split: FileSplit) -> RecordReader:
        return _Rows(_record_column(str(self._type_info.get_schema()))).open(split)

    def is_splittable(self, path: str) -> bool:
        return True

    def get_produced_type(self, path: str | None) -> GenericRecordAvroTypeInfo:
        return self._type_info


class _Rows(ParquetFormat):
    """Reads rows as the dicts of a record's column."""

    def __init__(self, column: AvroColumn) -> None:
        super().__init__(None, None)
        self._column = column

    def _chosen(self, schema: Any, path: str) -> Any:
        """Choose the fields that the file has: others are None."""
        wanted = [field.name for field in self._column.arrow if field.name in schema.names]
        return pa.schema([schema.field(name) for name in wanted])

    def _maker(self, schema: Any, path: str) -> Callable[[Any], list[Any]]:
        read = self._column.read
        assert read is not None, "a record is converted"
        return lambda batch: [read(record) for record in batch.to_pylist()]


class _AvroParquetFactory(BulkWriterFactory):
    def __init__(self, schema_string: str, compression: str) -> None:
        self._schema_string = schema_string
        self._compression = compression

    def create(self, file: BinaryIO) -> BulkWriter:
        column = _record_column(self._schema_string)
        metadata = dict.fromkeys(_SCHEMA_KEYS, self._schema_string.encode())
        schema = pa.schema(list(column.arrow), metadata=metadata)
        return _AvroParquetWriter(pq.ParquetWriter(file, schema, compression=self._compression), schema, column)


class _AvroParquetWriter(BulkWriter):
    def __init__(self, writer: Any, schema: Any, column: AvroColumn) -> None:
        self._writer = writer
        self._schema = schema
        self._column = column

    def add_elements(self, elements: list[Any]) -> None:
        if elements:
            self._writer.write_batch(self._batch(elements))

    def finish(self) -> None:
        self._writer.close()

    def _batch(self, elements: list[Any]) -> Any:
        write = self._column.write
        assert write is not None, "a record is converted"
        try:
            array = pa.array([write(element) for element in elements], self._column.arrow)
            return pa.record_batch(array.flatten(), schema=self._schema)
        except (pa.ArrowException, *UNFIT) as error:
            if len(elements) == 1:
                raise SerializationError(
                    f"The record is not of its Avro schema: {str(error).rstrip('.')}; "
                    f"the record is {shown(repr(elements[0]))}."
                ) from None
        for element in elements:
            self._batch([element])  # raises for the one that does not fit
        raise AssertionError("a batch of records failed to convert, but each of its records converts")


def _record_column(schema_string: str) -> AvroColumn:
    column = avro_column(bare(schema_string))
    if column.kind != "record":
        raise GraphError(f"The Avro schema of a Parquet file must be a record, not {column.kind}.")
    return column
