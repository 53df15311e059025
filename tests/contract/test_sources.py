"""Sources keep the contract of sources with readers, and the contract finds the defects of mutated ones."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Duration
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.connectors.file_system import FileSource, StreamFormat
from rekindle.datastream.connectors.number_seq import NumberSequenceSource
from rekindle.testing.source_contract import SourceContract, SourceUnderTest

NUMBERS = list(range(1, 41))


class TestNumberSequence(SourceContract):
    @pytest.fixture
    def source(self) -> SourceUnderTest:
        return SourceUnderTest(lambda: NumberSequenceSource(1, 40), NUMBERS)


class TestDataGenerator(SourceContract):
    @pytest.fixture
    def source(self) -> SourceUnderTest:
        return SourceUnderTest(lambda: DataGeneratorSource(lambda index: f"record {index}", 30), RECORDS)


RECORDS = [f"record {index}" for index in range(30)]


def written(folder: Path) -> list[str]:
    """Lines in several files, one of them empty."""
    lines = [f"line {number}" for number in range(40)]
    for name, own in (("a", lines[:5]), ("b", lines[5:30]), ("c", []), ("d", lines[30:])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in own))
    return lines


class TestFiles(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> SourceUnderTest:
        lines, text = written(tmp_path), StreamFormat.text_line_format()
        return SourceUnderTest(lambda: FileSource.for_record_stream_format(text, str(tmp_path)).build(), lines)


class TestWatchedFolder(SourceContract):
    """An unbounded source that discovers splits."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> SourceUnderTest:
        lines, text = written(tmp_path), StreamFormat.text_line_format()

        def make() -> Source[Any]:
            builder = FileSource.for_record_stream_format(text, str(tmp_path))
            return builder.monitor_continuously(Duration.of_seconds(1)).build()

        return SourceUnderTest(make, lines)


# -- sources with one defect each --------------------------------------------------------------------------------------


class Counting(Source[int]):
    """Two splits of numbers, whose reader has no defect."""

    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit("low", [0, 10]), SourceSplit("high", [10, 25])]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> CountingReader:
        return CountingReader(splits)


class CountingReader(SourceReader[int]):
    def __init__(self, splits: list[SourceSplit]) -> None:
        self.left = {split.split_id: list(split.position) for split in splits}

    def poll(self, max_records: int) -> list[int] | None:
        for position in self.left.values():
            begin, end = position
            if begin < end:
                position[0] = min(end, begin + max_records)
                return list(range(begin, position[0]))
        return None

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(name, list(position)) for name, position in self.left.items()]

    def add_splits(self, splits: list[SourceSplit]) -> None:
        self.left.update((split.split_id, list(split.position)) for split in splits)


class PositionsBeforeThePoll(CountingReader):
    """Remembers where the last poll began, not where it ended."""

    def poll(self, max_records: int) -> list[int] | None:
        self.before = {name: list(position) for name, position in self.left.items()}
        return super().poll(max_records)

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(name, position) for name, position in getattr(self, "before", self.left).items()]


class SharesItsPositions(CountingReader):
    """Puts its own lists into snapshots, and goes on changing them."""

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(name, position) for name, position in self.left.items()]


class LosesWhatItHasNotBegun(CountingReader):
    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [each for each in super().snapshot_state(checkpoint_id) if each.position[0] not in (0, 10)]


class TakesMoreThanItMay(CountingReader):
    def poll(self, max_records: int) -> list[int] | None:
        return super().poll(max_records + 1)


class NeverEnds(CountingReader):
    def poll(self, max_records: int) -> list[int]:
        return super().poll(max_records) or []


class ForgetsAddedSplits(CountingReader):
    def add_splits(self, splits: list[SourceSplit]) -> None:
        """Take none."""


class RewindsWhenAborted(CountingReader):
    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        if "low" in self.left:
            self.left["low"][0] = 0


def counting(reader: Callable[..., CountingReader]) -> SourceUnderTest:
    class Mutated(Counting):
        def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> CountingReader:
            return reader(splits)

    return SourceUnderTest(Mutated, list(range(25)))


class TestCounting(SourceContract):
    @pytest.fixture
    def source(self) -> SourceUnderTest:
        return counting(CountingReader)


@pytest.mark.parametrize(
    ("reader", "found_by"),
    [
        (PositionsBeforeThePoll, "test_a_restore_can_be_repeated"),
        (SharesItsPositions, "test_a_snapshot_disturbs_nothing"),
        (LosesWhatItHasNotBegun, "test_a_restore_goes_on_behind_the_last_record"),
        (TakesMoreThanItMay, "test_a_poll_returns_no_more_than_it_is_asked_for"),
        (NeverEnds, "test_a_snapshot_disturbs_nothing"),
        (ForgetsAddedSplits, "test_added_splits_are_read"),
        (RewindsWhenAborted, "test_notifications_change_no_record"),
    ],
)
def test_a_defect_of_a_source_is_found(reader: type[CountingReader], found_by: str) -> None:
    test = getattr(SourceContract(), found_by)
    more = {"parallelism": 2} if "parallelism" in signature(test).parameters else {}
    with pytest.raises(AssertionError):
        test(counting(reader), **more)
