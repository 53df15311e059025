"""`cache`: the first job that reads the stream computes it, later jobs read the kept records."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from rekindle import config
from rekindle.common import JobExecutionResult, JobID, RestartStrategies, WatermarkStrategy
from rekindle.datastream import (
    CachedDataStream,
    ProcessFunction,
    RuntimeExecutionMode,
    SourceFunction,
    find_launcher,
)
from rekindle.datastream.transformations import Program
from rekindle.errors import GraphError
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import OperatorKind
from rekindle.runtime.cached_chunks import CachedChunksSource
from rekindle.runtime.exchange.chunk import read_header
from rekindle.testing import InProcessJob
from tests.support.environments import environment


class ChunkJob(InProcessJob):
    """Returns what it collects as chunks."""

    def _collected(self, chunk: bytes) -> list[bytes]:
        return [chunk]


class InProcessEngine:
    """A launcher that runs programs in this process and records the programs."""

    def __init__(self) -> None:
        self.materialized: list[Program] = []
        self.launched: list[list[str]] = []
        self.results: list[Any] = []

    def materialize(self, program: Program) -> CachedChunksSource:
        self.materialized.append(program)
        chunks = ChunkJob(build_plan(program), max_records=5).run()
        (collect,) = program.transformations
        return CachedChunksSource(sorted(chunks, key=lambda chunk: read_header(chunk)[:4]), collect.output_type)

    def launch(self, program: Program) -> Any:
        plan = build_plan(program)
        self.launched.append([node.name for node in plan.nodes])
        collected = InProcessJob(plan, max_records=5).run()
        future: Future[JobExecutionResult] = Future()
        future.set_result(JobExecutionResult(JobID(), 1, {}))
        return SimpleNamespace(results=lambda: iter([collected]), result=lambda: future)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> InProcessEngine:
    fake = InProcessEngine()
    monkeypatch.setattr(find_launcher, "load_launcher", lambda: fake)
    return fake


def collected(stream: Any) -> list[Any]:
    return list(stream.execute_and_collect())


@pytest.mark.parametrize("declared", [None, int])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_first_job_computes_it_and_later_ones_read_it(engine, declared, parallelism):
    env = environment(parallelism)
    squares = env.from_sequence(1, 20).map(lambda n: n * n, output_type=declared).cache()
    assert isinstance(squares, CachedDataStream)
    even = squares.filter(lambda n: n % 2 == 0)
    assert sorted(collected(even)) == sorted(n * n for n in range(2, 21, 2))
    assert sorted(collected(squares.map(lambda n: -n))) == sorted(-n * n for n in range(1, 21))
    assert sorted(collected(squares)) == [n * n for n in range(1, 21)]
    assert len(engine.materialized) == 1
    assert engine.materialized[0].job_name.endswith(": cache of 'Map'")
    assert all(names[0] == "Source: Cache of 'Map'" for names in engine.launched)


def test_the_order_and_the_timestamps_are_kept(engine):
    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value * 10)
    kept = env.from_collection(range(12)).assign_timestamps_and_watermarks(strategy).cache()
    for _ in range(2):
        assert collected(kept.process(Times())) == [(n, n * 10) for n in range(12)]


def test_invalidate_lets_the_next_job_compute_it_anew(engine):
    env = environment()
    kept = env.from_collection([1, 2]).map(lambda n: n).cache()
    collected(kept)
    collected(kept)
    kept.invalidate()
    assert collected(kept) == [1, 2]
    assert len(engine.materialized) == 2


def test_a_cache_of_a_cache(engine):
    env = environment()
    inner = env.from_collection([1, 2]).map(lambda n: n + 1).name("inner").cache()
    outer = inner.map(lambda n: n * 10).name("outer").cache()
    assert collected(outer) == [20, 30]
    names = [program.job_name.split(": ")[1] for program in engine.materialized]
    assert names == ["cache of 'inner'", "cache of 'outer'"]
    outer.invalidate()
    assert collected(outer) == [20, 30]
    assert len(engine.materialized) == 3, "the inner one was still there"


def test_what_others_read_too_is_computed_for_them(engine):
    """Operators that only the cache reads do not run again. Operators with another reader do."""
    env = environment()
    shared = env.from_collection([1, 2]).map(lambda n: n).name("shared")
    kept = shared.map(lambda n: n + 1).name("only for the cache").cache()
    shared.print("others")
    assert collected(kept.map(str).name("reader")) == ["2", "3"]
    assert [name for name in engine.launched[0] if "Collect Stream" not in name] == [
        "Source: Collection Source",
        "shared",
        "Source: Cache of 'only for the cache'",
        "Sink: Print to Std. Out",
        "reader",
    ]


def test_only_what_a_job_reads_is_computed(engine):
    env = environment()
    env.from_collection([1]).cache()
    assert collected(env.from_collection([5])) == [5]
    assert engine.materialized == []


def test_the_environments_end_is_the_caches_end(engine):
    env = environment()
    kept = env.from_collection([1]).cache()
    collected(kept)
    env.close()
    assert not kept._is_filled


def test_the_job_of_a_cache_does_not_begin_at_the_programs_savepoint(engine):
    env = environment()
    env.get_configuration().set_string(config.RECOVERY_PATH.key, "/somewhere")
    kept = env.from_collection([1]).cache()
    program = env._program_to_run("reader", kept._collect())
    assert engine.materialized[0].configuration.get(config.RECOVERY_PATH) is None
    assert program.configuration.get(config.RECOVERY_PATH) == "/somewhere"


@pytest.mark.parametrize(
    ("checkpointed", "mode", "restarts"),
    [(True, RuntimeExecutionMode.STREAMING, True), (True, RuntimeExecutionMode.BATCH, False), (False, None, False)],
)
def test_without_checkpoints_its_job_is_not_restarted(engine, checkpointed, mode, restarts):
    """Without checkpoints, a restart would collect the records before the failure a second time."""
    env = environment()
    strategy = RestartStrategies.fixed_delay_restart(3, 10)
    env.set_restart_strategy(strategy)
    if checkpointed:
        env.enable_checkpointing(100)
    if mode is not None:
        env.set_runtime_mode(mode)
    collected(env.from_collection([1]).cache())
    assert (engine.materialized[0].restart_strategy is strategy) == restarts


def test_without_a_launcher_it_is_a_stream_like_any_other():
    """In-process jobs, `explain()` and plans contain an operator that forwards the records."""
    kept = environment().from_collection([1, 2]).cache()
    plan = build_plan(environment()._program("plan", kept._collect()))
    assert [node.kind for node in plan.nodes][1] is OperatorKind.MAP
    assert InProcessJob.of(kept).run() == [1, 2]


class Endless(SourceFunction):
    def run(self, ctx):
        pass

    def cancel(self):
        pass


def test_what_cannot_be_kept_is_refused():
    env = environment()
    with pytest.raises(GraphError, match=r"cache\(\) .* needs bounded sources, but 'Custom Source' may never end"):
        env.add_source(Endless()).map(str).cache()
    with pytest.raises(GraphError, match=r"a KeyedStream is a partitioning, which is not kept; call cache\(\) before"):
        env.from_collection([1]).key_by(lambda n: n).cache()
    kept = env.from_collection([1]).map(str).cache()
    with pytest.raises(GraphError, match=r"set_parallelism\(\) is not for a CachedDataStream: call it on 'Map'"):
        kept.set_parallelism(2)
    with pytest.raises(GraphError, match=r"name\(\) is not for a CachedDataStream"):
        kept.name("kept")


def test_reading_goes_on_after_a_restore(engine):
    """The source of a cache has a split per kept row. Its position is the number of records read from the row."""

    def program(parallelism):
        env = environment(parallelism).enable_checkpointing(1000)
        kept = env.from_sequence(1, 40).map(lambda n: n).cache()
        return env._program_to_run("reader", kept._collect())

    job = InProcessJob(build_plan(program(2)), max_records=3)
    checkpoint = job.checkpoint()
    job.kill()
    rest = InProcessJob(build_plan(program(2)), max_records=3, restore=checkpoint).run()
    assert sorted(checkpoint.results + rest) == list(range(1, 41))
