"""Lines of files: each line comes exactly once, for any content, any cuts and any interruptions."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rekindle.datastream.connectors.base import Batch, Source, SourceReaderContext, SourceSplit, assign_splits
from rekindle.datastream.connectors.file_system import FileEnumeratorProvider, FileSource, FileSplit, StreamFormat
from rekindle.datastream.connectors.files.lines import LineReader
from rekindle.datastream.connectors.files.listing import FoundFile
from rekindle.datastream.connectors.files.splits import split_file
from rekindle.serde import tagged_dumps, tagged_loads
from tests.support.polled import polled_list

#: Few different bytes, so that newlines meet every boundary.
CONTENT = st.text(alphabet="ab\n\r€", max_size=60)


def expected_lines(content: str) -> list[str]:
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def source_of(path: Path, split_bytes: int) -> Source[Any]:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))
    return builder.set_file_enumerator(
        FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes=split_bytes)
    ).build()


@given(CONTENT, st.integers(1, 20), st.integers(1, 7))
def test_every_line_belongs_to_one_split(content: str, split_bytes: int, block_bytes: int) -> None:
    """I7, I8: parts of a file are read on their own, in any order, in blocks of any size."""
    data = content.encode()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "a.txt")
        path.write_bytes(data)
        lines = []
        for split in split_file(FoundFile(str(path), len(data), 0), split_bytes) if data else []:
            reader = LineReader(split, "utf-8", block_bytes)
            while taken := reader.take(2):
                lines.extend(taken)
            reader.close()
    assert [line.decode().removesuffix("\r") for line in lines] == expected_lines(content)


@given(CONTENT, st.integers(1, 20), st.data())
def test_a_cut_after_any_record_and_a_restore_at_any_parallelism(content: str, split_bytes: int, data: Any) -> None:
    """I8: positions are exact: the lines before the cut and the lines after it are all lines, once each."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "a.txt")
        path.write_bytes(content.encode())
        source = source_of(path, split_bytes)
        parallelism = data.draw(st.integers(1, 4))
        dealt = assign_splits(source.create_splits(parallelism), parallelism)
        lines: list[str] = []
        for _ in range(data.draw(st.integers(0, 3))):  # interruptions
            left: list[SourceSplit] = []
            for subtask, splits in enumerate(dealt):
                reader = source.create_reader(SourceReaderContext(subtask, len(dealt)), splits)
                for _ in range(data.draw(st.integers(0, 3))):
                    lines.extend(polled_list(reader, data.draw(st.integers(1, 4))))
                left.extend(tagged_loads(tagged_dumps((s.split_id, s.position))) for s in reader.snapshot_state(1))
                reader.close()
            parallelism = data.draw(st.integers(1, 4))
            dealt = assign_splits([SourceSplit(*each) for each in left], parallelism)  # type: ignore[misc]
        for subtask, splits in enumerate(dealt):
            reader = source.create_reader(SourceReaderContext(subtask, len(dealt)), splits)
            while (polled := reader.poll(3)) is not None:
                assert not isinstance(polled, Batch)
                assert 0 < len(polled) <= 3
                lines.extend(polled)
            reader.close()
    assert sorted(lines) == sorted(expected_lines(content))


@given(CONTENT, st.integers(0, 10), st.sampled_from(["packed", "UTF-16", "UTF-16-BE", "UTF-32"]))
def test_files_that_are_read_from_the_beginning_go_on_after_any_record(content: str, taken: int, kind: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        charset = "UTF-8" if kind == "packed" else kind
        path = Path(directory, "a.txt.gz" if kind == "packed" else "a.txt")
        path.write_bytes(gzip.compress(content.encode()) if kind == "packed" else content.encode(charset))
        size = path.stat().st_size
        if size == 0:
            return
        text_format = StreamFormat.text_line_format(charset)
        assert not text_format.is_splittable(str(path))
        split = FileSplit(str(path), 0, size, 0, size)
        reader = text_format.open(split)
        before = reader.read(taken) if taken else []
        offset = reader.offset
        reader.close()
        reader = text_format.open(split.at(offset))
        after: list[str] = []
        while records := reader.read(2):
            after.extend(records)
        reader.close()
    assert [*before, *after] == expected_lines(content)
    assert len(before) <= taken
