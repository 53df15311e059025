"""The file sink: staging, commit, sweep, buckets, rolling, formats, and errors of the disk."""

from __future__ import annotations

import datetime as dt
import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rekindle.common import Encoder, Row, Types
from rekindle.datastream.connectors.base import SourceReaderContext
from rekindle.datastream.connectors.file_system import (
    ArrowBulkWriters,
    BucketAssigner,
    BulkFormat,
    FileSink,
    FileSource,
    OutputFileConfig,
    ParquetBulkWriters,
    RollingPolicy,
    StreamFormat,
)
from rekindle.datastream.connectors.files.names import InProgressName, WriterId
from rekindle.datastream.connectors.files.sink import FileWriter
from rekindle.datastream.connectors.sink_api import CommitRequest, CommitterInitContext, SinkWriter, WriterInitContext
from rekindle.errors import ConnectorError, GraphError, SerializationError, TypeMismatchError
from rekindle.serde import tagged_dumps, tagged_loads
from rekindle.testing.manual_clock import ManualClock

BASE = BucketAssigner.base_path_bucket_assigner()
LINES = Encoder.simple_string_encoder()


class Request(CommitRequest[dict[str, Any]]):
    """A commit request like the engine's, which remembers whether the file was committed before."""

    def __init__(self, committable: dict[str, Any]) -> None:
        self.committable = tagged_loads(tagged_dumps(committable))  # committables must be plain data
        self.already = False

    def get_committable(self) -> dict[str, Any]:
        return self.committable

    def get_number_of_retries(self) -> int:
        return 0

    def signal_already_committed(self) -> None:
        self.already = True

    def signal_failed_with_known_reason(self, error: BaseException) -> None:
        raise AssertionError(error)

    signal_failed_with_unknown_reason = signal_failed_with_known_reason

    def retry_later(self) -> None:
        raise AssertionError

    def update_and_retry_later(self, committable: dict[str, Any]) -> None:
        raise AssertionError


class Context(SinkWriter.Context):
    def __init__(self, timestamp: int | None = None) -> None:
        self._timestamp = timestamp

    def timestamp(self) -> int | None:
        return self._timestamp

    def current_watermark(self) -> int:
        return 0


def row_sink(path: Path, encoder: Encoder = LINES, **settings: Any) -> FileSink[Any]:
    builder = FileSink.for_row_format(str(path), encoder).with_bucket_assigner(settings.pop("buckets", BASE))
    for name, value in settings.items():
        getattr(builder, f"with_{name}")(value)
    return cloudpickle.loads(cloudpickle.dumps(builder.build()))


def writer_of(sink: FileSink[Any], attempt: int = 0, subtask: int = 0, timeline: str = "00000001-0a1b2c3d") -> Any:
    return sink.create_writer(WriterInitContext(subtask, 2, timeline=timeline, attempt=attempt))


def committer_of(sink: FileSink[Any], attempt: int = 0, timeline: str = "00000001-0a1b2c3d") -> Any:
    return sink.create_committer(CommitterInitContext(0, 2, timeline=timeline, attempt=attempt, restarts=attempt))


def write(writer: Any, records: Iterable[Any]) -> None:
    for record in records:
        writer.write(record, Context())


def at_barrier(writer: Any) -> list[dict[str, Any]]:
    writer.flush(False)
    committables: list[dict[str, Any]] = writer.prepare_commit()
    return committables


def commit(committer: Any, committables: list[dict[str, Any]]) -> list[Request]:
    requests = [Request(committable) for committable in committables]
    committer.commit(requests)
    return requests


def visible(path: Path) -> list[str]:
    """Return the lines that a FileSource reads."""
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    return sorted(line for polled in iter(lambda: reader.poll(100), None) for line in polled)


def files_below(path: Path) -> list[Path]:
    return sorted(each for each in path.rglob("*") if each.is_file())


# -- two phases -------------------------------------------------------------------------------------------------------


def test_records_are_visible_when_and_only_when_they_are_committed(tmp_path: Path) -> None:
    """I18: files are staged at the barrier and hidden until the commit; each record is written once."""
    sink = row_sink(tmp_path)
    writer, committer = writer_of(sink), committer_of(sink)
    write(writer, ["a", "b"])
    assert visible(tmp_path) == []
    first = at_barrier(writer)
    write(writer, ["c"])
    assert visible(tmp_path) == []
    assert [request.already for request in commit(committer, first)] == [False]
    assert visible(tmp_path) == ["a", "b"]
    commit(committer, at_barrier(writer))
    assert visible(tmp_path) == ["a", "b", "c"]
    assert at_barrier(writer) == []
    names = [path.name for path in files_below(tmp_path)]
    assert all(name.startswith("part-") for name in names)
    assert sorted(name[-1] for name in names) == ["0", "1"]


def test_a_commit_can_be_repeated(tmp_path: Path) -> None:
    """I18: after a restart the same committables come again."""
    sink = row_sink(tmp_path)
    writer = writer_of(sink)
    write(writer, ["a"])
    committables = at_barrier(writer)
    commit(committer_of(sink), committables)
    before = [(path, path.read_bytes()) for path in files_below(tmp_path)]
    assert [request.already for request in commit(committer_of(sink, attempt=1), committables)] == [True]
    assert [(path, path.read_bytes()) for path in files_below(tmp_path)] == before


def test_a_staged_file_that_is_gone_or_changed_is_named(tmp_path: Path) -> None:
    sink = row_sink(tmp_path)
    writer = writer_of(sink)
    write(writer, ["a"])
    committables = at_barrier(writer)
    (staged,) = files_below(tmp_path)
    staged.write_text("something else\n")
    with pytest.raises(ConnectorError, match=r"has 15 bytes instead of the 2"):
        commit(committer_of(sink), committables)
    staged.unlink()
    with pytest.raises(ConnectorError, match=rf"{committables[0]['name']} cannot be committed: neither it nor"):
        commit(committer_of(sink), committables)


def test_attempts_and_subtasks_never_share_a_name(tmp_path: Path) -> None:
    sink = row_sink(tmp_path)
    committables = []
    for attempt in range(3):
        for subtask in range(3):
            writer = writer_of(sink, attempt, subtask)
            write(writer, [f"{attempt}-{subtask}"])
            committables += at_barrier(writer)
    assert len({each["name"] for each in committables}) == len({each["staged"] for each in committables}) == 9
    commit(committer_of(sink), committables)
    assert len(visible(tmp_path)) == 9


def test_a_writer_of_an_older_attempt_cannot_add_to_what_was_committed(tmp_path: Path) -> None:
    """A surviving process of an older attempt cannot harm: every file belongs to one attempt and one checkpoint."""
    sink = row_sink(tmp_path)
    zombie = writer_of(sink, attempt=0)
    write(zombie, ["a"])
    committables = at_barrier(zombie)
    commit(committer_of(sink, attempt=1), committables)  # the next attempt restores and commits
    write(zombie, ["of the dead"] * 100_000)
    at_barrier(zombie)
    committer_of(sink, attempt=1).sweep()
    assert visible(tmp_path) == ["a"]
    assert len(files_below(tmp_path)) == 1


def test_the_sweep_takes_older_attempts_of_its_own_timeline_only(tmp_path: Path) -> None:
    """I14, I18: the sweep keeps files of other timelines and of this attempt."""
    sink = row_sink(tmp_path, buckets=BucketAssigner.of(lambda word: f"of={word}"))
    writers = {
        "old": writer_of(sink, attempt=1),
        "mine": writer_of(sink, attempt=2),
        "newer": writer_of(sink, attempt=10),
        "other": writer_of(sink, attempt=1, timeline="00000007-ffffffff"),
    }
    staged = {}
    for name, writer in writers.items():
        write(writer, [name])
        (staged[name],) = at_barrier(writer)
    (tmp_path / "of=old" / ".part-0.inprogress").touch()  # a file of another program
    committer_of(sink, attempt=2).sweep()
    left = {name for name, each in staged.items() if os.path.exists(os.path.join(each["folder"], each["staged"]))}
    assert left == {"mine", "newer", "other"}
    assert (tmp_path / "of=old" / ".part-0.inprogress").exists()


def test_what_was_not_handed_over_goes_when_the_writer_closes(tmp_path: Path) -> None:
    sink = row_sink(tmp_path)
    writer = writer_of(sink)
    write(writer, ["a"])
    handed_over = at_barrier(writer)
    write(writer, ["b" * 100] * 20_000)
    assert len(files_below(tmp_path)) == 2
    writer.close()
    assert [path.name for path in files_below(tmp_path)] == [handed_over[0]["staged"]]
    bulk = FileSink.for_bulk_format(str(tmp_path / "bulk"), ParquetBulkWriters.for_row_type(tuple[str, int])).build()
    writer = writer_of(bulk)
    write(writer, [("a", 1)] * 70_000)
    assert len(files_below(tmp_path / "bulk")) == 1
    writer.close()
    assert files_below(tmp_path / "bulk") == []


def test_staging_names_tell_who_wrote_them() -> None:
    context = WriterInitContext(subtask=3, timeline="00000001-0a1b2c3d", attempt=12)
    name = WriterId.of(context).staging_name("part-x.y-0.csv")
    assert name.startswith(".")
    assert InProgressName.parse(name) == ("part-x.y-0.csv", "00000001-0a1b2c3d", 12, 3)
    assert WriterId.of(WriterInitContext(job_id="a/b.c")).owner == "a-b-c"
    assert InProgressName.parse("part-0") is None


def test_files_and_folders_are_synced_before_and_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content and the staging name are durable at the barrier, the final name when the commit returns."""
    events: list[str] = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(descriptor: int) -> None:
        events.append(f"sync {os.path.basename(os.readlink(f'/proc/self/fd/{descriptor}'))[:5]}")
        real_fsync(descriptor)

    def rename(source: str, target: str) -> None:
        events.append("rename")
        real_rename(source, target)

    sink = row_sink(tmp_path / "folder")
    writer = writer_of(sink)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    write(writer, ["a"])
    committables = at_barrier(writer)
    assert events == ["sync .part", "sync folde"]
    commit(committer_of(sink), committables)
    assert events[2:] == ["rename", "sync folde"]


# -- buckets and names ------------------------------------------------------------------------------------------------


def test_buckets_of_ones_own(tmp_path: Path) -> None:
    class ByHourOfEvent(BucketAssigner):
        def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
            timestamp = context.timestamp()
            assert timestamp is not None
            assert context.current_watermark() == 0
            assert context.current_processing_time() > 0
            return f"hour={timestamp // 3_600_000}/of={element}"

    sink = row_sink(tmp_path, buckets=ByHourOfEvent())
    writer = writer_of(sink)
    for hour in (1, 2, 1):
        writer.write("a", Context(hour * 3_600_000))
    commit(committer_of(sink), at_barrier(writer))
    assert {str(path.parent.relative_to(tmp_path)) for path in files_below(tmp_path)} == {"hour=1/of=a", "hour=2/of=a"}
    assert visible(tmp_path / "hour=1") == ["a", "a"]


@pytest.mark.parametrize("bucket", ["..", "a/../b", "/etc", "a//b", ".hidden", "_hidden", "a/.", "a\0b", 7, None])
def test_buckets_that_lead_elsewhere_are_refused(tmp_path: Path, bucket: Any) -> None:
    writer = writer_of(row_sink(tmp_path / "out", buckets=BucketAssigner.of(lambda _: bucket)))
    with pytest.raises(ConnectorError, match=r"bucket"):
        write(writer, ["a"])
    assert files_below(tmp_path) == []


def test_buckets_by_time(tmp_path: Path) -> None:
    clock = ManualClock(int(dt.datetime(2024, 5, 1, 23, 30, tzinfo=dt.UTC).timestamp() * 1000))
    context = BucketAssigner.Context(clock)
    by_hour = BucketAssigner.date_time_bucket_assigner(timezone_id="UTC")
    assert by_hour.get_bucket_id("a", context) == "2024-05-01--23"
    in_paris = BucketAssigner.date_time_bucket_assigner("yyyy/MM/dd'T'HHmm", "Europe/Paris")
    assert in_paris.get_bucket_id("a", context) == "2024/05/02T0130"
    offset = BucketAssigner.date_time_bucket_assigner("HH", "GMT-08:00")
    assert offset.get_bucket_id("a", context) == "15"
    clock.advance(3_600_000)
    assert offset.get_bucket_id("a", context) == "16"
    local = dt.datetime.fromtimestamp(clock.wall_ms() / 1000).strftime("%H")
    assert BucketAssigner.date_time_bucket_assigner("HH").get_bucket_id("a", context) == local
    with pytest.raises(GraphError, match="does not know 'QQ' in 'yyyy-QQ'"):
        BucketAssigner.date_time_bucket_assigner("yyyy-QQ")
    with pytest.raises(GraphError, match="no time zone 'Mars/Olympus'"):
        BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Olympus")
    by_default = FileSink.for_row_format(str(tmp_path), LINES).build()
    writer = writer_of(by_default)
    write(writer, ["a"])
    (committable,) = at_barrier(writer)
    dt.datetime.strptime(os.path.basename(committable["folder"]), "%Y-%m-%d--%H")


def test_names_of_files(tmp_path: Path) -> None:
    config = OutputFileConfig.builder().with_part_prefix("or{d}ers").with_part_suffix(".csv").build()
    sink = row_sink(tmp_path, output_file_config=config)
    writer = writer_of(sink)
    write(writer, ["a"])
    commit(committer_of(sink), at_barrier(writer))
    (path,) = files_below(tmp_path)
    assert path.name.startswith("or{d}ers-")
    assert path.name.endswith("-0.csv")
    for prefix, suffix in (("a/b", ""), ("part", "/x"), (".part", ""), ("", "")):
        with pytest.raises(GraphError):
            OutputFileConfig(prefix, suffix)


# -- rolling ----------------------------------------------------------------------------------------------------------


def rolled(tmp_path: Path, policy: RollingPolicy, steps: Callable[[FileWriter[str], ManualClock], None]) -> list[str]:
    sink = row_sink(tmp_path, rolling_policy=policy)
    clock = ManualClock()
    writer: FileWriter[str] = FileWriter(sink._settings, WriterId("t", 0, 0), clock)
    steps(writer, clock)
    committables = at_barrier(writer)
    assert at_barrier(writer) == []
    commit(committer_of(sink), committables)
    return [path.read_text() for path in sorted(files_below(tmp_path), key=lambda path: int(path.name.split("-")[-1]))]


def test_files_roll_by_size(tmp_path: Path) -> None:
    policy = RollingPolicy.default_rolling_policy(part_size=10)
    contents = rolled(tmp_path, policy, lambda writer, clock: write(writer, "abcdefghijkl"))
    assert contents == ["a\nb\nc\nd\ne\n", "f\ng\nh\ni\nj\n", "k\nl\n"]


def test_files_roll_by_age_and_by_silence(tmp_path: Path) -> None:
    def aging(writer: FileWriter[str], clock: ManualClock) -> None:
        for _ in range(4):
            write(writer, ["a"] * 64)
            clock.advance(500)

    policy = RollingPolicy.default_rolling_policy(rollover_interval=1000, inactivity_interval=10_000)
    assert [len(content) for content in rolled(tmp_path / "age", policy, aging)] == [384, 128]

    def silent(writer: FileWriter[str], clock: ManualClock) -> None:
        write(writer, ["a"] * 64)
        clock.advance(600)
        writer._bucket_of = lambda element, context: "other"
        write(writer, ["b"] * 128)
        clock.advance(600)
        write(writer, ["b"] * 64)
        writer._bucket_of = lambda element, context: ""
        write(writer, ["a"] * 64)

    policy = RollingPolicy.default_rolling_policy(rollover_interval=10_000, inactivity_interval=1000)
    assert [content[0] for content in rolled(tmp_path / "silence", policy, silent)] == ["a", "b", "a"]


def test_only_checkpoints_roll_under_their_policy(tmp_path: Path) -> None:
    def steps(writer: FileWriter[str], clock: ManualClock) -> None:
        for _ in range(10):
            write(writer, ["a" * 1000] * 640)
            clock.advance(100_000_000)

    assert len(rolled(tmp_path, RollingPolicy.on_checkpoint_rolling_policy(), steps)) == 1


def test_many_buckets_need_few_open_files_and_little_memory(tmp_path: Path) -> None:
    sink = row_sink(tmp_path, buckets=BucketAssigner.of(lambda number: f"{number % 300:03}"))
    writer = writer_of(sink)
    opened_before = len(os.listdir("/proc/self/fd"))
    write(writer, range(9000))
    assert len(os.listdir("/proc/self/fd")) == opened_before
    committables = at_barrier(writer)
    assert len(committables) == 300
    commit(committer_of(sink), committables)
    assert visible(tmp_path) == sorted(map(str, range(9000)))


# -- formats ----------------------------------------------------------------------------------------------------------


class Word(NamedTuple):
    word: str
    count: int  # type: ignore[assignment]  # as a user names it, though tuples have a method of this name


@dataclass
class Order:
    id: int
    at: dt.datetime


def written(sink: FileSink[Any], path: Path, records: Iterable[Any]) -> bytes:
    writer = writer_of(sink)
    write(writer, records)
    commit(committer_of(sink), at_barrier(writer))
    (file,) = files_below(path)
    return file.read_bytes()


def test_text_json_and_csv(tmp_path: Path) -> None:
    assert written(row_sink(tmp_path / "t", Encoder.simple_string_encoder("UTF-16-LE")), tmp_path / "t", "a") == (
        "a\n".encode("utf-16-le")
    )
    records = [Row(a=1, b=Row(c=[2])), Word("to", 2), Order(7, dt.datetime(2024, 5, 1)), {"x": None}, (1, "a")]
    assert written(row_sink(tmp_path / "j", Encoder.json_lines_encoder()), tmp_path / "j", records).decode() == (
        '{"a":1,"b":{"c":[2]}}\n{"word":"to","count":2}\n{"id":7,"at":"2024-05-01T00:00:00"}\n{"x":null}\n[1,"a"]\n'
    )
    encoder = Encoder.csv_encoder(["id", "at"], delimiter=";")
    records = [Order(7, dt.datetime(2024, 5, 1)), {"at": 'say "hi"; go', "id": 8}, Row(9, None), 10]
    assert written(row_sink(tmp_path / "c", encoder), tmp_path / "c", records).decode() == (
        'id;at\n7;2024-05-01 00:00:00\n8;"say ""hi""; go"\n9;\n10\n'
    )
    with pytest.raises(SerializationError, match="has no JSON"):
        Encoder.json_lines_encoder().encode(object())
    with pytest.raises(SerializationError, match="needs a header"):
        Encoder.csv_encoder().encode({"a": 1})


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_tables_come_back_as_they_went(tmp_path: Path, kind: str) -> None:
    place = Types.ROW_NAMED(["x"], [float])
    row = Types.ROW_NAMED(["id", "tags", "place", "at"], [int, Types.LIST(str), place, Types.INSTANT()])
    rows = [Row(id=n, tags=[str(n)], place=Row(x=n / 2), at=None) for n in range(100)]
    writers, formats = (
        (ParquetBulkWriters, BulkFormat.parquet_format)
        if kind == "parquet"
        else (ArrowBulkWriters, BulkFormat.arrow_format)
    )
    builder = FileSink.for_bulk_format(str(tmp_path), writers.for_row_type(row, compression="zstd"))
    sink = builder.with_bucket_assigner(BASE).build()
    assert written(sink, tmp_path, rows)
    source = FileSource.for_bulk_file_format(formats(row), str(tmp_path)).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    assert reader.poll(1000) == rows


def test_a_schema_takes_records_of_any_kind(tmp_path: Path) -> None:
    schema = pa.schema([("count", pa.int32()), ("word", pa.string())])
    sink = (
        FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(schema))
        .with_bucket_assigner(BASE)
        .build()
    )
    written(sink, tmp_path, [Word("a", 1), Row(word="b", count=2), {"word": "c"}, (4, "d")])
    (path,) = files_below(tmp_path)
    assert pq.read_table(path).to_pydict() == {"count": [1, 2, None, 4], "word": ["a", "b", "c", "d"]}


def test_values_that_do_not_fit_a_column_are_named(tmp_path: Path) -> None:
    factory = ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["n"], [Types.BYTE()]))
    writer = writer_of(FileSink.for_bulk_format(str(tmp_path), factory).build())
    write(writer, [Row(n=1), Row(n=1000)])
    with pytest.raises(TypeMismatchError, match="Column 'n' holds int8, not 1000"):
        at_barrier(writer)
    writer.close()
    assert files_below(tmp_path) == []


# -- refused settings -------------------------------------------------------------------------------------------------


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GraphError, match="is a file; name a directory"):
        FileSink.for_row_format(str(tmp_path / "file"), LINES)
    with pytest.raises(GraphError, match="mount the hdfs storage"):
        FileSink.for_row_format("hdfs://name/out", LINES)
    with pytest.raises(GraphError, match="takes an Encoder"):
        FileSink.for_row_format(str(tmp_path), str)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="takes a BulkWriterFactory"):
        FileSink.for_bulk_format(str(tmp_path), LINES)  # type: ignore[arg-type]
    bulk = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(tuple[str]))
    with pytest.raises(GraphError, match=r"use on_checkpoint_rolling_policy\(\)"):
        bulk.with_rolling_policy(RollingPolicy.default_rolling_policy())
    with pytest.raises(GraphError, match=r"BucketAssigner\.of\(function\)"):
        bulk.with_bucket_assigner(lambda element: "a")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="part_size of 1 or more"):
        RollingPolicy.default_rolling_policy(part_size=0)
    with pytest.raises(TypeMismatchError, match="no column of a table"):
        ParquetBulkWriters.for_row_type(Types.PICKLED_BYTE_ARRAY())
    with pytest.raises(GraphError, match="no compression 'rar'"):
        ParquetBulkWriters.for_row_type(tuple[str], compression="rar")


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EACCES, "make it writable for the user that runs the job"),
        (errno.EROFS, "make it writable"),
        (errno.EIO, "Cannot write .*input/output error"),
    ],
)
def test_the_disks_faults_are_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, sentence: str
) -> None:
    writer = writer_of(row_sink(tmp_path))
    write(writer, ["a"])

    def refuse(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(ConnectorError, match=sentence):
        at_barrier(writer)


def test_a_directory_that_cannot_be_made_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConnectorError, match="there is a file in its place"):
        writer_of(row_sink(tmp_path / "file" / "out"))
