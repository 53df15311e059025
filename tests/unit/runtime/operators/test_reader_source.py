"""Sources with readers: splits from the driver, checkpoints, watermarks per split, and watermark alignment."""

from __future__ import annotations

import pytest

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.coordinator.source_splits import StartingSplits
from rekindle.datastream import OutputTag
from rekindle.datastream.connectors.base import Batch, Boundedness, Source, SourceReader, SourceSplit
from rekindle.errors import ConnectorError, JobExecutionError
from rekindle.graph.build import build_plan
from rekindle.runtime.task_head import EpochBudget
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed
from tests.unit.runtime.checkpoint_programs import Times
from tests.unit.runtime.operators.split_log import Log, LogSource

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


@pytest.fixture(autouse=True)
def clear_log():
    Log.clear()
    yield
    Log.clear()


def by_time():
    return WatermarkStrategy.for_monotonous_timestamps()


def stream_of(source, parallelism, strategy=None):
    env = checkpointed(parallelism)
    return env.from_source(source, strategy or by_time(), "log", PAIR).uid("log")


# -- splits -----------------------------------------------------------------------------------------------------------


def test_splits_are_created_once_whatever_the_parallelism():
    Log.splits = {"0": [1], "1": [2], "2": [3]}
    assert sorted(InProcessJob.of(stream_of(LogSource(), 3)).run()) == [("0", 1), ("1", 2), ("2", 3)]
    assert Log.created == [3]


def test_splits_go_to_their_owner():
    Log.splits = {"2": [1], "1": [2], "0": [3], "3": [4]}
    InProcessJob.of(stream_of(LogSource(), 2)).run()
    assert [each for each in Log.told if each[0] == "opened"] == [
        ("opened", 0, False, ["0", "2"]),
        ("opened", 1, False, ["1", "3"]),
    ]


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1), (1, 4), (2, 2)])
def test_restored_splits_go_to_their_owner_at_any_parallelism(before, after):
    Log.splits = {str(name): [name * 10 + n for n in range(4)] for name in range(5)}
    job = InProcessJob.of(stream_of(LogSource(), before), max_records=5)
    checkpoint = job.checkpoint()
    job.kill()
    Log.told.clear()
    rest = InProcessJob.of(stream_of(LogSource(), after), restore=checkpoint).run()
    everything = [(name, time) for name, times in Log.splits.items() for time in times]
    assert sorted(checkpoint.results + rest) == sorted(everything)
    assert Log.created == [before], "a restored source has its splits in its state"
    opened = {told[1]: told[3] for told in Log.told if told[0] == "opened"}
    assert opened == {i: sorted(str(n) for n in range(5) if n % after == i) for i in range(after)}


def test_two_splits_of_one_id_are_refused():
    class Twice(LogSource):
        def create_splits(self, parallelism):
            return [SourceSplit("0", 0), SourceSplit("0", 0)]

    with pytest.raises(ConnectorError, match="The source 'Source: log' has two splits with the id '0'"):
        InProcessJob.of(stream_of(Twice(), 1))


def test_an_error_while_splits_are_created_shows_the_users_traceback():
    class Broken(LogSource):
        def create_splits(self, parallelism):
            raise OSError("no such server")

    with pytest.raises(JobExecutionError) as raised:
        InProcessJob.of(stream_of(Broken(), 1))
    assert str(raised.value).endswith(
        "OSError: no such server\n\nThe source 'Source: log' could not create its splits."
    )
    assert "in create_splits" in str(raised.value)
    assert "source_splits.py" not in str(raised.value)


# -- discovery --------------------------------------------------------------------------------------------------------


def unbounded(parallelism=2):
    return stream_of(LogSource(bounded=False, discovers=True), parallelism)


def epochs(job, count=6):
    return [record for _ in range(count) for record in job.epoch()]


def test_discovered_splits_are_read_from_their_beginning_and_none_twice():
    Log.splits = {"0": [1, 2]}
    job = InProcessJob.of(unbounded())
    assert epochs(job) == [("0", 1), ("0", 2)]
    Log.splits = {**Log.splits, "1": [5, 6]}
    job.discover_splits()
    job.discover_splits()
    assert epochs(job) == [("1", 5), ("1", 6)]
    assert [each for each in Log.told if each[0] == "added"] == [("added", 1, ["1"])]
    job.kill()


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_splits_discovered_before_a_checkpoint_stay_in_it(parallelism):
    Log.splits = {"0": [1], "1": [2]}
    job = InProcessJob.of(unbounded())
    Log.splits = {**Log.splits, "4": [3, 4]}
    job.discover_splits()
    read = epochs(job)
    checkpoint = job.checkpoint()
    job.kill()
    Log.splits = {**Log.splits, "4": [3, 4, 5], "5": [6]}
    restored = InProcessJob.of(unbounded(parallelism), restore=checkpoint)
    restored.discover_splits()
    read += checkpoint.results + epochs(restored)
    assert sorted(read) == [("0", 1), ("1", 2), ("4", 3), ("4", 4), ("4", 5), ("5", 6)]
    restored.kill()


def test_a_split_that_was_announced_after_the_cut_is_announced_again_after_a_restore():
    Log.splits = {"0": [1]}
    job = InProcessJob.of(unbounded())
    checkpoint = job.checkpoint()
    Log.splits = {**Log.splits, "1": [2]}
    job.discover_splits()
    assert ("1", 2) in epochs(job)
    job.kill()
    restored = InProcessJob.of(unbounded(), restore=checkpoint)
    restored.discover_splits()
    assert epochs(restored) == [("1", 2)]
    restored.kill()


def restored_log(discovers_at_restore):
    """Read split 0, add split 1 while the job is down, and return what the restored job reads."""
    source = LogSource(bounded=False)
    source.discovers_at_restore = discovers_at_restore
    Log.splits = {"0": [1, 2]}
    job = InProcessJob.of(stream_of(source, 2))
    assert epochs(job) == [("0", 1), ("0", 2)]
    checkpoint = job.checkpoint()
    job.kill()
    Log.splits = {"0": [1, 2, 3], "1": [7, 8]}
    restored = InProcessJob.of(stream_of(source, 2), restore=checkpoint)
    records = sorted(epochs(restored))
    restored.kill()
    return records


def test_a_restore_finds_what_appeared_meanwhile_also_without_an_interval():
    assert restored_log(discovers_at_restore=True) == [("0", 3), ("1", 7), ("1", 8)]


def test_a_source_that_has_all_its_splits_at_the_start_is_not_asked_again():
    assert restored_log(discovers_at_restore=False) == [("0", 3)]


def test_all_attempts_of_a_run_begin_with_the_splits_of_the_first():
    Log.splits = {"0": [1]}
    stream = stream_of(LogSource(), 2)
    plan = build_plan(stream._env._program("test", stream._collect()))
    starting = StartingSplits(plan)
    first = starting.assigned(())
    Log.splits = {"0": [1], "1": [2]}
    assert starting.assigned(()) == first
    assert Log.created == [2]


# -- checkpoints ------------------------------------------------------------------------------------------------------


def test_readers_hear_of_completed_and_aborted_checkpoints():
    Log.splits = {"0": [1, 2, 3]}
    job = InProcessJob.of(stream_of(LogSource(), 1), max_records=1)
    job.checkpoint()
    pending = job.checkpoint(complete=False)
    job.abort(pending)
    job.checkpoint(savepoint=True)
    told = [each for each in Log.told if each[0] in ("snapshot", "complete", "aborted")]
    assert told == [("snapshot", 1), ("complete", 1), ("snapshot", 2), ("aborted", 2), ("snapshot", 3)]
    job.kill()


def test_finished_splits_stay_in_the_checkpoint_after_the_source_has_ended():
    Log.splits = {"0": [1], "1": [2, 3, 4, 5, 6]}
    job = InProcessJob.of(stream_of(LogSource(), 2), max_records=1)
    job.epoch()
    job.epoch()
    checkpoint = job.checkpoint()
    job.kill()
    second = InProcessJob.of(stream_of(LogSource(), 2), restore=checkpoint, max_records=1)
    again = second.checkpoint()
    second.kill()
    rest = InProcessJob.of(stream_of(LogSource(), 1), restore=again).run()
    assert [record for record in rest if record[0] == "0"] == []
    assert ("opened", 0, True, ["0", "1"]) in Log.told


# -- watermarks per split ---------------------------------------------------------------------------------------------


def watermarks(source, parallelism, strategy=None):
    keyed = stream_of(source, parallelism, strategy).key_by(lambda pair: pair[0], str)
    return keyed.process(Times()).set_parallelism(1)


def test_the_watermark_is_the_lowest_of_the_splits():
    """A split that is ahead makes no record of another one late: one watermark for both would."""
    Log.splits = {"0": [1000, 1001, 1002], "1": [10, 11, 12]}
    seen = InProcessJob.of(watermarks(LogSource(), 1), max_records=2).run()
    assert max(watermark for value, _, watermark in seen if value[0] == "1") < 12


def test_an_idle_split_does_not_hold_back_the_watermark():
    Log.splits = {"0": [1000], "1": []}
    clock = ManualClock()
    strategy = by_time().with_idleness(Duration.of_seconds(5))
    job = InProcessJob.of(watermarks(LogSource(bounded=False), 1, strategy), clock=clock)
    job.epoch()
    Log.splits["0"].append(2000)
    assert job.epoch()[-1][2] < 0, "split 1 may still bring anything"
    clock.advance(5000)
    Log.splits["0"].append(3000)
    job.epoch()
    Log.splits["0"].append(4000)
    assert job.epoch()[-1][2] == 2999
    job.kill()


def test_times_of_splits_survive_a_restore():
    Log.splits = {"0": [1000, 1001], "1": [10, 11]}
    job = InProcessJob.of(watermarks(LogSource(bounded=False), 1), max_records=2)
    checkpoint = job.checkpoint()
    job.kill()
    Log.splits["0"].append(1002)
    restored = InProcessJob.of(watermarks(LogSource(bounded=False), 1), restore=checkpoint, max_records=1)
    restored.epoch()
    late = [watermark for *_, watermark in restored.epoch() + restored.epoch()]
    assert max(late) <= 10
    restored.kill()


def test_a_subtask_without_splits_does_not_hold_back_the_others():
    Log.splits = {"0": [1000, 1001, 1002]}
    seen = InProcessJob.of(watermarks(LogSource(bounded=False), 2), max_records=1)
    found = [watermark for _ in range(6) for *_, watermark in seen.epoch()]
    assert max(found) >= 999
    seen.kill()


# -- watermark alignment ----------------------------------------------------------------------------------------------


def aligned(pausing=True, drift_ms=100):
    strategy = by_time().with_watermark_alignment("both", Duration.of_millis(drift_ms), Duration.of_millis(0))
    env = checkpointed(1)
    fast = env.from_source(LogSource(prefix="1", pausing=pausing, bounded=False), strategy, "fast", PAIR)
    slow = env.from_source(LogSource(prefix="2", pausing=pausing, bounded=False), strategy, "slow", PAIR)
    return fast.union(slow)


@pytest.mark.parametrize("pausing", [True, False])
def test_a_source_that_is_too_far_ahead_waits_for_the_others(pausing):
    Log.splits = {"10": [100 * n for n in range(1, 20)], "20": [10]}
    job = InProcessJob.of(aligned(pausing), max_records=1)
    read = epochs(job, 12)
    assert max(time for name, time in read if name == "10") <= 300, (
        "200 is the first beyond 10 + 100, 300 may be polled"
    )
    Log.splits["20"].append(1500)
    read += epochs(job, 30)
    assert 1500 < max(time for name, time in read if name == "10") <= 1700
    job.kill()


def test_a_split_that_waits_for_others_does_not_become_idle():
    """While it is paused, time does not count; its records are late for no strategy behind it."""
    strategy = by_time().with_watermark_alignment("one", Duration.of_millis(100), Duration.of_millis(0))
    Log.splits = {"0": [100 * n for n in range(1, 20)], "1": [10]}
    clock = ManualClock()
    idle_later = strategy.with_idleness(Duration.of_seconds(5))
    job = InProcessJob.of(watermarks(LogSource(bounded=False), 1, idle_later), clock, max_records=2)
    for _ in range(8):
        job.epoch()
        clock.advance(1_000)
        Log.splits["1"].append(Log.splits["1"][-1] + 1)
    assert ("paused", ["0"]) in Log.told
    times = next(iter(job.tasks.values()))._head.operator.times.splits
    assert not times._splits["0"].idle
    job.kill()


def test_splits_of_one_source_pause_one_by_one():
    strategy = by_time().with_watermark_alignment("one", Duration.of_millis(100), Duration.of_millis(0))
    Log.splits = {"0": [100 * n for n in range(1, 20)], "1": [10, 20, 30]}
    job = InProcessJob.of(stream_of(LogSource(bounded=False), 1, strategy), max_records=2)
    read = epochs(job, 12)
    assert [time for name, time in read if name == "1"] == [10, 20, 30], "the slow split goes on"
    assert max(time for name, time in read if name == "0") <= 300
    assert ("paused", ["0"]) in Log.told
    job.kill()


def test_without_alignment_the_fast_source_runs_ahead():
    Log.splits = {"10": [100 * n for n in range(1, 20)], "20": [10]}
    env = checkpointed(1)
    streams = [env.from_source(LogSource(prefix=p, bounded=False), by_time(), p, PAIR) for p in ("1", "2")]
    job = InProcessJob.of(streams[0].union(streams[1]), max_records=1)
    assert ("10", 1900) in epochs(job, 30)
    job.kill()


# -- records ----------------------------------------------------------------------------------------------------------


class Shared(Source):
    """Returns one list again and again, changed: only a source with fresh records may do without copies."""

    returns_fresh_records = False

    def boundedness(self):
        return Boundedness.BOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit("0", 0)]

    def create_reader(self, context, splits):
        return SharedReader()


class FreshSource(Shared):
    returns_fresh_records = True


class SharedReader(SourceReader):
    def __init__(self):
        self.record, self.polled = [0], 0

    def poll(self, max_records):
        self.polled += 1
        self.record[0] = self.polled
        return [self.record] if self.polled <= 2 else None

    def snapshot_state(self, checkpoint_id):
        return []


@pytest.mark.parametrize(("source", "expected"), [(Shared(), [1, 2]), (FreshSource(), [2, 2])])
def test_records_are_copied_unless_the_source_says_that_they_are_fresh(source, expected):
    stream = checkpointed(1).from_source(source, WatermarkStrategy.no_watermarks(), "shared")
    job = InProcessJob.of(stream.map(Keep()))
    job.run()
    assert Keep.seen == expected


class Keep:
    seen: list[int] = []

    def __init__(self):
        self.records = []

    def __call__(self, record):
        self.records.append(record)
        Keep.seen = [each[0] for each in self.records]
        return record[0]


TAG = OutputTag("poison", str)


class Aside(Shared):
    def create_reader(self, context, splits):
        return AsideReader()


class AsideReader(SourceReader):
    polled = 0

    def poll(self, max_records):
        self.polled += 1
        return Batch([self.polled], side_outputs={TAG: [f"bad {self.polled}"]}) if self.polled <= 2 else None

    def snapshot_state(self, checkpoint_id):
        return []


@pytest.mark.parametrize("strategy", [WatermarkStrategy.no_watermarks(), by_time()])
def test_a_reader_can_write_to_a_side_output(strategy):
    stream = checkpointed(1).from_source(Aside(), strategy, "aside")
    assert InProcessJob.of(stream.get_side_output(TAG)).run() == ["bad 1", "bad 2"]


def test_a_side_output_before_a_strategy_keeps_its_values():
    """The program puts the strategy behind the source: the side output leaves the source itself."""
    stream = checkpointed(1).from_source(Aside(), WatermarkStrategy.no_watermarks(), "aside", int)
    strings = stream.assign_timestamps_and_watermarks(by_time()).map(str, Types.STRING())
    assert sorted(InProcessJob.of(strings.union(stream.get_side_output(TAG))).run()) == ["1", "2", "bad 1", "bad 2"]


def test_records_are_counted_on_their_way_to_the_strategy():
    Log.splits = {"0": [1, 2], "1": [3]}
    job = InProcessJob.of(stream_of(LogSource(), 1))
    (task,) = job.tasks.values()
    assert task.run_epoch(EpochBudget(max_records=100, target_ms=1000)).report.passed[0] == 3
    job.kill()


def test_a_batch_checks_its_columns():
    with pytest.raises(ValueError, match="has 1 timestamps"):
        Batch([1, 2], [1])
    with pytest.raises(ValueError, match="has 1 records in its splits"):
        Batch([1, 2], splits=[("0", 1)])


def test_side_outputs_of_a_source_have_its_watermarks():
    """Else a union with one would hold back event time for ever."""
    stream = checkpointed(1).from_source(AsideInTime(), by_time(), "aside", int)
    aside = stream.get_side_output(TAG).map(len, int)
    seen = InProcessJob.of(stream.union(aside).key_by(lambda n: 0, int).process(Times()), max_records=1).run()
    assert max(watermark for *_, watermark in seen) > 0


class AsideInTime(Aside):
    def create_reader(self, context, splits):
        return AsideInTimeReader()


class AsideInTimeReader(AsideReader):
    def poll(self, max_records):
        batch = super().poll(max_records)
        return None if batch is None else Batch(batch.records, [1000 * self.polled], side_outputs=batch.side_outputs)
