"""A chain may be as long as its program wants: generated programs have hundreds of steps."""

from __future__ import annotations

import sys

import pytest

from rekindle.common import WatermarkStrategy
from rekindle.datastream import ProcessFunction
from rekindle.graph.build import build_plan
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import environment

OPERATORS = 1000
BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)


class PassesOn(ProcessFunction):
    def process_element(self, value, ctx):
        assert ctx.timestamp() is not None
        yield value


STEPS = {
    "map": lambda stream: stream.map(lambda value: value, int),
    "filter": lambda stream: stream.filter(lambda value: True),
    "flat_map": lambda stream: stream.flat_map(lambda value: [value], int),
    "process": lambda stream: stream.process(PassesOn(), int),
}


@pytest.fixture(autouse=True)
def recursion_limit():
    limit = sys.getrecursionlimit()
    yield limit
    sys.setrecursionlimit(limit)


def chained(step, count=OPERATORS):
    env = environment(1)
    stream = env.from_collection([1, 2, 3], int).assign_timestamps_and_watermarks(BY_VALUE)
    for _ in range(count):
        stream = step(stream)
    return stream


@pytest.mark.parametrize("step", STEPS)
def test_records_watermarks_barriers_and_the_end_get_through(step):
    job = InProcessJob.of(chained(STEPS[step]), max_records=1)
    assert len(job.plan.chains) == 1
    checkpoint = job.checkpoint()
    assert checkpoint.results == [1]
    job.kill()
    assert InProcessJob.of(chained(STEPS[step]), restore=checkpoint).run() == [2, 3]


def test_its_name_and_its_plan_can_be_told():
    stream = chained(STEPS["map"])
    plan = build_plan(stream._env._program("long", stream._collect()))
    assert plan.chains[0].name.count(" -> ") > OPERATORS
    assert stream._env.get_execution_plan().count('"Map"') >= 1


def test_a_function_that_calls_itself_for_ever_is_still_told(recursion_limit):
    def endless(value):
        return endless(value)

    with pytest.raises(OperatorFailure) as failed:
        InProcessJob.of(chained(lambda stream: stream.map(endless, int), 1)).run()
    assert isinstance(failed.value.__cause__, RecursionError)
    assert sys.getrecursionlimit() <= recursion_limit + 100
