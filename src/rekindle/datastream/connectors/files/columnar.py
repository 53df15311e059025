"""Readers of Parquet files (by row groups) and Arrow files (by record batches). Offsets count rows of the split."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rekindle.common.type_system.fields import RecordMaker, fields_of, from_arrow, record_maker
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.files.arrow_types import row_type
from rekindle.datastream.connectors.files.formats import BulkFormat, RecordReader
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.connectors.files.streams import check_unchanged, opened
from rekindle.errors import ConnectorError, GraphError

_BATCH_ROWS = 8192


class ColumnarFormat(BulkFormat):
    """The base of Parquet and Arrow formats: turns columns, found by name, into records."""

    def __init__(
        self, type_info: TypeInformation | None, columns: Sequence[str] | None, batch_rows: int = _BATCH_ROWS
    ) -> None:
        self._type_info = type_info
        self._batch_rows = batch_rows
        self._columns = list(columns) if columns is not None else None
        if type_info is None:
            return
        fields = fields_of(type_info)
        if fields is None:
            raise GraphError(f"A table's rows have fields: {type_info!r} has none; declare Types.ROW_NAMED or a class.")
        if columns is None:
            self._columns = [name for name, _ in fields]
        elif len(fields) != len(columns):
            raise GraphError(f"{type_info!r} has {len(fields)} fields for {len(columns)} columns.")

    def open(self, split: FileSplit) -> RecordReader:
        """Return a reader of rows."""
        file = opened(split.path, lambda path: pa.OSFile(path, "rb"))
        try:
            with _naming_file(split.path):
                check_unchanged(split, file.size())
                return _Rows(split, file, self._batches, self._maker)
        except BaseException:
            file.close()
            raise

    def get_produced_type(self, path: str | None) -> TypeInformation | None:
        """Return the declared type, or the type of rows with the columns of the first file."""
        if self._type_info is not None or path is None:
            return self._type_info
        with _naming_file(path), opened(path, lambda name: pa.OSFile(name, "rb")) as file:
            return row_type(self._chosen(self._schema(file), path), path)

    @abstractmethod
    def _schema(self, file: Any) -> Any:
        """Return the file's schema."""

    @abstractmethod
    def _batches(self, file: Any, split: FileSplit, skip: int) -> tuple[Any, Iterator[Any], int]:
        """Return the schema of the chosen columns, the split's record batches, and the number of rows to skip first."""

    def _chosen(self, schema: Any, path: str) -> Any:
        if self._columns is None:
            return schema
        missing = [name for name in self._columns if name not in schema.names]
        if missing:
            raise ConnectorError(f"{path} has no column '{missing[0]}': it has {', '.join(schema.names)}.")
        return pa.schema([schema.field(name) for name in self._columns])

    def _maker(self, schema: Any, path: str) -> Callable[[Any], list[Any]]:
        type_info = self._type_info or row_type(schema, path)
        make: RecordMaker = record_maker(type_info)
        parts = [part for _, part in fields_of(type_info) or ()]
        converts = [from_arrow(part) for part in parts]

        def make_rows(batch: Any) -> list[Any]:
            columns = []
            for name, convert in zip(schema.names, converts, strict=True):
                values = _python_values(batch.column(name))
                columns.append(values if convert is None else list(map(convert, values)))
            return make(zip(*columns, strict=True))

        return make_rows


class ParquetFormat(ColumnarFormat):
    """Reads Parquet files."""

    def is_splittable(self, path: str) -> bool:
        """Return True: row groups are read independently."""
        return True

    def _schema(self, file: Any) -> Any:
        return pq.ParquetFile(file).schema_arrow

    def _batches(self, file: Any, split: FileSplit, skip: int) -> tuple[Any, Iterator[Any], int]:
        parquet = pq.ParquetFile(file)
        schema = self._chosen(parquet.schema_arrow, split.path)
        groups: list[int] = []
        for index in range(parquet.metadata.num_row_groups):
            group = parquet.metadata.row_group(index)
            if not split.begin <= _middle(group) < split.end:
                continue
            if not groups and skip >= group.num_rows:
                skip -= group.num_rows
            else:
                groups.append(index)
        if not groups:
            return schema, iter(()), 0
        return schema, parquet.iter_batches(self._batch_rows, row_groups=groups, columns=schema.names), skip


class ArrowFormat(ColumnarFormat):
    """Reads Arrow IPC files."""

    def _schema(self, file: Any) -> Any:
        return pa.ipc.open_file(file).schema

    def _batches(self, file: Any, split: FileSplit, skip: int) -> tuple[Any, Iterator[Any], int]:
        arrow = pa.ipc.open_file(file)
        batches = (arrow.get_batch(index) for index in range(arrow.num_record_batches))
        return self._chosen(arrow.schema, split.path), batches, skip


class _Rows:
    """Reads record batches and returns records."""

    def __init__(self, split: FileSplit, file: Any, batches: Any, maker: Any) -> None:
        self._path = split.path
        self._file = file
        self.offset = split.offset or 0
        schema, self._batches, self._skip = batches(file, split, self.offset)
        self._make = maker(schema, split.path)
        self._records: list[Any] = []
        self._returned = 0

    def read(self, max_records: int) -> list[Any]:
        while self._returned == len(self._records):
            with _naming_file(self._path):
                batch = next(self._batches, None)
            if batch is None:
                return []
            skipped = min(self._skip, batch.num_rows)
            self._skip -= skipped
            self._records, self._returned = self._make(batch.slice(skipped)), 0
        records = self._records[self._returned : self._returned + max_records]
        self._returned += len(records)
        self.offset += len(records)
        return records

    def close(self) -> None:
        self._file.close()


def _middle(group: Any) -> int:
    """Return the offset of the middle of a row group. The split that contains it reads the group."""
    columns = [group.column(index) for index in range(group.num_columns)]
    begins = [min(filter(None, (each.dictionary_page_offset, each.data_page_offset))) for each in columns]
    return int(min(begins) + sum(each.total_compressed_size for each in columns) // 2)


def _python_values(column: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)  # Python's datetimes have no nanoseconds
    values: list[Any] = column.to_pylist()
    return values


@contextmanager
def _naming_file(path: str) -> Iterator[None]:
    """Turn an error of pyarrow into a ConnectorError that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ConnectorError(f"{path} is damaged, or no file of this format: {error}.") from error
