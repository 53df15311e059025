"""A job on Spark fails with recorded input: the failure says the command, and its replay fails the same way."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint.paths import is_recording
from rekindle.checkpoint.store.local import LocalStore
from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import DataStream, KeyedProcessFunction
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import JobExecutionError
from rekindle.replay import ReplayOutcome, find_recording
from rekindle.replay.job_code import replay_shipped
from rekindle.replay.replay import ReplayOptions
from rekindle.testing import replay
from tests.support.environments import checkpointed

#: On a busy machine slots take their time to start.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

#: Numbers that each subtask of the source emits between two checkpoints.
BATCH = 20


class Counting(Source[int]):
    """Each subtask counts; after the first completed checkpoint that it hears of comes a negative number."""

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(str(number), 0) for number in range(parallelism)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[int]:
        return CountingReader(splits)

    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED


class CountingReader(SourceReader[int]):
    def __init__(self, splits: list[SourceSplit]) -> None:
        self.next = [split.position for split in splits]
        self.splits = splits
        self.left = BATCH
        self.completed = False

    def poll(self, max_records: int) -> list[int]:
        if not self.left or not self.splits:
            return []
        self.left -= 1
        self.next[0] += 1
        return [-self.next[0] if self.completed and self.left == 0 else self.next[0]]

    def is_available(self) -> bool:
        return self.left > 0

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(split.split_id, at) for split, at in zip(self.splits, self.next, strict=True)]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.completed, self.left = True, BATCH


class Sums(KeyedProcessFunction):
    """Sums per key, and refuses negative numbers."""

    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        total = (self.sum.value() or 0) + value
        if value < 0:
            raise ValueError(f"{value} would make {total} of {self.sum.value()}")
        self.sum.update(total)
        yield total


def sums(directory: Path) -> DataStream:
    settings: dict[str, Any] = {
        "rekindle.replay.record-input": "true",
        "rekindle.replay.keep-code": "true",
        "rekindle.slot.start-timeout": "5 min",
    }
    env = checkpointed(2, 100, directory=directory, restarts=0, **settings)
    numbers = env.from_source(Counting(), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    return numbers.key_by(lambda n: abs(n) % 8, Types.LONG()).process(Sums(), Types.LONG()).name("sums")


@pytest.fixture(scope="module")
def failed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, JobExecutionError]]:
    directory = tmp_path_factory.mktemp("checkpoints")
    stream = sums(directory)
    stream.print()
    with pytest.raises(JobExecutionError) as failure:
        stream._env.execute("sums")
    yield directory, failure.value
    shutil.rmtree(directory)


def test_the_message_says_the_command_and_a_replay_fails_the_same_way(failed: tuple[Path, JobExecutionError]) -> None:
    directory, error = failed
    assert error.origin is not None
    assert error.origin.recording is not None
    path = error.origin.recording.removeprefix("file://")
    assert f"Replay it to that point in a debugger: rekindle replay {path} " in str(error)
    with replay(path, sums(directory)) as outcome:
        assert outcome.checkpoint_id is not None
        assert (outcome.operator, repr(outcome.record)) == (error.origin.operator, error.origin.record)
        assert f"{type(outcome.cause).__name__}: {outcome.cause}" == error.origin.summary


def test_the_code_that_the_job_shipped_replays_it_as_well(failed: tuple[Path, JobExecutionError]) -> None:
    directory, error = failed
    assert error.origin is not None

    def summary(outcome: ReplayOutcome) -> str:
        return f"{type(outcome.cause).__name__}: {outcome.cause}"

    stored = find_recording(str(directory), subtask=error.origin.subtask, operator="sums")
    assert replay_shipped(stored, ReplayOptions(), summary) == error.origin.summary


def test_the_failure_is_kept_with_its_checkpoint(failed: tuple[Path, JobExecutionError]) -> None:
    directory, error = failed
    (found,) = [entry.path for entry in LocalStore(directory).list() if is_recording(entry.path)]
    assert error.origin is not None
    assert error.origin.recording == (directory / found).as_uri()
    base = find_recording(str(directory / found)).recording.bases[0]
    assert list(directory.glob(f"sums/*/chk-{base}/_metadata"))
