"""Patterns as paths of a FileSource, and numbers in JSON files that JSON does not have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Encoder, Row, Types
from rekindle.datastream.connectors import FileSource as SameFileSource
from rekindle.datastream.connectors.base import SourceReaderContext
from rekindle.datastream.connectors.file_system import FileSource, StreamFormat
from rekindle.datastream.connectors.files.listing import list_files
from rekindle.errors import ConnectorError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "a.csv",
        "b.txt",
        "2024/c.csv",
        "2024/_d.csv",
        "2025/deep/e.csv",
        "_old/f.csv",
        ".g.csv",
        "2024/[x].csv",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.csv", ["a.csv"]),
        ("?.csv", ["a.csv"]),
        ("[ab].*", ["a.csv", "b.txt"]),
        ("202*", ["2024/[x].csv", "2024/c.csv", "2025/deep/e.csv"]),
        ("**/*.csv", ["2024/[x].csv", "2024/c.csv", "2025/deep/e.csv", "a.csv"]),
        ("_old/*", ["_old/f.csv"]),
        ("2024/[x].csv", ["2024/[x].csv"]),
    ],
)
def test_a_pattern_stands_for_the_files_that_match_it(tree: Path, pattern: str, names: list[str]) -> None:
    assert [str(Path(file.path).relative_to(tree)) for file in list_files([str(tree / pattern)])] == names
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tree / pattern)).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    assert [line for polled in iter(lambda: reader.poll(100), None) for line in polled] == names


def test_a_pattern_that_matches_nothing_is_an_error_unless_the_directory_is_watched(tree: Path) -> None:
    with pytest.raises(ConnectorError, match=r"No file or directory matches .*\.orc"):
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tree / "*.orc")).build()
    assert list_files([str(tree / "*.orc")], may_be_none=True) == []


def test_older_programs_find_the_names_where_pyflink_has_them() -> None:
    assert SameFileSource is FileSource
    from rekindle.datastream.connectors import NumberSequenceSource, StreamingFileSink

    assert (NumberSequenceSource.__name__, StreamingFileSink.__name__) == ("NumberSequenceSource", "StreamingFileSink")
    with pytest.raises(ImportError):
        from rekindle.datastream.connectors import NoSuchSource  # noqa: F401


def json_records(path: Path, type_info: Any) -> list[Any]:
    source = FileSource.for_record_stream_format(StreamFormat.json_lines_format(type_info), str(path)).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    return [record for polled in iter(lambda: reader.poll(2), None) for record in polled]


NUMBERS = [1.5, math.nan, math.inf, -math.inf, None]


def test_numbers_that_are_none_come_back_from_json_files_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "numbers.json"
    encoder = Encoder.json_lines_encoder()
    rows = [Row(text="NaN", x=number, many=[number, 2.0]) for number in NUMBERS]
    path.write_bytes(b"".join(map(encoder.encode, rows)))
    row_type = Types.ROW_NAMED(["text", "x", "many"], [Types.STRING(), Types.DOUBLE(), Types.LIST(Types.DOUBLE())])
    assert repr(json_records(path, row_type)) == repr(rows)
    assert repr(json_records(path, None)) == repr([row.as_dict() for row in rows])


def test_numbers_as_flink_writes_them_are_read_where_the_type_says_so(tmp_path: Path) -> None:
    path = tmp_path / "numbers.json"
    path.write_text('{"text": "NaN", "x": "NaN"}\n{"text": "Infinity", "x": "-Infinity"}\n{"x": 1}\n')
    row_type = Types.ROW_NAMED(["text", "x"], [Types.STRING(), Types.DOUBLE()])
    assert repr(json_records(path, row_type)) == repr(
        [Row(text="NaN", x=math.nan), Row(text="Infinity", x=-math.inf), Row(text=None, x=1.0)]
    )


def test_a_line_that_is_not_the_json_that_was_expected_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "numbers.json"
    path.write_text('{"x": 1.0}\n{"x": "none, not NaN"}\n')
    with pytest.raises(ConnectorError, match="the line at offset 11 is not the JSON that was expected"):
        json_records(path, Types.ROW_NAMED(["x"], [Types.DOUBLE()]))
