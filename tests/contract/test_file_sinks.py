"""The file sink keeps the contract of every sink that promises exactly once, in each kind of format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Encoder, Types
from rekindle.datastream.connectors.base import SourceReaderContext
from rekindle.datastream.connectors.file_system import (
    BucketAssigner,
    BulkFormat,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    ParquetBulkWriters,
    RollingPolicy,
    StreamFormat,
)
from rekindle.testing.sink_contract import SinkContract, SinkUnderTest

ROW = Types.TUPLE([Types.LONG()])


def read(source: FileSource[Any]) -> list[Any]:
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    return [record for polled in iter(lambda: reader.poll(100), None) for record in polled]


def readable(directory: Path) -> str:
    directory.mkdir(exist_ok=True)
    return str(directory)


class TestRows(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkUnderTest:
        out = tmp_path / "out"
        builder = FileSink.for_row_format(str(out), Encoder.json_lines_encoder())
        builder.with_bucket_assigner(BucketAssigner.of(lambda number: f"rest={number % 3}"))
        builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4))
        json = StreamFormat.json_lines_format(int)
        return SinkUnderTest(
            builder.build, lambda: read(FileSource.for_record_stream_format(json, readable(out)).build())
        )


class TestTables(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkUnderTest:
        out = tmp_path / "out"
        builder = FileSink.for_bulk_format(str(out), ParquetBulkWriters.for_row_type(ROW))
        builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        parquet = BulkFormat.parquet_format(ROW)
        return SinkUnderTest(
            builder.build,
            lambda: read(FileSource.for_bulk_file_format(parquet, readable(out)).build()),
            records=[(number,) for number in range(24)],
        )


class TestCompactedRows(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkUnderTest:
        out = tmp_path / "out"
        builder = FileSink.for_row_format(str(out), Encoder.json_lines_encoder())
        builder.with_bucket_assigner(BucketAssigner.of(lambda number: f"rest={number % 3}"))
        builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4))
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).set_num_compact_threads(2).build()
        builder.enable_compact(strategy, FileCompactor.concat_file_compactor())
        json = StreamFormat.json_lines_format(int)
        return SinkUnderTest(
            builder.build, lambda: read(FileSource.for_record_stream_format(json, readable(out)).build())
        )
