"""Parquet and ORC files of rows under PyFlink's names."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from pyarrow import orc

from rekindle.common import Configuration, Row
from rekindle.common.time import Instant
from rekindle.datastream.connectors.base import SourceReaderContext
from rekindle.datastream.connectors.file_system import FileSource
from rekindle.datastream.formats.orc import OrcBulkWriters
from rekindle.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from rekindle.errors import ConnectorError, GraphError
from rekindle.table import DataTypes
from rekindle.table.types import RowType

NOON = dt.datetime(1970, 1, 2, 12, 4, 5, 600000)
ROW_TYPE = DataTypes.ROW(
    [
        DataTypes.FIELD("char", DataTypes.CHAR(10)),
        DataTypes.FIELD("varbinary", DataTypes.VARBINARY(10)),
        DataTypes.FIELD("boolean", DataTypes.BOOLEAN()),
        DataTypes.FIELD("decimal", DataTypes.DECIMAL(2, 0)),
        DataTypes.FIELD("int", DataTypes.INT()),
        DataTypes.FIELD("double", DataTypes.DOUBLE()),
        DataTypes.FIELD("date", DataTypes.DATE().bridged_to("java.sql.Date")),
        DataTypes.FIELD("timestamp", DataTypes.TIMESTAMP(3).bridged_to("java.sql.Timestamp")),
        DataTypes.FIELD("timestamp_ltz", DataTypes.TIMESTAMP_LTZ(3)),
        DataTypes.FIELD("texts", DataTypes.ARRAY(DataTypes.STRING())),
        DataTypes.FIELD("map", DataTypes.MAP(DataTypes.INT(), DataTypes.STRING())),
    ]
)
VALUES = {
    "char": "char",
    "varbinary": b"bytes",
    "boolean": True,
    "decimal": Decimal("1.5"),
    "int": 2147483647,
    "double": 2e-308,
    "date": dt.date(1970, 1, 1),
    "timestamp": NOON,
    "timestamp_ltz": Instant.of_epoch_milli(1700000000123),
    "texts": ["a", "b"],
    "map": {0: "a", 1: "b"},
}
ROUNDED = Row(**{**VALUES, "decimal": Decimal(2)})
NOTHING = Row(**dict.fromkeys(VALUES))


def write(path: Path, factory: Any, rows: list[Any]) -> None:
    with path.open("wb") as file:
        writer = cloudpickle.loads(cloudpickle.dumps(factory)).create(file)
        writer.add_elements(rows)
        writer.finish()


def read(path: Path, row_type: RowType, **settings: Any) -> list[Any]:
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(row_type, **settings), str(path)).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    return [record for polled in iter(lambda: reader.poll(2), None) for record in polled]


def test_rows_in_parquet_files_come_back_and_decimals_are_rounded_as_flink_does(tmp_path: Path) -> None:
    factory = ParquetBulkWriters.for_row_type(ROW_TYPE, hadoop_config=Configuration(), utc_timestamp=True)
    write(tmp_path / "rows.parquet", factory, [Row(**VALUES), NOTHING, Row(**VALUES)])
    assert read(tmp_path / "rows.parquet", ROW_TYPE, batch_size=2) == [ROUNDED, NOTHING, ROUNDED]


def test_columns_are_chosen_with_or_without_their_case(tmp_path: Path) -> None:
    write(tmp_path / "rows.parquet", ParquetBulkWriters.for_row_type(ROW_TYPE), [Row(**VALUES)])
    other = DataTypes.ROW([DataTypes.FIELD("INT", DataTypes.INT()), DataTypes.FIELD("Char", DataTypes.STRING())])
    assert read(tmp_path / "rows.parquet", other, is_case_sensitive=False) == [Row(INT=2147483647, Char="char")]
    with pytest.raises(ConnectorError, match="has no column 'INT'"):
        read(tmp_path / "rows.parquet", other)
    with pytest.raises(GraphError, match="takes a RowType"):
        ParquetColumnarRowInputFormat("rows")  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", ["zlib", "none", "zstd"])
def test_rows_in_orc_files_come_back(tmp_path: Path, compression: str) -> None:
    factory = OrcBulkWriters.for_row_type(ROW_TYPE, {"orc.compress": compression})
    write(tmp_path / "rows.orc", factory, [Row(**VALUES), NOTHING])
    file = orc.ORCFile(str(tmp_path / "rows.orc"))
    first, second = file.read().to_pylist()
    assert first["decimal"] == 2
    assert first["timestamp"].replace(tzinfo=None) == NOON
    assert (first["char"], first["varbinary"], first["texts"]) == ("char", b"bytes", ["a", "b"])
    assert dict(first["map"]) == {0: "a", 1: "b"}
    assert set(second.values()) == {None}
    assert file.compression.lower() == ("uncompressed" if compression == "none" else compression)


def test_what_orc_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="row_type must be an instance of RowType"):
        OrcBulkWriters.for_row_type("rows")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="the column 'at'"):
        OrcBulkWriters.for_row_type(DataTypes.ROW([DataTypes.FIELD("at", DataTypes.TIME())]))
    with pytest.raises(GraphError, match=r"orc\.compress is one of"):
        OrcBulkWriters.for_row_type(ROW_TYPE, {"orc.compress": "rar"})
