"""Files of Avro's generic records under PyFlink's names: `AvroInputFormat` reads, `AvroBulkWriters` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from rekindle.common.io import InputFormat
from rekindle.common.serialization import BulkWriter, BulkWriterFactory
from rekindle.datastream.connectors.files.formats import BulkFormat, RecordReader
from rekindle.datastream.connectors.files.source import FileSource
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.connectors.files.streams import check_unchanged, opened
from rekindle.datastream.formats.avro_records import UNFIT, GenericRecordAvroTypeInfo
from rekindle.datastream.formats.avro_schemas import AvroSchema, bare, fastavro_package
from rekindle.datastream.formats.mismatch import shown
from rekindle.errors import ConnectorError, GraphError, SerializationError

#: The bytes of a block of a file: large enough for compression, small enough to skip to a position in it.
_BLOCK_BYTES = 64_000


class AvroInputFormat(InputFormat):
    """Reads a file, or the files of a directory, of Avro records as dicts; for `env.create_input`.

    A record is read into the fields of the schema by Avro's rules; fields that the writer did not have get their
    defaults.

    >>> schema = AvroSchema('{"type": "record", "name": "Click", "fields": [{"name": "n", "type": "int"}]}')
    >>> AvroInputFormat("/data/clicks.avro", schema).get_produced_type()
    Avro<Click>
    """

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self._path = path
        self._type_info = GenericRecordAvroTypeInfo(schema)

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """Return the type of the records."""
        return self._type_info

    def as_source(self) -> FileSource[Any]:
        """Return the source that `create_input` reads."""
        return FileSource.for_bulk_file_format(AvroFileFormat(self._type_info), self._path).build()


class AvroFileFormat(BulkFormat):
    """Reads Avro's files, block by block. A block belongs to the split in which it begins."""

    def __init__(self, type_info: GenericRecordAvroTypeInfo) -> None:
        self._type_info = type_info

    def open(self, split: FileSplit) -> RecordReader:
        """Return a reader of records."""
        return _AvroRecords(split, bare(str(self._type_info.get_schema())))

    def is_splittable(self, path: str) -> bool:
        """Return True: blocks are decoded independently."""
        return True

    def get_produced_type(self, path: str | None) -> GenericRecordAvroTypeInfo:
        """Return the type of the records."""
        return self._type_info


class _AvroRecords:
    """Reads the records of a split. The offset counts them."""

    def __init__(self, split: FileSplit, schema: Any) -> None:
        self.offset = split.offset or 0
        self._skip = self.offset
        self._split = split
        self._file = opened(split.path, lambda path: open(path, "rb"))
        try:
            check_unchanged(split, self._file.seek(0, 2))
            self._file.seek(0)
            self._blocks = self._own_blocks(fastavro_package().block_reader(self._file, schema))
        except Exception as error:
            self._file.close()
            raise self._damaged(error) from error
        self._records: list[Any] = []
        self._returned = 0

    def read(self, max_records: int) -> list[Any]:
        while self._returned == len(self._records):
            try:
                block = next(self._blocks, None)
                if block is None:
                    return []
                records = list(block)
            except Exception as error:  # fastavro raises errors of many kinds for bytes that are no records
                raise self._damaged(error) from error
            self._records, self._skip, self._returned = records, 0, self._skip
        found = self._records[self._returned : self._returned + max_records]
        self._returned += len(found)
        self.offset += len(found)
        return found

    def close(self) -> None:
        self._file.close()

    def _own_blocks(self, blocks: Iterator[Any]) -> Iterator[Any]:
        for block in blocks:
            if block.offset >= self._split.end:
                return
            if block.offset < self._split.begin:
                continue
            if self._skip >= block.num_records:
                self._skip -= block.num_records
            else:
                yield block

    def _damaged(self, error: Exception) -> ConnectorError:
        if isinstance(error, ConnectorError):
            return error
        problem = f"{type(error).__name__}: {error}".rstrip(": .")
        return ConnectorError(f"{self._split.path} is damaged, or no Avro file of this schema: {problem}.")


class AvroBulkWriters:
    """Writers of Avro files.

    >>> schema = AvroSchema('{"type": "record", "name": "Click", "fields": [{"name": "n", "type": "int"}]}')
    >>> factory = AvroBulkWriters.for_generic_record(schema)
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema, compression: str = "null") -> BulkWriterFactory:
        """Return a writer factory for records of the schema: dicts, lists and plain values.

        Compression is `null` (none), `deflate`, or another of fastavro's.
        """
        if not isinstance(schema, AvroSchema):
            raise GraphError(f"AvroBulkWriters.for_generic_record() takes an AvroSchema, not {schema!r}.")
        return _AvroWriterFactory(str(schema), compression)


class _AvroWriterFactory(BulkWriterFactory):
    def __init__(self, schema_string: str, compression: str) -> None:
        self._schema_string = schema_string
        self._compression = compression

    def create(self, file: BinaryIO) -> BulkWriter:
        package = fastavro_package()
        schema = package.parse_schema(bare(self._schema_string))
        try:
            return _AvroWriter(package.write.Writer(file, schema, self._compression, _BLOCK_BYTES))
        except ValueError as error:
            raise GraphError(f"AvroBulkWriters has no compression '{self._compression}': {error}.") from None


class _AvroWriter(BulkWriter):
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def add_elements(self, elements: list[Any]) -> None:
        for element in elements:
            try:
                self._writer.write(element)
            except UNFIT as error:
                raise SerializationError(
                    f"The record is not of its Avro schema: {str(error).rstrip('.')}; "
                    f"the record is {shown(repr(element))}."
                ) from None

    def finish(self) -> None:
        self._writer.flush()
