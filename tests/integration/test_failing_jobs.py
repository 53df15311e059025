"""Jobs whose console, functions or sources fail: each job ends, with an error that names the cause."""

from __future__ import annotations

import io
import sys

import pytest

from rekindle.common import RestartStrategies, Types, WatermarkStrategy
from rekindle.datastream import MapFunction, SourceFunction, StreamExecutionEnvironment
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceSplit
from rekindle.errors import CheckpointError, JobCancelledError, JobExecutionError, RekindleError
from tests.support.environments import environment

DEADLINE_S = 60.0


def run_within_deadline(env: StreamExecutionEnvironment, name: str) -> BaseException | None:
    """Run the job and return its error, or None. A job that hangs fails the test."""
    client = env.execute_async(name)
    try:
        client.get_job_execution_result().result(DEADLINE_S)
    except TimeoutError:
        client.cancel()
        raise AssertionError(f"job '{name}' did not end within {DEADLINE_S:.0f} s") from None
    except RekindleError as error:
        return error
    return None


@pytest.mark.timeout(90)
def test_a_console_that_is_not_utf_8_does_not_hang_the_job(spark, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    env = environment(1)
    env.from_collection(["grün", "half a \ud800 pair"]).print()
    assert run_within_deadline(env, "ascii console") is None
    assert raw.getvalue() == b"gr\\xfcn\nhalf a \\ud800 pair\n"


class ClosedPipe(io.StringIO):
    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.timeout(90)
def test_a_closed_console_ends_the_job_with_a_sentence(spark, monkeypatch):
    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    env = environment(1)
    env.from_collection([1, 2]).print()
    error = run_within_deadline(env, "closed console")
    assert isinstance(error, JobExecutionError)
    assert "cannot write to the program's stdout" in str(error)


class FailsAtTheEnd(MapFunction):
    def map(self, value):
        return value

    def close(self):
        raise RuntimeError("could not flush")


@pytest.mark.timeout(90)
def test_a_close_that_fails_fails_the_job(spark):
    env = environment(2)
    env.from_collection([1, 2]).map(FailsAtTheEnd()).add_sink(lambda value: None)
    error = run_within_deadline(env, "lossy")
    assert isinstance(error, JobExecutionError)
    assert str(error).startswith("Traceback"), error
    assert "could not flush" in str(error)
    assert "rekindle/runtime" not in str(error)


class Stubborn(SourceFunction):
    def run(self, ctx):
        while True:
            ctx.collect(1)

    def cancel(self):
        raise RuntimeError("I will not stop")


class TellsItsEnd(MapFunction):
    def __init__(self, path):
        self.path = path

    def map(self, value):
        return value

    def close(self):
        with open(self.path, "a", encoding="ascii") as file:
            file.write("closed")


@pytest.mark.timeout(90)
def test_a_cancel_that_fails_keeps_nobody_from_closing(spark, tmp_path):
    env = environment(1)
    path = tmp_path / "closed"
    stream = env.add_source(Stubborn()).map(TellsItsEnd(str(path)))
    results = stream.execute_and_collect("stubborn")
    assert next(results) == 1
    job = results._job
    job.cancel().result(DEADLINE_S)
    with pytest.raises(JobCancelledError):
        job.result().result(DEADLINE_S)
    assert path.read_text() == "closed"


class Vanishing(SourceReader):
    """Its first poll is empty; the next question, between two epochs, fails."""

    polled = False

    def poll(self, max_records):
        self.polled = True
        return []

    def is_available(self):
        if self.polled:
            raise OSError("the disk has gone")
        return True

    def snapshot_state(self, checkpoint_id: int):
        return []


class VanishingSource(Source):
    def boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit("0")]

    def create_reader(self, context, splits):
        return Vanishing()


@pytest.mark.timeout(90)
def test_a_reader_that_fails_while_it_is_watched_fails_the_job(spark):
    env = environment(1)
    env.from_source(VanishingSource(), WatermarkStrategy.no_watermarks(), "vanishing").add_sink(lambda value: None)
    error = run_within_deadline(env, "vanishing")
    assert isinstance(error, JobExecutionError)
    assert "the disk has gone" in str(error)
    assert "vanishing" in str(error)


@pytest.mark.timeout(90)
def test_a_record_that_does_not_fit_its_type_shows_no_engine_frames(spark):
    env = environment(2)
    env.from_collection([1]).map(lambda n: n, Types.STRING()).rebalance().add_sink(lambda value: None)
    error = run_within_deadline(env, "untrue type")
    assert isinstance(error, JobExecutionError)
    assert "does not fit its declared type String" in str(error)
    assert "rekindle/runtime" not in str(error)


@pytest.mark.timeout(90)
def test_a_mistake_in_a_module_beside_the_program_is_shown_where_the_user_has_it(spark):
    env = environment(2)
    env.from_collection([1]).map(FailsAtTheEnd()).map(divide).add_sink(lambda value: None)
    error = run_within_deadline(env, "own path")
    assert f'File "{__file__}"' in str(error), error


def divide(value):
    return value / 0


class NoSnapshot(MapFunction):
    def map(self, value):
        return value

    def snapshot_state(self, context):
        context.get_raw_operator_state_output().close = no_space
        raise ValueError("not today")


def no_space():
    raise OSError("no space left")


@pytest.mark.timeout(90)
def test_a_snapshot_state_that_fails_shows_the_users_own_line(spark):
    env = environment(1)
    env.enable_checkpointing(100)
    env.set_restart_strategy(RestartStrategies.no_restart())
    env.from_collection([1, 2]).map(NoSnapshot(), Types.LONG()).print()
    error = run_within_deadline(env, "no snapshot")
    assert isinstance(error, CheckpointError)
    first, where, *_ = str(error).splitlines()
    assert first == "Traceback (most recent call last):"
    assert where.endswith("in snapshot_state")
    assert __file__ in where
    assert "Could not complete snapshot 1 for operator Map" in str(error)
    assert "(suppressed: OSError: no space left)" in str(error), "what went wrong while cleaning up"
