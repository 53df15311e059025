"""Compaction of the file sink: when it happens, that no record is lost or written twice, whatever is killed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Encoder
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    ParquetBulkWriters,
    StreamingFileSink,
)
from rekindle.datastream.connectors.files.compaction import PendingFile, take_due
from rekindle.errors import ConnectorError, GraphError
from rekindle.graph.build import build_plan
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.in_process_checkpoint import InProcessCheckpoint

RECORDS = list(range(60))
BASE = BucketAssigner.base_path_bucket_assigner()


def every(checkpoints: int) -> FileCompactStrategy:
    return FileCompactStrategy.builder().enable_compaction_on_checkpoint(checkpoints).build()


def sink(out: Path, strategy: FileCompactStrategy | None, encoder: Encoder | None = None) -> FileSink[Any]:
    builder = FileSink.for_row_format(str(out), encoder or Encoder.json_lines_encoder())
    builder.with_bucket_assigner(BucketAssigner.of(lambda number: f"rest={number % 2}"))
    if strategy is not None:
        builder.enable_compact(strategy, FileCompactor.concat_file_compactor())
    return builder.build()


def job(
    made: Any, parallelism: int = 2, restore: InProcessCheckpoint | None = None, checkpointed: bool = True
) -> InProcessJob:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    if checkpointed:
        env.enable_checkpointing(1000)
    stream = env.from_collection(RECORDS)
    (stream.sink_to(made) if isinstance(made, FileSink) else stream.add_sink(made)).uid("sink")
    return InProcessJob(build_plan(env._program("compaction")), max_records=4, restore=restore)


def files(out: Path) -> list[Path]:
    return [path for path in out.rglob("*") if path.is_file() and not path.name.startswith(".")]


def hidden(out: Path) -> list[Path]:
    return [path for path in out.rglob(".*") if path.is_file()]


def visible(out: Path) -> Counter[int]:
    return Counter(json.loads(line) for path in files(out) for line in path.read_text().splitlines())


def test_files_of_several_checkpoints_become_one_visible_file(tmp_path: Path) -> None:
    running = job(sink(tmp_path, every(3)), parallelism=1)
    for _ in range(2):
        running.checkpoint()
    assert files(tmp_path) == []
    running.checkpoint()
    assert sorted(path.parent.name for path in files(tmp_path)) == ["rest=0", "rest=1"]
    assert all(path.name.startswith("compacted-part-") for path in files(tmp_path))
    assert visible(tmp_path) == Counter(range(12))
    running.run()
    assert visible(tmp_path) == Counter(RECORDS)
    assert hidden(tmp_path) == []


def test_a_size_triggers_a_compaction_and_the_end_of_the_input_does_too(tmp_path: Path) -> None:
    strategy = FileCompactStrategy.builder().set_size_threshold(20).set_num_compact_threads(2).build()
    job(sink(tmp_path, strategy)).run()
    assert visible(tmp_path) == Counter(RECORDS)
    sizes = [path.stat().st_size for path in files(tmp_path)]
    assert len(sizes) < 14
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("restored", [1, 2, 3])
@pytest.mark.parametrize("cut", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("committed", [True, False])
def test_every_record_is_visible_once_after_two_kills(tmp_path: Path, cut: int, restored: int, committed: bool) -> None:
    running = job(sink(tmp_path, every(2)))
    for number in range(cut):
        checkpoint = running.checkpoint(complete=committed or number + 1 < cut)
    running.epoch()
    running.checkpoint(complete=False)  # lost: it was never published
    running.kill()
    again = job(sink(tmp_path, every(2)), restored, checkpoint)
    again.epoch()
    again.kill()  # before its first checkpoint: the files that it took over are there for the next attempt
    third = job(sink(tmp_path, every(2)), restored, checkpoint)
    second = third.checkpoint()
    third.epoch()
    third.kill()
    job(sink(tmp_path, every(2)), 2, second).run()
    assert visible(tmp_path) == Counter(RECORDS)
    assert hidden(tmp_path) == []


def test_files_that_wait_become_visible_when_compaction_is_switched_off(tmp_path: Path) -> None:
    running = job(sink(tmp_path, every(9)))
    checkpoint = running.checkpoint()
    running.kill()
    job(sink(tmp_path, None), 1, checkpoint).run()
    assert visible(tmp_path) == Counter(RECORDS)
    assert hidden(tmp_path) == []


def test_a_compaction_that_was_done_before_is_not_done_again(tmp_path: Path) -> None:
    """The process died after the rename, before it removed the small files."""
    running = job(sink(tmp_path, every(1)), parallelism=1)
    checkpoint = running.checkpoint(complete=False)
    small = {path: path.read_bytes() for path in hidden(tmp_path)}
    running.complete(checkpoint)
    for path, content in small.items():
        path.write_bytes(content)
    running.kill()
    before = {path: path.stat().st_mtime_ns for path in files(tmp_path)}
    restored = job(sink(tmp_path, every(1)), 1, checkpoint)
    assert {path: path.stat().st_mtime_ns for path in files(tmp_path)} == before
    assert not any(path.exists() for path in small)
    restored.run()
    assert visible(tmp_path) == Counter(RECORDS)


def test_a_staged_file_that_is_gone_or_changed_is_named(tmp_path: Path) -> None:
    running = job(sink(tmp_path, every(1)), parallelism=1)
    checkpoint = running.checkpoint(complete=False)
    lost = hidden(tmp_path)[0]
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(Exception, match=r"Sink|Writer") as raised:
        running.complete(checkpoint)
    assert isinstance(raised.value.__cause__, ConnectorError)
    assert f"the staged files {lost.name} are gone" in str(raised.value.__cause__)
    lost.write_bytes(content + b"more")
    with pytest.raises(Exception, match=r"Sink|Writer") as raised:
        job(sink(tmp_path, every(1)), 1, checkpoint)
    assert "changed after it was staged" in str(raised.value.__cause__)
    running.kill()
    waiting = job(sink(tmp_path / "wait", every(5)), parallelism=1)
    checkpoint = waiting.checkpoint()
    waiting.kill()
    for path in hidden(tmp_path / "wait"):
        path.unlink()
    with pytest.raises(Exception, match=r"Sink|Writer") as raised:
        job(sink(tmp_path / "wait", every(5)), 1, checkpoint)
    assert "which waited for its compaction, is gone" in str(raised.value.__cause__)


def test_a_header_is_in_a_compacted_file_once(tmp_path: Path) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.csv_encoder(header=["number"]))
    builder.with_bucket_assigner(BASE).enable_compact(every(3), FileCompactor.concat_file_compactor())
    running = job(builder.build(), parallelism=1)
    for _ in range(3):
        running.checkpoint()
    (file,) = files(tmp_path)
    assert file.read_text().splitlines() == ["number", *map(str, range(12))]
    running.kill()


def test_the_identical_compactor_leaves_each_file_as_it_is(tmp_path: Path) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.json_lines_encoder()).with_bucket_assigner(BASE)
    running = job(builder.enable_compact(every(3), FileCompactor.identical_file_compactor()).build(), parallelism=1)
    running.checkpoint()
    assert len(files(tmp_path)) == 1
    running.run()
    assert visible(tmp_path) == Counter(RECORDS)


def test_strategies_and_compactors_are_checked(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="needs enable_compaction_on_checkpoint"):
        FileCompactStrategy.builder().build()
    with pytest.raises(GraphError, match=r"set_size_threshold\(\) takes a number"):
        FileCompactStrategy.builder().set_size_threshold(0)
    bulk = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(tuple[int]))
    with pytest.raises(GraphError, match="cannot be put one after the other"):
        bulk.enable_compact(every(1), FileCompactor.concat_file_compactor())
    with pytest.raises(GraphError, match="takes a FileCompactStrategy"):
        bulk.enable_compact("often", FileCompactor.identical_file_compactor())  # type: ignore[arg-type]


def test_buckets_are_compacted_apart() -> None:
    pending = [
        PendingFile("/a", "s1", "n1", 5, 1),
        PendingFile("/b", "s2", "n2", 9, 1),
        PendingFile("/a", "s3", "n3", 5),
    ]
    due, waiting = take_due(pending, FileCompactStrategy.builder().set_size_threshold(10).build(), True, False)
    assert [(each["folder"], len(each["parts"])) for each in due] == [("/a", 2)]
    assert waiting == [pending[1]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_streaming_file_sink_finishes_its_files_at_checkpoints_only(tmp_path: Path) -> None:
    def made(out: Path) -> StreamingFileSink:
        builder = StreamingFileSink.for_row_format(str(out), Encoder.json_lines_encoder())
        return builder.with_bucket_assigner(BASE).build()

    job(made(tmp_path / "with"), checkpointed=True).run()
    assert visible(tmp_path / "with") == Counter(RECORDS)
    job(made(tmp_path / "without"), checkpointed=False).run()
    assert files(tmp_path / "without") == []
    lines = [json.loads(line) for path in hidden(tmp_path / "without") for line in path.read_text().splitlines()]
    assert Counter(lines) == Counter(RECORDS)
    with pytest.warns(DeprecationWarning, match="use FileSink"):
        made(tmp_path)
