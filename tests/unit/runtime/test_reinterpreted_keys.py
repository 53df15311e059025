"""`reinterpret_as_keyed_stream`: keyed state without another exchange."""

from __future__ import annotations

import pytest

from rekindle.datastream import DataStreamUtils, KeyedProcessFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import GraphError, InvalidKeyError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed

WORDS = [f"w{number % 7}" for number in range(200)]


class Numbered(KeyedProcessFunction):
    """Counts per key; emits the result of `of(key, count)`."""

    def __init__(self, of):
        self._of = of

    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", int))

    def process_element(self, value, ctx):
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield self._of(ctx.get_current_key(), count)


def first(pair):
    return pair[0]


def twice_counted(env, again, of=lambda key, count: (key, count)):
    once = env.from_collection(WORDS, str).key_by(lambda word: word, str).process(Numbered(of))
    keyed = again(once, first, str)
    return keyed.process(Numbered(lambda key, count: (key, count, "again")))


def by_key(stream, key_selector, key_type):
    return stream.key_by(key_selector, key_type)


def test_the_results_are_those_of_key_by_and_one_exchange_is_gone():
    expected = InProcessJob.of(twice_counted(checkpointed(2), by_key))
    job = InProcessJob.of(twice_counted(checkpointed(2), DataStreamUtils.reinterpret_as_keyed_stream))
    assert job.plan.stages == expected.plan.stages - 1
    assert any("KEYED PROCESS -> KEYED PROCESS" in chain.name for chain in job.plan.chains)
    results = job.run()
    assert len(results) == len(WORDS)
    assert sorted(results) == sorted(expected.run())


@pytest.mark.parametrize("parallelism", [1, 3])
def test_its_state_moves_with_the_key_groups(parallelism):
    def program(parallelism):
        return twice_counted(checkpointed(parallelism), DataStreamUtils.reinterpret_as_keyed_stream)

    job = InProcessJob.of(program(2), max_records=30)
    checkpoint = job.checkpoint()
    job.kill()
    results = checkpoint.results + InProcessJob.of(program(parallelism), restore=checkpoint).run()
    assert sorted(results) == sorted(InProcessJob.of(program(2)).run())


def test_a_record_whose_key_belongs_elsewhere_fails_the_job():
    env = checkpointed(2)
    astray = twice_counted(env, DataStreamUtils.reinterpret_as_keyed_stream, lambda key, count: (f"{key}/{count}", 1))
    with pytest.raises(OperatorFailure) as failure:
        InProcessJob.of(astray).run()
    causes = []
    error = failure.value
    while error is not None:
        causes.append(error)
        error = error.__cause__
    assert any(isinstance(cause, InvalidKeyError) and "key group" in str(cause) for cause in causes)


def test_another_parallelism_cannot_be_keyed_alike():
    stream = twice_counted(checkpointed(2), DataStreamUtils.reinterpret_as_keyed_stream).set_parallelism(3)
    with pytest.raises(GraphError, match=r"reinterpret_as_keyed_stream\(\).*same parallelism.*2 and 3"):
        InProcessJob.of(stream)


def test_another_number_of_key_groups_cannot_be_keyed_alike():
    stream = twice_counted(checkpointed(2), DataStreamUtils.reinterpret_as_keyed_stream).set_max_parallelism(64)
    with pytest.raises(GraphError, match=r"same max_parallelism.*128 and 64"):
        InProcessJob.of(stream)


@pytest.mark.parametrize("partition", [lambda stream: stream.key_by(first), lambda stream: stream.rebalance()])
def test_a_stream_that_is_about_to_be_partitioned_is_no_keyed_one(partition):
    stream = partition(checkpointed(2).from_collection([("a", 1)]))
    with pytest.raises(GraphError, match=r"reinterpret_as_keyed_stream\(\).*about to be partitioned"):
        DataStreamUtils.reinterpret_as_keyed_stream(stream, first)
