"""Async I/O, interval joins, caches, cached files and accumulators in real slots."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

from rekindle.common import RestartStrategies, Time, Types, WatermarkStrategy
from rekindle.common.accumulators import ListAccumulator
from rekindle.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    MapFunction,
    ProcessJoinFunction,
    SourceFunction,
)
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.errors import JobExecutionError
from tests.support.environments import checkpointed, environment

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
SILENCE_S = 30.0


class Lookup(AsyncFunction):
    """A flaky service that answers after a pause; in the first attempt it fails for good at one record."""

    def __init__(self, break_at: int | None = None) -> None:
        self.break_at = break_at

    async def open(self, runtime_context):
        self.chance = random.Random(runtime_context.get_index_of_this_subtask())
        self.connections = asyncio.Semaphore(20)
        self.breaks = runtime_context.get_attempt_number() == 0

    async def async_invoke(self, value):
        async with self.connections:
            await asyncio.sleep(self.chance.random() / 200)
        if self.breaks and value == self.break_at:
            raise RuntimeError(f"the service is down at {value}")
        if self.chance.random() < 0.1:
            raise ConnectionError("try again")
        return [(value, value * value)]


RETRIES = AsyncRetryStrategy.exponential_backoff(20, 1, 10, 2.0, None, lambda error: isinstance(error, ConnectionError))


@pytest.mark.parametrize("ordered", [True, False])
def test_lookups_with_failures_and_a_restart(spark, tmp_path, ordered):
    """Elements in flight are asked again: every record has its answer exactly once, in order if the mode says so."""
    env = checkpointed(1 if ordered else 2, 200, directory=tmp_path)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 10))
    source = DataGeneratorSource(lambda n: n, 3000, RateLimiterStrategy.per_second(2000))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
    wait = AsyncDataStream.ordered_wait_with_retry if ordered else AsyncDataStream.unordered_wait_with_retry
    answers = wait(numbers, Lookup(break_at=2000), Time.minutes(1), RETRIES, 50, PAIR)
    with answers.execute_and_collect(f"lookups, {ordered}") as results:
        found = list(results)
    assert (found if ordered else sorted(found)) == [(n, n * n) for n in range(3000)]


class ThenSilent(SourceFunction):
    """Emits five records, then nothing for a long time."""

    def run(self, ctx):
        self.over = threading.Event()
        for number in range(5):
            ctx.collect(number)
        self.over.wait(SILENCE_S)

    def cancel(self):
        self.over.set()


class Slow(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.3 + value / 10)
        return [value]


@pytest.mark.parametrize("chained", [True, False])
def test_results_come_although_no_input_does(spark, chained):
    """I4: a result that becomes ready between epochs asks for one, in the source's task and in a task behind it."""
    numbers = environment(1).add_source(ThenSilent())
    numbers = numbers if chained else numbers.rebalance()
    started = time.monotonic()
    with AsyncDataStream.ordered_wait(numbers, Slow(), Time.minutes(5)).execute_and_collect("answers") as results:
        assert [next(results) for _ in range(5)] == list(range(5))
    assert time.monotonic() - started < SILENCE_S


class AnswersOnce(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0 if value == 1 else 3600)
        return [value]


def test_a_job_is_cancelled_while_elements_are_in_flight(spark):
    """Also while the epoch waits for room: there are more elements than the capacity and the backlog take."""
    stream = environment(2).from_sequence(1, 1_000_000)
    answers = AsyncDataStream.unordered_wait(stream, AnswersOnce(), Time.hours(2), 10).execute_and_collect("one answer")
    assert next(answers) == 1
    started = time.monotonic()
    answers._job.cancel().result(timeout=60)
    assert time.monotonic() - started < 30


class Broken(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0)
        return [100 // (value - 7)]


def test_an_error_shows_the_users_line_and_the_record(spark):
    env = environment(1)
    AsyncDataStream.ordered_wait(env.from_sequence(1, 10), Broken(), Time.minutes(1)).name("divide").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("broken")
    told = str(caught.value)
    assert "return [100 // (value - 7)]" in told
    assert "ZeroDivisionError" in told
    assert "divide" in told
    assert "at record 7." in told
    assert "async_runner.py" not in told


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1], right[1]


def test_an_interval_join(spark):
    env = environment(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair, _: pair[1])

    def keyed(count):
        records = [(n % 3, n) for n in range(count)]
        stamped = env.from_collection(records, PAIR).assign_timestamps_and_watermarks(strategy)
        return stamped.key_by(lambda pair: pair[0], int)

    joined = keyed(300).interval_join(keyed(200)).between(Time.milliseconds(-3), Time.milliseconds(0))
    with joined.process(Pair(), PAIR).execute_and_collect("joined") as results:
        found = sorted(results)
    assert found == sorted((n, m) for n in range(300) for m in (n - 3, n) if 0 <= m < 200)


def test_a_cached_stream_is_computed_once(spark, tmp_path):
    marks = tmp_path / "computed"
    marks.mkdir()

    class Marked(MapFunction):
        def map(self, value):
            (marks / f"{value}-{time.monotonic_ns()}").touch()
            return value * 2

    env = environment(2)
    kept = env.from_sequence(1, 50).map(Marked(), output_type=int).cache()
    with kept.filter(lambda n: n > 50).execute_and_collect("first") as results:
        assert sorted(results) == list(range(52, 101, 2))
    with kept.map(lambda n: -n).execute_and_collect("second") as results:
        assert sorted(results) == list(range(-100, 0, 2))
    assert len(list(marks.iterdir())) == 50
    kept.invalidate()
    with kept.execute_and_collect("third") as results:
        assert len(list(results)) == 50
    assert len(list(marks.iterdir())) == 100


class UsesFiles(MapFunction):
    def open(self, runtime_context):
        cache = runtime_context.get_distributed_cache()
        self.words = Path(cache.get_file("words")).read_text().split()
        self.directory = sorted(path.name for path in Path(cache.get_file("folder")).iterdir())
        self.said = subprocess.run([cache.get_file("tool")], capture_output=True, text=True, check=True).stdout
        self.greeting = runtime_context.get_job_parameter("greeting", "hello")
        self.pids = ListAccumulator()
        runtime_context.add_accumulator("pids", self.pids)
        self.seen = runtime_context.get_int_counter("seen")

    def map(self, value):
        self.seen.add(1)
        if value < 4:
            self.pids.add(os.getpid())
        return self.words[value % 2], self.directory, self.said.strip(), self.greeting


def test_cached_files_job_parameters_and_accumulators_reach_the_slots(spark, tmp_path):
    (tmp_path / "words.txt").write_text("to be")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").touch()
    (tmp_path / "tool.sh").write_text("#!/bin/sh\necho ran\n")
    env = environment(2)
    env.register_cached_file(str(tmp_path / "words.txt"), "words")
    env.register_cached_file(str(tmp_path / "folder"), "folder")
    env.register_cached_file(str(tmp_path / "tool.sh"), "tool", executable=True)
    env.get_config().set_global_job_parameters({"greeting": "hi"})
    env.from_sequence(1, 100).map(UsesFiles()).add_sink(check_record)
    result = env.execute("files")
    assert result.get_accumulator_result("seen") == 100
    assert len(result.get_accumulator_result("pids")) == 3
    assert os.getpid() not in result.get_accumulator_result("pids")


def check_record(record):
    assert record in (("to", ["a.txt"], "ran", "hi"), ("be", ["a.txt"], "ran", "hi")), record
