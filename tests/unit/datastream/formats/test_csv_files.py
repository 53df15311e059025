"""Files of CSV under PyFlink's names: schemas, reading at any position, writing as Jackson does."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from rekindle.common import Encoder, Row, Types
from rekindle.datastream.connectors.base import SourceReaderContext
from rekindle.datastream.connectors.file_system import FileEnumeratorProvider, FileSource, StreamFormat
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from rekindle.errors import ConnectorError, GraphError
from rekindle.table.types import DataTypes


def read(schema: CsvSchema, path: Path, text: str) -> list[tuple[Any, ...]]:
    path.write_bytes(text.encode())
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(path)).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    return [tuple(record) for polled in iter(lambda: reader.poll(2), None) for record in polled]


def written(schema: CsvSchema, rows: list[Any], path: Path) -> str:
    with path.open("wb") as file:
        factory = cloudpickle.loads(cloudpickle.dumps(CsvBulkWriters.for_schema(schema)))
        writer = factory.create(file)
        writer.add_elements(rows)
        writer.finish()
    return path.read_bytes().decode()


NUMBERS = (
    CsvSchema.builder()
    .add_number_column("tiny", DataTypes.TINYINT())
    .add_number_column("big", DataTypes.BIGINT())
    .add_number_column("float", DataTypes.FLOAT())
    .add_number_column("double", DataTypes.DOUBLE())
    .add_number_column("decimal", DataTypes.DECIMAL(2, 0))
    .add_boolean_column("flag")
    .add_string_column("text")
    .build()
)


def test_each_kind_of_column_is_read_and_written_as_flink_does(tmp_path: Path) -> None:
    rows = read(NUMBERS, tmp_path / "in.csv", "127,-9223372036854775808,3e38,2e-308,1.5,true,string\n")
    assert rows == [(127, -9223372036854775808, 3.0000000054977558e38, 2e-308, Decimal(2), True, "string")]
    line = written(NUMBERS, rows, tmp_path / "out.csv")
    assert line == "127,-9223372036854775808,3.0E38,2.0E-308,2,true,string\n"


def test_arrays_have_a_separator_per_column(tmp_path: Path) -> None:
    schema = (
        CsvSchema.builder()
        .add_array_column("numbers", ";", DataTypes.INT())
        .add_array_column("flags", ":", DataTypes.BOOLEAN())
        .add_array_column("texts", ",")
        .set_column_separator("|")
        .disable_quote_char()
        .build()
    )
    rows = read(schema, tmp_path / "in.csv", "1;2;3|true:false|a,b,c\n")
    assert [list(row) for row in rows] == [[[1, 2, 3], [True, False], ["a", "b", "c"]]]
    assert written(schema, rows, tmp_path / "out.csv") == "1;2;3|true:false|a,b,c\n"


def test_comments_headers_nulls_quotes_and_escapes(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    pair = CsvSchema.builder().add_string_column("string").add_number_column("number").build()
    builder = CsvSchema.builder().add_columns_from(pair)
    assert len(builder) == pair.size() == 2
    comments = CsvSchema.builder().add_string_column("string").set_allow_comments().build()
    assert read(comments, path, "a\n# none\nb\n") == [("a",), ("b",)]
    assert read(builder.set_use_header().build(), path, "h1,h2\nx,123\n") == [("x", 123)]
    strict = builder.set_strict_headers().build()
    assert read(strict, path, "string,number\nx,123\n") == [("x", 123)]
    with pytest.raises(ConnectorError, match="has the header h1, h2 instead of string, number"):
        read(strict, path, "h1,h2\nx,123\n")
    nulls = CsvSchema.builder().add_columns_from(pair).set_null_value("").build()
    assert read(nulls, path, ",123\n") == [(None, 123)]
    two = CsvSchema.builder().add_string_column("a").add_string_column("b")
    assert read(two.set_quote_char("`").set_column_separator("|").build(), path, "`x|`|`y`\n") == [("x|", "y")]
    escaped = CsvSchema.builder().add_string_column("a").add_string_column("b").set_escape_char("\\").build()
    rows = read(escaped, path, 'string\\,,\\"string2\\"\n')
    assert rows == [("string,", '"string2"')]
    assert written(escaped, rows, tmp_path / "out.csv") == '"string,","""string2"""\n'


CELLS = ["plain", "two\r\nlines", "three\r\n\r\nlines", "\r", "a\rb", "\n", '"quoted"', "", "end\r\n"]
TEXTS = CsvSchema.builder().add_string_column("text").add_number_column("n").build()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_in_quoted_cells_come_back_as_they_were_from_every_position(tmp_path: Path, newline: str) -> None:
    path = tmp_path / "cells.csv"
    lines = ['"' + cell.replace('"', '""') + f'",{n}{newline}' for n, cell in enumerate(CELLS)]
    path.write_bytes("".join(lines).encode())
    expected = [Row(text=cell, n=n) for n, cell in enumerate(CELLS)]
    size = path.stat().st_size
    split = FileSplit(str(path), 0, size, 0, size)
    file_format = CsvReaderFormat.for_schema(TEXTS)
    for first in range(len(CELLS) + 1):
        reader = file_format.open(split)
        begun = [row for _ in range(first) for row in reader.read(1)]
        restored = file_format.open(split.at(reader.offset))
        rest = [row for rows in iter(lambda: restored.read(2), []) for row in rows]  # noqa: B023
        assert begun + rest == expected
        reader.close()
        restored.close()


def test_cells_with_line_ends_survive_the_encoder_and_the_multi_line_format_at_any_split_size(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    encoder = Encoder.csv_encoder()
    path.write_bytes(b"".join(encoder.encode((cell, n)) for n, cell in enumerate(CELLS)))
    row_type = Types.ROW_NAMED(["text", "n"], [Types.STRING(), Types.LONG()])
    multi = StreamFormat.csv_format(row_type, multi_line=True, null_literal="none")
    for split_bytes in range(1, path.stat().st_size + 1):
        builder = FileSource.for_record_stream_format(multi, str(path))
        builder.set_file_enumerator(FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes))
        source = builder.build()
        reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
        rows = [record for polled in iter(lambda: reader.poll(4), None) for record in polled]  # noqa: B023
        assert rows == [Row(text=cell, n=n) for n, cell in enumerate(CELLS)]


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    with pytest.raises(ConnectorError, match=r"in\.csv: a record after offset 0 does not fit its type: field 'n' must"):
        read(TEXTS, path, "a,b\n")
    with pytest.raises(ConnectorError, match="has 3 values where 2 are expected"):
        read(TEXTS, path, "a,1,2\n")
    with pytest.raises(ConnectorError, match="is not CSV"):
        read(TEXTS, path, '"a,1\n')
    with pytest.raises(ConnectorError, match=r"must be DECIMAL\(2, 0\)"):
        read(NUMBERS, path, "1,1,1,1,99.5,true,x\n")
    with pytest.raises(GraphError, match="takes a CsvSchema"):
        CsvReaderFormat.for_schema("a,b")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="single char"):
        CsvSchema.builder().set_quote_char("ab")
    with pytest.raises(GraphError, match="must differ"):
        CsvSchema.builder().add_string_column("a").set_escape_char('"').build()
