"""None as an element, as a value and in keys: it is a value like any other."""

from __future__ import annotations

import pytest

from rekindle.common import Row, Time, Types
from rekindle.datastream import (
    AsyncDataStream,
    AsyncFunction,
    CoMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
)
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed


class PassAsync(AsyncFunction):
    async def async_invoke(self, value):
        return [value]


class PassBoth(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


class PassKeyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class PassProcess(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class PassMap(MapFunction):
    def map(self, value):
        return value


ELEMENTS = [None, 1, None, 2]
THROUGH = {
    "map": lambda stream, env: stream.map(PassMap()),
    "filter": lambda stream, env: stream.filter(lambda value: True),
    "flat_map": lambda stream, env: stream.flat_map(lambda value: [value]),
    "process": lambda stream, env: stream.process(PassProcess()),
    "keyed process": lambda stream, env: stream.key_by(lambda value: 0).process(PassKeyed()),
    "keyed by itself": lambda stream, env: stream.key_by(lambda value: value).process(PassKeyed()),
    "keyed map": lambda stream, env: stream.key_by(lambda value: 0).map(PassMap()),
    "async": lambda stream, env: AsyncDataStream.ordered_wait(stream, PassAsync(), Time.seconds(30)),
    "connected": lambda stream, env: stream.connect(env.from_collection([])).map(PassBoth()),
    "union": lambda stream, env: stream.union(env.from_collection([])).map(PassMap()),
    "rebalance": lambda stream, env: stream.rebalance().map(PassMap()),
    "custom": lambda stream, env: stream.partition_custom(lambda key, n: 0, lambda value: value).map(PassMap()),
}


@pytest.mark.parametrize("operator", THROUGH)
@pytest.mark.parametrize("declared", [None, int | None])
def test_none_is_an_element_like_any_other(operator, declared):
    env = checkpointed(2)
    results = InProcessJob.of(THROUGH[operator](env.from_collection(ELEMENTS, declared), env)).run()
    assert sorted(results, key=repr) == sorted(ELEMENTS, key=repr)


def test_none_is_a_value_for_reduce_too():
    """A None from a state means that the state is empty; a reduce may have None as its value."""

    def either(a, b):
        return (a, b)

    def program():
        return checkpointed().from_collection([None, 1, None]).key_by(lambda value: 0).reduce(either)

    assert InProcessJob.of(program()).run() == [None, (None, 1), ((None, 1), None)]
    job = InProcessJob.of(program(), max_records=1)
    checkpoint = job.checkpoint()
    job.kill()
    assert InProcessJob.of(program(), restore=checkpoint).run() == [(None, 1), ((None, 1), None)]

    def forgets(a, b):
        return None if a is not None else b

    stream = checkpointed().from_collection([1, 2, 3, 4]).key_by(lambda value: 0).reduce(forgets)
    assert InProcessJob.of(stream).run() == [1, None, 3, None]


class CountByKey(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


@pytest.mark.parametrize(
    "record_of",
    [lambda name, n: (name, n), lambda name, n: {"name": name, "n": n}, lambda name, n: Row(name=name, n=n)],
    ids=["tuples", "dicts", "rows"],
)
def test_none_is_a_keys_field_and_a_key_like_any_other(record_of):
    def program(parallelism, selector, key_type):
        records = [record_of(name, n % 2) for n, name in enumerate([None, "", None, "a", None, ""])]
        return checkpointed(parallelism).from_collection(records).key_by(selector, key_type).process(CountByKey())

    def field(record, name, place):
        return record[place] if isinstance(record, tuple) else record[name]

    selectors = {
        None: lambda record: (field(record, "name", 0), field(record, "n", 1)),
        tuple[str | None, int]: lambda record: (field(record, "name", 0), field(record, "n", 1)),
    }
    for key_type, selector in selectors.items():
        job = InProcessJob.of(program(2, selector, key_type), max_records=2)
        checkpoint = job.checkpoint()
        job.kill()
        results = checkpoint.results + InProcessJob.of(program(3, selector, key_type), restore=checkpoint).run()
        assert sorted(results, key=repr) == sorted(
            [((None, 0), 1), ((None, 0), 2), ((None, 0), 3), (("", 1), 1), (("", 1), 2), (("a", 1), 1)], key=repr
        )
    alone = program(2, lambda record: field(record, "name", 0), None)
    assert max(count for key, count in InProcessJob.of(alone).run() if key is None) == 3
