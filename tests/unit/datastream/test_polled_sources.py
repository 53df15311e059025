"""Readers of polled sources: batches, positions, replay from any position."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.common import WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    assign_splits,
)
from rekindle.datastream.connectors.collection import CollectionSource
from rekindle.datastream.connectors.datagen import DataGeneratorSource, GeneratorReader, RateLimiterStrategy
from rekindle.datastream.connectors.number_seq import NumberSequenceSource
from rekindle.errors import GraphError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob


def read_all(source: Source[Any], parallelism: int, batch: int) -> list[Any]:
    records: list[Any] = []
    for subtask, splits in enumerate(assign_splits(source.create_splits(parallelism), parallelism)):
        reader = source.create_reader(SourceReaderContext(subtask, parallelism), splits)
        while (polled := reader.poll(batch)) is not None:
            assert 0 < len(polled) <= batch
            records.extend(polled)  # type: ignore[arg-type]
    return records


SOURCES = [
    NumberSequenceSource(3, 40),
    DataGeneratorSource(lambda n: n * 2, 37),
    CollectionSource(range(20)),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_every_record_comes_once(source: Source[Any], parallelism: int) -> None:
    expected = sorted(read_all(source, 1, 1000))
    assert sorted(read_all(source, parallelism, 7)) == expected
    assert len(set(expected)) == len(expected) > 0


@pytest.mark.parametrize("source", SOURCES)
def test_a_reader_goes_on_from_its_snapshot(source: Source[Any]) -> None:
    context = SourceReaderContext(0, 1)
    reader = source.create_reader(context, source.create_splits(1))
    first = reader.poll(7)
    restored = source.create_reader(context, reader.snapshot_state(1))
    assert first is not None
    rest: list[Any] = []
    while (polled := restored.poll(4)) is not None:
        rest.extend(polled)  # type: ignore[arg-type]
    assert [*first, *rest] == read_all(source, 1, 1000)  # type: ignore[misc]


@given(
    count=st.integers(0, 60),
    before=st.integers(1, 4),
    after=st.integers(1, 4),
    polls=st.integers(0, 5),
    size=st.integers(1, 9),
)
def test_a_generator_replays_at_another_parallelism(count: int, before: int, after: int, polls: int, size: int) -> None:
    source = DataGeneratorSource(lambda n: n, count)
    seen: list[int] = []
    positions: list[SourceSplit] = []
    for subtask, splits in enumerate(assign_splits(source.create_splits(before), before)):
        reader = source.create_reader(SourceReaderContext(subtask, before), splits)
        for _ in range(polls):
            seen.extend(reader.poll(size) or [])  # type: ignore[arg-type]
        positions.extend(reader.snapshot_state(1))
    for subtask, splits in enumerate(assign_splits(positions, after)):
        reader = source.create_reader(SourceReaderContext(subtask, after), splits)
        while (polled := reader.poll(size)) is not None:
            seen.extend(polled)  # type: ignore[arg-type]
    assert sorted(seen) == list(range(count))


def test_a_reader_without_splits_is_at_its_end() -> None:
    for source in SOURCES:
        reader = source.create_reader(SourceReaderContext(0, 1), [])
        assert (reader.poll(10), reader.snapshot_state(1)) == (None, [])


def test_generator_subtasks_are_equally_far_in_time() -> None:
    source = DataGeneratorSource(lambda n: n, 10)
    first = [
        source.create_reader(SourceReaderContext(i, 2), [split]).poll(2)
        for i, split in enumerate(source.create_splits(2))
    ]
    assert first == [[0, 2], [1, 3]]


def test_a_generator_without_a_count_never_ends() -> None:
    source = DataGeneratorSource(lambda n: n)
    assert source.boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert DataGeneratorSource(lambda n: n, 5).boundedness() is Boundedness.BOUNDED
    assert source.create_reader(SourceReaderContext(0, 1), source.create_splits(1)).poll(3) == [0, 1, 2]


class TurnedClock:
    now = 0.0

    def wall_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now


def test_a_rate_limit_lets_through_what_has_been_saved_up() -> None:
    clock = TurnedClock()
    limiter = RateLimiterStrategy.per_second(20).create_rate_limiter(2, clock)  # 10 per second and subtask
    reader = GeneratorReader(lambda n: n, [SourceSplit("0", (0, 14, 1))], limiter)
    assert (reader.is_available(), reader.poll(100)) == (False, [])
    clock.now = 0.5
    assert (reader.is_available(), reader.poll(100)) == (True, [0, 1, 2, 3, 4])
    assert reader.poll(100) == []
    clock.now = 60.0  # permits accumulate for at most a second
    assert reader.poll(100) == list(range(5, 14))
    assert reader.is_available()
    assert reader.poll(100) is None


def test_without_a_limit_there_is_no_limiter() -> None:
    assert RateLimiterStrategy.no_op().create_rate_limiter(4) is None


def test_wrong_sources_are_refused() -> None:
    with pytest.raises(GraphError, match="not from 5 to 4"):
        NumberSequenceSource(5, 4)
    with pytest.raises(GraphError, match="0 or more, not -1"):
        DataGeneratorSource(lambda n: n, -1)
    with pytest.raises(GraphError, match="callable"):
        DataGeneratorSource(5, 1)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="above 0"):
        RateLimiterStrategy.per_second(0)


def test_a_batch_has_a_timestamp_per_record() -> None:
    with pytest.raises(ValueError, match="2 records has 1 timestamps"):
        Batch([1, 2], [10])


def test_a_source_must_say_everything() -> None:
    class Half(Source[int]):
        def boundedness(self) -> Boundedness:
            return Boundedness.BOUNDED

    with pytest.raises(TypeError, match="create_reader"):
        Half()  # type: ignore[abstract]


class Unfit(Source[Any], SourceReader[Any]):
    """A source and reader whose answers break the contract."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit("0")]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[Any]:
        return self

    def poll(self, max_records: int) -> Any:
        return self._answer

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return []


@pytest.mark.parametrize("answer", [{1}, 5, "records"])
def test_what_poll_must_not_answer_is_told_with_the_source_s_name(answer: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(Unfit(answer), WatermarkStrategy.no_watermarks(), "unfit")
    with pytest.raises(OperatorFailure, match="unfit") as caught:
        InProcessJob.of(stream).run()
    assert "poll() must return a list of records, a Batch or None" in str(caught.value.__cause__)
