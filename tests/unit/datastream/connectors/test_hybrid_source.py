"""HybridSource: one source after the other, for all subtasks together, over kills and changes of parallelism."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Configuration, Duration, WatermarkStrategy
from rekindle.datastream import DataStream, StreamExecutionEnvironment
from rekindle.datastream.connectors.file_system import FileSource, StreamFormat
from rekindle.datastream.connectors.hybrid_source import HybridSource
from rekindle.datastream.connectors.number_seq import NumberSequenceSource
from rekindle.errors import GraphError
from rekindle.testing import InProcessJob, assert_survives
from tests.unit.runtime.operators.split_log import Log, LogSource


def text_source(directory: Path, **more: Any) -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory))


def past_and_present(directory: Path) -> HybridSource[Any]:
    """Files of very different lengths, then numbers."""
    directory.mkdir(exist_ok=True)
    for name, count in (("a", 2), ("b", 40), ("c", 1)):
        (directory / name).write_text("".join(f"{name}{n}\n" for n in range(count)))
    return HybridSource.builder(text_source(directory).build()).add_source(NumberSequenceSource(1, 30)).build()


def stream(env: StreamExecutionEnvironment, source: HybridSource[Any]) -> DataStream:
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "past and present").map(str)


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_no_subtask_begins_a_source_before_all_have_read_the_one_before(tmp_path: Path, parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    job = InProcessJob.of(stream(env, past_and_present(tmp_path / "in")), max_records=3)
    texts: list[str] = []
    numbers: list[str] = []
    while not job.finished:
        for record in job.epoch():
            (texts if record[0].isalpha() else numbers).append(record)
        assert not numbers or len(texts) == 43
    assert sorted(numbers, key=int) == [str(n) for n in range(1, 31)]


def test_a_job_that_records_its_input_goes_on_to_the_next_source() -> None:
    configuration = Configuration.from_dict({"rekindle.replay.record-input": "true"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    source = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(NumberSequenceSource(4, 6)).build()
    job = InProcessJob.of(stream(env, source))
    found = [record for _ in range(20) for record in job.epoch()]
    assert sorted(found) == ["1", "2", "3", "4", "5", "6"]
    assert job.finished
    job.close()


def test_it_survives_kills_and_changes_of_parallelism(tmp_path: Path) -> None:
    source = past_and_present(tmp_path / "in")
    output = assert_survives(lambda env: stream(env, source), records_per_epoch=4)
    assert len(output) == 73


def test_three_sources_of_which_the_last_never_ends(tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    watching = text_source(new).monitor_continuously(Duration.of_millis(1)).build()
    builder = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(NumberSequenceSource(4, 6))
    source = builder.add_source(watching).build()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    job = InProcessJob.of(stream(env, source))
    found: list[Any] = []
    while len(found) < 6:
        found += job.epoch()
    (new / "late.txt").write_text("seven\n")
    checkpoint = job.checkpoint()
    found += checkpoint.results
    job.kill()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(3)
    again = InProcessJob.of(stream(env, source), restore=checkpoint)
    (new / "later.txt").write_text("eight\n")
    while len(found) < 8:
        found += again.epoch()
    again.kill()
    assert sorted(found) == ["1", "2", "3", "4", "5", "6", "eight", "seven"]


def test_a_split_of_the_start_that_is_discovered_again_is_not_read_again() -> None:
    """The driver announces all splits of the last source, which the start has named by their places."""
    Log.clear()
    Log.splits = {"0": [1, 2], "1": [3]}
    source = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(LogSource(False, discovers=True)).build()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    job = InProcessJob.of(stream(env, source), max_records=2)
    found: list[Any] = []
    for _ in range(6):
        found += job.epoch()
    Log.splits["2"] = [4]
    job.discover_splits()
    for _ in range(6):
        found += job.epoch()
    job.kill()
    assert sorted(found) == ["('0', 1)", "('0', 2)", "('1', 3)", "('2', 4)", "1", "2", "3"]


def test_only_the_last_source_may_be_unbounded(tmp_path: Path) -> None:
    watching = text_source(tmp_path).monitor_continuously(Duration.of_seconds(1)).build()
    with pytest.raises(GraphError, match="Only the last source"):
        HybridSource.builder(watching).add_source(NumberSequenceSource(1, 2))
    with pytest.raises(GraphError, match="takes a Source"):
        HybridSource.builder("numbers")  # type: ignore[arg-type]
