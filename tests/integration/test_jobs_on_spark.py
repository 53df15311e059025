"""Whole jobs on one shared Spark session: results, life cycle, errors, logs, and that nothing is left behind."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
import pytest

from rekindle.common import JobStatus, Row, Types, WatermarkStrategy
from rekindle.coordinator.job_events import EpochCounted
from rekindle.coordinator.observer import JobObserver
from rekindle.datastream import (
    KeyedProcessFunction,
    MapFunction,
    ParallelSourceFunction,
    RuntimeExecutionMode,
    SinkFunction,
    SourceFunction,
)
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceSplit
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import JobCancelledError, JobExecutionError, SerializationError, SlotLostError
from rekindle.spark import launcher
from tests.support.environments import environment
from tests.support.slot_processes import slots_of
from tests.support.spark_blocks import block_folder, shuffle_files
from tests.support.waiting import wait_until

DEADLINE_S = 60.0


def collect(stream, name: str = "test") -> list:
    with stream.execute_and_collect(name) as results:
        return list(results)


# -- results ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    sensor: str
    celsius: float


class Alarm(msgspec.Struct, frozen=True):
    sensor: str
    before: float
    after: float


class TemperatureAlarm(KeyedProcessFunction):
    """The text's small function: last temperature in state, an alarm on a large difference."""

    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, value, ctx):
        last = self.last.value()
        self.last.update(value.celsius)
        if last is not None and abs(value.celsius - last) > 10:
            yield Alarm(value.sensor, last, value.celsius)


def test_dataclasses_in_and_structs_out(spark):
    readings = [Reading("a", 20.0), Reading("b", 5.0), Reading("a", 35.5), Reading("b", 7.0), Reading("a", 20.0)]
    stream = environment(2).from_collection(readings, Reading).key_by(lambda r: r.sensor, Types.STRING())
    assert collect(stream.process(TemperatureAlarm(), Alarm)) == [Alarm("a", 20.0, 35.5), Alarm("a", 35.5, 20.0)]


def test_three_stages_and_several_branches_share_an_epoch(spark):
    env = environment(2)
    numbers = env.from_sequence(1, 2000)
    sums = numbers.key_by(lambda n: n % 7).reduce(lambda a, b: a + b).key_by(lambda n: 0).reduce(max)
    tens = numbers.filter(lambda n: n % 10 == 0).rebalance().map(lambda n: ("ten", n))
    assert max(collect(sums)) == max(sum(n for n in range(1, 2001) if n % 7 == rest) for rest in range(7))
    env = environment(2)
    numbers = env.from_sequence(1, 2000)
    tens = numbers.filter(lambda n: n % 10 == 0).rebalance().map(lambda n: ("ten", n))
    evens = numbers.key_by(lambda n: n).map(lambda n: ("all", n)).rebalance().filter(lambda pair: pair[1] % 2 == 0)
    results = collect(tens.union(evens))
    assert sorted(n for kind, n in results if kind == "ten") == list(range(10, 2001, 10))
    assert sorted(n for kind, n in results if kind == "all") == list(range(2, 2001, 2))


def test_results_stream_as_they_come(spark):
    source = DataGeneratorSource(lambda n: n, 1_000_000_000)
    stream = environment(2).from_source(source, WatermarkStrategy.no_watermarks(), "endless", int)
    with stream.filter(lambda n: n % 1000 == 0).execute_and_collect("streamed") as results:
        first = [next(results) for _ in range(20)]
    assert len(first) == 20
    wait_until(lambda: not slots_of("streamed"), "the slots' end after close()", DEADLINE_S)


def test_collect_with_a_limit(spark):
    assert len(environment(2).from_sequence(1, 10**9).execute_and_collect("limited", limit=7)) == 7


def test_batch_mode_on_spark(spark):
    env = environment(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    pairs = env.from_sequence(1, 100).map(lambda n: (n % 3, n), Types.TUPLE([Types.LONG(), Types.LONG()]))
    totals = pairs.key_by(lambda pair: pair[0]).sum(1)
    assert sorted(collect(totals)) == [(rest, sum(n for n in range(1, 101) if n % 3 == rest)) for rest in range(3)]


def test_the_most_records_of_a_flat_map_and_little_memory(spark):
    """I5: inbox and outbox spill, nothing is lost."""
    stream = environment(2, **{"rekindle.slot.memory-buffer": "200kb"}).from_sequence(1, 200)
    counted = stream.flat_map(lambda n: ((n, i) for i in range(1000))).key_by(lambda p: p[0]).map(lambda p: (p[0], 1))
    assert len(collect(counted.key_by(lambda p: p[0]).sum(1).filter(lambda p: p[1] == 1000))) == 200


class NumbersWithReader(Source):
    """A source of the user's own."""

    def boundedness(self):
        return Boundedness.BOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit(f"s{number}", number * 10) for number in range(3)]

    def create_reader(self, context, splits):
        return ThreeEach(splits)


class ThreeEach(SourceReader):
    def __init__(self, splits):
        self.left = [number for split in splits for number in range(split.position, split.position + 3)]

    def poll(self, max_records):
        if not self.left:
            return None
        return [self.left.pop(0)]

    def snapshot_state(self, checkpoint_id: int):
        return []


def test_a_source_of_the_users_own(spark):
    stream = environment(2).from_source(NumbersWithReader(), WatermarkStrategy.no_watermarks(), "own", int)
    assert sorted(collect(stream)) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


class Countdown(ParallelSourceFunction):
    """Runs on every subtask, with offsets kept by the engine."""

    def __init__(self):
        self.running = True

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def run(self, ctx):
        assert ctx.restored_offset is None
        assert ctx.restored_offsets == {}
        for number in range(2000):
            if not self.running:
                return
            with ctx.get_checkpoint_lock():
                ctx.collect((self.subtask, number), offset=number, split=f"split-{self.subtask}")

    def cancel(self):
        self.running = False


def test_a_parallel_source_function(spark):
    results = collect(environment(2).add_source(Countdown()))
    assert sorted(results) == [(subtask, number) for subtask in range(2) for number in range(2000)]


# -- DataFrames -------------------------------------------------------------------------------------------------------


def test_a_dataframe_as_source_and_as_result(spark):
    frame = spark.range(0, 1000, 1, 5).selectExpr("id", "concat('k', id % 4) as key", "id * 0.5 as half")
    rows = environment(2).from_dataframe(frame)
    totals = (
        rows.map(lambda row: (row.key, row.id), Types.TUPLE([Types.STRING(), Types.LONG()]))
        .key_by(lambda pair: pair[0], Types.STRING())
        .sum(1)
        .map(
            lambda pair: Row(key=pair[0], total=pair[1]),
            Types.ROW_NAMED(["key", "total"], [Types.STRING(), Types.LONG()]),
        )
    )
    result = totals.to_dataframe("frames")
    assert result.columns == ["key", "total"]
    assert result.count() == 1000
    top = {
        row["key"]: row["total"]
        for row in result.groupBy("key").max("total").withColumnRenamed("max(total)", "total").collect()
    }
    assert top == {f"k{rest}": sum(range(rest, 1000, 4)) for rest in range(4)}


def test_a_dataframe_keyed_directly_and_an_empty_one(spark):
    frame = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "key string, n long").repartition(3)
    counts = (
        environment(2)
        .from_dataframe(frame)
        .key_by(lambda row: row.key)
        .reduce(lambda x, y: Row(key=x.key, n=x.n + y.n))
    )
    assert sorted((row.key, row.n) for row in collect(counts))[-1] == ("b", 2)
    assert (
        max(
            row.n
            for row in collect(
                environment(2)
                .from_dataframe(frame)
                .key_by(lambda r: r.key)
                .reduce(lambda x, y: Row(key=x.key, n=x.n + y.n))
            )
        )
        == 4
    )
    assert collect(environment(2).from_dataframe(spark.createDataFrame([], "n long"))) == []


# -- life cycle -------------------------------------------------------------------------------------------------------


class Endless(SourceFunction):
    def __init__(self, pause_s: float = 0.01):
        self.pause_s = pause_s
        self.running = True

    def run(self, ctx):
        number = 0
        while self.running:
            ctx.collect(number)
            number += 1
            time.sleep(self.pause_s)

    def cancel(self):
        self.running = False


class Touch(SinkFunction):
    """Leaves a file when it is opened and another when it is closed."""

    def __init__(self, directory: str):
        self.directory = directory

    def open(self, runtime_context):
        self.name = f"{self.directory}/{runtime_context.get_index_of_this_subtask()}"
        open(f"{self.name}.opened", "w").close()

    def invoke(self, value, context):
        self.last = value

    def close(self):
        open(f"{self.name}.closed", "w").close()


def test_execute_async_status_cancel_and_close(spark, tmp_path, caplog):
    caplog.set_level("INFO", "rekindle.job")
    env = environment(2)
    env.add_source(Endless()).rebalance().add_sink(Touch(str(tmp_path)))
    client = env.execute_async("cancelled")
    assert len(str(client.get_job_id())) == 32
    wait_until(lambda: client.get_job_status().result() is JobStatus.RUNNING, "RUNNING", DEADLINE_S)
    processes = slots_of("cancelled")
    assert sorted(process.cmdline()[-1] for process in processes) == ["0", "1"]
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.closed", "0.opened", "1.closed", "1.opened"]
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result()
    psutil.wait_procs(processes, timeout=15)
    assert slots_of("cancelled") == []
    assert "is cancelled and shuts down" in caplog.text
    assert "failed" not in caplog.text


class CountAccumulator(MapFunction):
    def open(self, runtime_context):
        self.counter = runtime_context.get_int_counter("mapped")

    def map(self, value):
        self.counter.add(1)
        return value


def test_accumulators_reach_the_result(spark):
    env = environment(2)
    env.from_sequence(1, 1000).map(CountAccumulator()).add_sink(lambda value: None)
    result = env.execute("accumulated")
    assert result.get_all_accumulator_results() == {"mapped": 1000}
    assert result.get_net_runtime() > 0


def test_no_spark_job_runs_while_there_is_nothing_to_do(spark):
    env = environment(2)
    env.add_source(Once()).key_by(lambda v: v).map(lambda v: v).add_sink(lambda v: None)
    client = env.execute_async("quiet")
    tracker = spark.sparkContext.statusTracker()
    group = str(client.get_job_id())
    wait_until(lambda: len(tracker.getJobIdsForGroup(group)) >= 2, "the first epoch", DEADLINE_S)
    wait_until(lambda: client.get_job_status().result() is JobStatus.RUNNING, "RUNNING", DEADLINE_S)
    settled = wait_until(lambda: _unchanged(lambda: len(tracker.getJobIdsForGroup(group)), 1.0), "silence", DEADLINE_S)
    assert settled <= 4, "one job places the slots, one runs the record's epoch, and at most two are empty"
    client.cancel().result()


def _unchanged(value, seconds: float):
    before = value()
    threading.Event().wait(seconds)
    return before if value() == before else None


class Once(SourceFunction):
    """Emits one record, then nothing."""

    def run(self, ctx):
        ctx.collect("only")
        self.stopped = threading.Event()
        self.stopped.wait()

    def cancel(self):
        stopped = getattr(self, "stopped", None)
        if stopped is not None:
            stopped.set()


class Heartbeat(KeyedProcessFunction):
    """A processing-time timer every 50 ms."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 50)

    def on_timer(self, timestamp, ctx):
        yield timestamp
        ctx.timer_service().register_processing_time_timer(timestamp + 50)


def test_processing_time_timers_wake_the_job(spark):
    stream = environment(2).add_source(Once()).key_by(lambda v: v).process(Heartbeat())
    with stream.execute_and_collect("timers") as results:
        fired = [next(results) for _ in range(5)]
    assert [later - earlier for earlier, later in itertools.pairwise(fired)] == [50] * 4


def test_a_trickle_reaches_the_sink_at_once(spark):
    stream = environment(2).add_source(Endless(0.2)).rebalance().map(lambda n: (n, time.time()))
    with stream.execute_and_collect("trickle") as results:
        got = [(next(results), time.time()) for _ in range(4)]
    latencies = [seen - made for (_, made), seen in got[1:]]
    assert min(latencies) < 2.0


# -- errors and logs --------------------------------------------------------------------------------------------------


def broken(value):
    return {"a": 1}[value]


def test_user_errors_come_first_with_operator_subtask_and_record(spark):
    env = environment(2)
    env.from_collection(["a", "a", "b"]).rebalance().map(broken).name("look up").add_sink(lambda v: None)
    with pytest.raises(JobExecutionError) as caught:
        env.execute("broken")
    message = str(caught.value)
    assert message.startswith("Traceback (most recent call last):")
    assert 'return {"a": 1}[value]' in message
    assert "KeyError: 'b'" in message
    assert "operator 'look up'" in message
    assert "at record 'b'" in message
    assert "rekindle/runtime" not in message, "the engine's frames are not the user's business"
    assert "at org.apache.spark" not in message
    wait_until(lambda: not slots_of("broken"), "the slots' end", DEADLINE_S)


class BadOpen(MapFunction):
    def open(self, runtime_context):
        raise OSError("no such database")

    def map(self, value):
        return value


def test_an_error_in_open(spark):
    env = environment(2)
    env.from_collection([1]).map(BadOpen()).name("enrich").add_sink(lambda v: None)
    with pytest.raises(JobExecutionError, match="no such database") as caught:
        env.execute("bad open")
    assert "operator 'enrich'" in str(caught.value)


class BadSource(SourceFunction):
    def run(self, ctx):
        ctx.collect(1)
        raise RuntimeError("the feed broke")

    def cancel(self):
        pass


def test_an_error_in_run(spark):
    env = environment(2)
    env.add_source(BadSource(), "feed").add_sink(lambda v: None)
    with pytest.raises(JobExecutionError, match="the feed broke"):
        env.execute("bad source")


class HoldsALock(MapFunction):
    def __init__(self):
        self.guard = threading.Lock()

    def map(self, value):
        return value


def test_what_cannot_be_serialized_is_named_with_its_path(spark):
    env = environment(2)
    env.from_collection([1]).map(HoldsALock()).name("locked").add_sink(lambda v: None)
    with pytest.raises(SerializationError) as caught:
        env.execute("unserializable")
    assert "locked" in str(caught.value)
    assert "guard" in str(caught.value)


def test_prints_and_logs_reach_the_driver_with_the_subtasks_name(spark, capsys, caplog):
    def speak(value):
        print("printed", value)
        logging.getLogger("my.functions").warning("logged %s", value)
        return value

    env = environment(1)
    env.from_collection([1]).map(speak).name("speaker").print("out")
    with caplog.at_level(logging.INFO):
        env.execute("loud")
    out = capsys.readouterr().out
    assert "speaker" in out.split("printed 1")[0].splitlines()[-1], "the line begins with the task's name"
    assert "\nout> 1\n" in f"\n{out}"
    assert any(record.name == "my.functions" and "logged 1" in record.getMessage() for record in caplog.records)


# -- killed -----------------------------------------------------------------------------------------------------------


def test_a_killed_slot_is_named_within_seconds(spark):
    env = environment(2)
    env.add_source(Endless()).rebalance().add_sink(lambda v: None)
    client = env.execute_async("victim")
    wait_until(lambda: client.get_job_status().result() is JobStatus.RUNNING, "RUNNING", DEADLINE_S)
    victim = next(process for process in slots_of("victim") if process.cmdline()[-1] == "1")
    others = slots_of("victim")
    killed_at = time.monotonic()
    victim.kill()
    with pytest.raises(SlotLostError, match=f"Slot 1 \\(process {victim.pid}"):
        client.get_job_execution_result().result()
    assert time.monotonic() - killed_at < 15.0, "not by a heartbeat that stayed away"
    psutil.wait_procs(others, timeout=15)
    assert slots_of("victim") == []


class HoldsTheInterpreter(MapFunction):
    """Never returns, and holds the interpreter's lock meanwhile."""

    def map(self, value):
        import re

        return re.match(r"(a+)+$", "a" * 64 + "b")


def test_a_slot_stuck_in_c_code_ends_with_its_job(spark):
    env = environment(1, **{"task.cancellation.timeout": "1 s"})
    env.from_collection([1]).map(HoldsTheInterpreter()).add_sink(lambda v: None)
    client = env.execute_async("stuck")
    wait_until(lambda: client.get_job_status().result() is JobStatus.RUNNING, "RUNNING", DEADLINE_S)
    [slot] = slots_of("stuck")
    wait_until(lambda: slot.cpu_times().user > 0.5, "the regular expression", DEADLINE_S)
    client.cancel().result()
    _gone, alive = psutil.wait_procs([slot], timeout=15)
    assert not alive


def test_a_kill_on_sparks_page_cancels_the_job(spark):
    env = environment(2)
    env.add_source(Endless()).rebalance().add_sink(lambda v: None)
    client = env.execute_async("killed in Spark")
    wait_until(lambda: client.get_job_status().result() is JobStatus.RUNNING, "RUNNING", DEADLINE_S)
    tracker = spark.sparkContext.statusTracker()

    def kill_a_running_job() -> bool:
        for job in tracker.getActiveJobsIds():
            spark.sparkContext._jsc.sc().cancelJob(job)
        return client.get_job_status().result().is_terminal_state()

    wait_until(kill_a_running_job, "the end", DEADLINE_S)
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_sparks_page_shows_job_epoch_and_chain(spark):
    env = environment(2)
    env.from_sequence(1, 10).key_by(lambda n: n).map(lambda n: n).name("my operator").add_sink(lambda v: None)
    client = env.execute_async("visible")
    client.get_job_execution_result().result()
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    descriptions = [
        jobs.apply(i).description().get() for i in range(jobs.size()) if jobs.apply(i).description().isDefined()
    ]
    assert any("visible" in text and "epoch 1" in text for text in descriptions)
    stages = store.stageList(None, False, False, spark.sparkContext._gateway.new_array(spark._jvm.double, 0), None)
    assert any("my operator" in stages.apply(i).name() for i in range(stages.size()))


class WhereItsSlotLives(MapFunction):
    """Cached files are below the directory of the slot."""

    def open(self, runtime_context):
        self.path = Path(runtime_context.get_distributed_cache().get_file("words"))

    def map(self, value):
        return next(str(each) for each in self.path.parents if each.name.startswith("rekindle-slot-"))


def test_nothing_is_left_in_the_temporary_directory(spark, tmp_path):
    (tmp_path / "words").write_text("to be or not to be")
    env = environment(2)
    env.register_cached_file(str(tmp_path / "words"), "words")
    directories = {Path(each) for each in collect(env.from_sequence(1, 10).map(WhereItsSlotLives()))}
    assert len(directories) == 2
    wait_until(lambda: not any(each.exists() for each in directories), "the slots' directories to go", DEADLINE_S)


def test_epochs_leave_no_shuffle_files_threads_or_connections(spark):
    """Some hundred epochs (the benchmark runs for ten minutes): memory and files after each epoch do not grow."""
    folder = block_folder(spark)
    summaries = []

    class Watch(JobObserver):
        def on_event(self, event):
            if isinstance(event, EpochCounted):
                process = psutil.Process()
                summaries.append((threading.active_count(), process.num_fds(), shuffle_files(folder)))

    env = environment(2, **{"execution.buffer-timeout.interval": "1 ms", "rekindle.epoch.max-records": "10"})
    stream = env.from_sequence(1, 1500).key_by(lambda n: n % 5).map(lambda n: n).filter(lambda n: False)
    job = launcher.launch(env._program("many epochs", stream._collect()), observer=Watch())
    job.result().result()
    assert len(summaries) >= 70
    early, late = summaries[10], summaries[-1]
    assert late[0] <= early[0] + 3
    assert late[1] <= early[1] + 10
    assert late[2] <= early[2] + 8, "shuffle files are removed as epochs end"
