"""The contract of sources with readers, as tests: run them on a source of your own (I7).

A subclass in your tests names the source and its records; pytest finds the tests:

    class TestMySource(SourceContract):
        @pytest.fixture
        def source(self, tmp_path):
            return SourceUnderTest(lambda: MySource(tmp_path), records=[...])
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import pytest

from rekindle.datastream.connectors.base import (
    Batch,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    assign_splits,
)
from rekindle.datastream.vocabulary import Boundedness
from rekindle.serde import tagged_dumps, tagged_loads
from rekindle.serde.pickle_by_value import cloud_dumps

#: So many polls in a row that return no record end the reading of an unbounded source, and fail that of a bounded one.
_EMPTY_POLLS = 1000


@dataclass(frozen=True)
class SourceUnderTest:
    """A source and its records. Each run makes the source anew, as a program would; it always has the same records."""

    make: Callable[[], Source[Any]]
    #: Every record of the source, in any order.
    records: Sequence[Any]


class _Run:
    """The readers of all subtasks, as a job drives them."""

    def __init__(self, under_test: SourceUnderTest, parallelism: int, splits: list[SourceSplit] | None = None) -> None:
        self.source: Source[Any] = pickle.loads(cloud_dumps(under_test.make()))
        self._most_batches = len(under_test.records)
        self.bounded = self.source.boundedness() is Boundedness.BOUNDED
        self.splits = self.source.create_splits(parallelism) if splits is None else splits
        restored = None if splits is None else 1
        self.readers = [
            self.source.create_reader(
                SourceReaderContext(subtask, parallelism, restored_checkpoint_id=restored), list(own)
            )
            for subtask, own in enumerate(assign_splits(self.splits, parallelism, self.source))
        ]

    def batches(self, max_records: int) -> Iterator[Batch[Any]]:
        """Poll the readers in turn, until all have ended or have nothing for long."""
        reading, empty, batches = list(self.readers), 0, 0
        while reading and empty < _EMPTY_POLLS:
            for reader in list(reading):
                polled = reader.poll(max_records)
                if polled is None:
                    reading.remove(reader)
                    continue
                batch = polled if isinstance(polled, Batch) else Batch(polled)
                empty = 0 if batch.records else empty + 1
                if batch.records:
                    batches += 1
                    assert batches <= self._most_batches, "the readers return more records than the source has"
                    yield batch
        if self.bounded:
            assert not reading, f"{len(reading)} readers of a bounded source do not end"

    def rest(self, max_records: int = 3) -> list[Any]:
        return [record for batch in self.batches(max_records) for record in batch.records]

    def begin(self, polls: int) -> list[Any]:
        """Read some batches of two records."""
        some = zip(range(polls), self.batches(2), strict=False)
        return [record for _, batch in some for record in batch.records]

    def snapshot(self, checkpoint_id: int = 1) -> list[SourceSplit]:
        """The positions of all readers, as they come back from a checkpoint."""
        splits = [split for reader in self.readers for split in reader.snapshot_state(checkpoint_id)]
        stored = [(tagged_dumps(split.split_id), tagged_dumps(split.position)) for split in splits]
        return [SourceSplit(tagged_loads(split), tagged_loads(position)) for split, position in stored]

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        self.source.close()


at_each_parallelism = pytest.mark.parametrize("parallelism", [1, 2, 3])


class SourceContract:
    """The contract of `rekindle.datastream.connectors.base.Source` and of its readers.

    >>> from rekindle.datastream.connectors.number_seq import NumberSequenceSource
    >>> numbers = SourceUnderTest(lambda: NumberSequenceSource(1, 20), list(range(1, 21)))
    >>> SourceContract().test_every_record_is_read_once(numbers, parallelism=2)
    """

    #: A snapshot is taken after each of so many batches of two records.
    POLLS: ClassVar[range] = range(8)

    # -- reading -------------------------------------------------------------------------------------------------------

    @at_each_parallelism
    def test_every_record_is_read_once(self, source: SourceUnderTest, parallelism: int) -> None:
        """The readers of all subtasks together return each record once; a bounded source ends then."""
        run = _Run(source, parallelism)
        _assert_all_once(source, run.rest())
        run.close()

    def test_a_poll_returns_no_more_than_it_is_asked_for(self, source: SourceUnderTest) -> None:
        """`max_records` is a limit."""
        for most in (1, 2, 7):
            run = _Run(source, 1)
            assert all(len(batch) <= most for batch in run.batches(most)), f"a poll({most}) returned more"
            run.close()

    @at_each_parallelism
    def test_splits_have_names(self, source: SourceUnderTest, parallelism: int) -> None:
        """Split ids are unique, also in snapshots, and the same again for the same source."""
        first, again = _Run(source, parallelism), _Run(source, parallelism)
        names = [split.split_id for split in first.splits]
        assert len(set(names)) == len(names), f"split ids are not unique: {names}"
        assert [split.split_id for split in again.splits] == names
        first.begin(2)
        snapshot = [split.split_id for split in first.snapshot()]
        assert len(set(snapshot)) == len(snapshot), f"a snapshot has a split twice: {snapshot}"
        first.close()
        again.close()

    def test_batches_say_their_splits(self, source: SourceUnderTest) -> None:
        """A source with watermarks per split says of each record whose it is, and of no split after its end."""
        run = _Run(source, 1)
        names, ended = {split.split_id for split in run.splits}, set[str]()
        for batch in run.batches(3):
            if run.source.has_watermarks_per_split:
                assert batch.splits is not None, "a batch does not say its splits"
            own = {split for split, _ in batch.splits or ()}
            assert own <= names
            assert not own & ended, f"records of {own & ended} after their end"
            ended.update(batch.finished_splits)
        run.close()

    def test_a_reader_without_splits_has_no_records(self, source: SourceUnderTest) -> None:
        """A subtask that gets no splits reads nothing; in a bounded source it ends."""
        run = _Run(source, 2, splits=[])
        assert run.rest() == []
        run.close()

    # -- positions -----------------------------------------------------------------------------------------------------

    @at_each_parallelism
    def test_a_restore_goes_on_behind_the_last_record(self, source: SourceUnderTest, parallelism: int) -> None:
        """From each snapshot the rest is read, once; also by other subtasks than before."""
        for polls in self.POLLS:
            run = _Run(source, 2)
            read = run.begin(polls)
            snapshot = run.snapshot()
            run.close()
            restored = _Run(source, parallelism, snapshot)
            _assert_all_once(source, read + restored.rest())
            restored.close()

    def test_a_restore_can_be_repeated(self, source: SourceUnderTest) -> None:
        """A job that fails again goes on from the same positions; a snapshot of a restored reader holds them, too."""
        run = _Run(source, 2)
        read = run.begin(3)
        snapshot = run.snapshot()
        run.close()
        for _ in range(2):
            restored = _Run(source, 2, snapshot)
            more = restored.begin(2)
            again = _Run(source, 2, restored.snapshot(2))
            _assert_all_once(source, read + more + again.rest())
            again.close()
            restored.close()

    def test_a_snapshot_disturbs_nothing(self, source: SourceUnderTest) -> None:
        """The reader goes on after a snapshot; later polls do not change the snapshot."""
        run = _Run(source, 1)
        read, taken = run.begin(2), [split for reader in run.readers for split in reader.snapshot_state(1)]
        before = repr(taken)
        numbers = count(2)
        for batch in run.batches(2):
            read += batch.records
            run.snapshot(next(numbers))
        _assert_all_once(source, read)
        assert repr(taken) == before, "a snapshot changed after it was taken"
        run.close()

    def test_the_end_is_in_a_snapshot(self, source: SourceUnderTest) -> None:
        """A snapshot behind the last record leaves nothing to read."""
        run = _Run(source, 2)
        run.rest()
        restored = _Run(source, 2, run.snapshot())
        assert restored.rest() == []
        run.close()
        restored.close()

    # -- more splits, notifications, close -----------------------------------------------------------------------------

    def test_added_splits_are_read(self, source: SourceUnderTest) -> None:
        """A source that discovers splits takes them while it reads, and has them in snapshots."""
        run = _Run(source, 1)
        reader = run.readers[0]
        if type(reader).add_splits is SourceReader.add_splits or len(run.splits) < 2:
            return
        known, found = run.splits[:1], run.splits[1:]
        run.close()
        for polls in (0, 1):
            later = _Run(source, 1, known)
            read = later.begin(polls)
            later.readers[0].add_splits(list(found))
            names = {split.split_id for split in later.snapshot()}
            assert names >= {split.split_id for split in found}, "a snapshot lacks added splits"
            _assert_all_once(source, read + later.rest())
            later.close()

    def test_notifications_change_no_record(self, source: SourceUnderTest) -> None:
        """Readers hear of completed and aborted checkpoints, late, in any number, or not at all."""
        run = _Run(source, 2)
        read, numbers = list[Any](), count(1)
        for batch in run.batches(2):
            read += batch.records
            run.snapshot(number := next(numbers))
            for reader in run.readers:
                tell = reader.notify_checkpoint_complete if number % 3 else reader.notify_checkpoint_aborted
                tell(number - number % 2)
        _assert_all_once(source, read)
        run.close()

    def test_close_ends_one_run_only(self, source: SourceUnderTest) -> None:
        """A reader may be closed at any time; others read on."""
        stopped, other = _Run(source, 1), _Run(source, 1)
        stopped.begin(1)
        stopped.close()
        _assert_all_once(source, other.rest())
        other.close()


def _assert_all_once(source: SourceUnderTest, read: Iterable[Any]) -> None:
    seen, expected = Counter(map(repr, read)), Counter(map(repr, source.records))
    assert seen == expected, f"missing {dict(expected - seen)}, more often than once {dict(seen - expected)}"
