"""Where stream engines have gone wrong before; windows have tests of their own."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rekindle.common import Duration, Row, Time, Types, WatermarkStrategy
from rekindle.datastream import (
    AsyncDataStream,
    AsyncFunction,
    CoMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    SourceFunction,
)
from rekindle.datastream.state import MapStateDescriptor, ValueStateDescriptor
from rekindle.runtime.state import hashmap
from rekindle.testing import InProcessJob, ManualClock
from tests.environments import checkpointed

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
MAX_WATERMARK = 2**63 - 1


# -- timers -----------------------------------------------------------------------------------------------------------


class Twice(KeyedProcessFunction):
    """Sets the same timers with every early element, in both domains, and twice."""

    def process_element(self, value, ctx):
        for _ in range(2 if value[1] < 100 else 0):
            ctx.timer_service().register_event_time_timer(100)
            ctx.timer_service().register_processing_time_timer(5)

    def on_timer(self, timestamp, ctx):
        yield ctx.time_domain().name, ctx.get_current_key(), timestamp


def test_a_timer_that_is_registered_twice_fires_once_also_when_a_restore_lies_between():
    def program(parallelism):
        records = checkpointed(parallelism).from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 200)])
        return records.assign_timestamps_and_watermarks(BY_TIME).key_by(lambda record: record[0]).process(Twice())

    job = InProcessJob.of(program(1), max_records=2)
    checkpoint = job.checkpoint()
    job.kill()
    for parallelism in (1, 2):
        clock = ManualClock()
        restored = InProcessJob.of(program(parallelism), clock, max_records=2, restore=checkpoint)
        fired = restored.epoch()
        clock.advance(10)
        fired += restored.epoch() + restored.run()
        once = [(domain, key, time) for domain, time in (("EVENT_TIME", 100), ("PROCESSING_TIME", 5)) for key in "ab"]
        assert sorted(fired) == once


class AtTen(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        yield "timer", timestamp


class WithWatermark(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark()


class WithWatermarkKeyed(WithWatermark, KeyedProcessFunction):
    pass


@pytest.mark.parametrize("exchanged", [False, True])
def test_output_of_a_timer_comes_before_the_watermark_that_fired_it(exchanged):
    """Else everything that a timer emits would be late for the next operator."""
    records = checkpointed(2).from_collection([("a", 1), ("b", 50)]).assign_timestamps_and_watermarks(BY_TIME)
    fired = records.key_by(lambda record: record[0]).process(AtTen())
    seen = fired.key_by(lambda each: 0).process(WithWatermarkKeyed()) if exchanged else fired.process(WithWatermark())
    results = InProcessJob.of(seen).run()
    assert [(kind, timestamp) for kind, timestamp, _ in results] == [("timer", 10)] * 2
    assert max(watermark for _, _, watermark in results) < 10


# -- state ------------------------------------------------------------------------------------------------------------


class Own(KeyedProcessFunction):
    """Every key's state says whose it is: elements, timers and the broadcast side must find it so."""

    def open(self, runtime_context):
        self.owner = runtime_context.get_state(ValueStateDescriptor("owner", Types.PICKLED_BYTE_ARRAY()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def check(self, ctx):
        key, owner = ctx.get_current_key(), self.owner.value()
        assert owner is None or owner == key, f"key {key!r} found the state of {owner!r}"
        return key

    def process_element(self, value, ctx):
        key = self.check(ctx)
        self.owner.update(key)
        self.seen.put(value[1], value[1])
        ctx.timer_service().register_event_time_timer(value[1] + 1)
        if value[1] % 7 == 0:
            self.owner.clear()
            self.seen.clear()

    def on_timer(self, timestamp, ctx):
        yield self.check(ctx), sorted(self.seen.keys())


@pytest.mark.parametrize("cached_keys", [1, 3, 1000])
def test_a_keys_cached_state_never_reaches_another_key(monkeypatch, cached_keys):
    """Whatever the cache of rows has room for, and whatever becomes empty and comes again."""
    monkeypatch.setattr(hashmap, "_FRONT_ENTRIES", cached_keys)
    keys = [0, "0", ("0",), (0, None), (None, 0), 2, "two", b"two", (2, "two"), 2.5]

    def program():
        records = [(keys[n * 3 % len(keys)], n) for n in range(200)]
        stream = checkpointed().from_collection(records).assign_timestamps_and_watermarks(BY_TIME)
        return stream.key_by(lambda record: record[0]).process(Own())

    expected: dict[Any, list[int]] = {}
    for n in range(200):
        held = expected.setdefault(keys[n * 3 % len(keys)], [])
        held.append(n)
        if n % 7 == 0:
            held.clear()
    job = InProcessJob.of(program(), max_records=7)
    collected = job.checkpoint().results
    checkpoint = job.checkpoint()
    collected += checkpoint.results
    job.kill()
    collected += InProcessJob.of(program(), max_records=11, restore=checkpoint).run()
    last = {}
    for key, seen in collected:
        last[key] = seen
    assert last == expected


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class NoKeyThere(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()

    def process_broadcast_element(self, value, ctx):
        try:
            self.count.update(1000)
        except Exception as error:
            yield "refused", type(error).__name__


def test_the_broadcast_side_has_no_key_left_from_the_element_before():
    env = checkpointed()
    numbers = env.from_collection(["a", "b", "a"]).key_by(lambda value: value)
    stream = numbers.connect(env.from_collection([1, 2]).broadcast(RULES)).process(NoKeyThere())
    results = InProcessJob.of(stream, max_records=1).run()
    assert sorted(results) == [("a", 1), ("a", 2), ("b", 1), *[("refused", "StateAccessError")] * 2]


# -- None -------------------------------------------------------------------------------------------------------------


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
    """A state's None means that there is none; a reduce whose value is None has one all the same."""

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


# -- unions, idleness, the end ----------------------------------------------------------------------------------------


class GoesIdle(SourceFunction):
    """One element with an early timestamp, then nothing more."""

    def __init__(self) -> None:
        self.running = True

    def run(self, ctx):
        ctx.collect_with_timestamp(("idle", 1), 1)
        ctx.emit_watermark(1)
        ctx.mark_as_temporarily_idle()
        while self.running:
            time.sleep(0.001)

    def cancel(self):
        self.running = False


def test_a_union_does_not_wait_for_an_idle_input():
    env = checkpointed()
    busy = env.from_collection([("busy", n) for n in (5, 20, 30)]).assign_timestamps_and_watermarks(BY_TIME)
    both = env.add_source(GoesIdle()).union(busy)
    job = InProcessJob.of(both.key_by(lambda record: 0).process(AtTen()), max_records=1)
    fired: list[Any] = []
    for _ in range(2000):
        fired += job.epoch()
        if fired:
            break
    assert fired == [("timer", 10)]
    job.kill()


def test_a_union_with_an_input_that_goes_idle_by_its_strategy():
    clock = ManualClock()
    idle = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
    idle = idle.with_idleness(Duration.of_millis(100))
    env = checkpointed()
    silent = env.from_collection([("silent", 1)]).assign_timestamps_and_watermarks(idle)
    busy = env.from_collection([("busy", n) for n in range(2, 30)]).assign_timestamps_and_watermarks(BY_TIME)
    job = InProcessJob.of(silent.union(busy).key_by(lambda record: 0).process(AtTen()), clock, max_records=1)
    assert [job.epoch() for _ in range(1)] == [[]]
    clock.advance(1000)
    assert ("timer", 10) in job.run()


class Everything(KeyedProcessFunction):
    """A timer of each kind per key, and what the end of input must fire."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(MAX_WATERMARK)
        ctx.timer_service().register_event_time_timer(10_000 + value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp if timestamp < MAX_WATERMARK else "end", self.sum.value()


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("cut", range(1, 9))
def test_the_end_of_input_fires_everything_exactly_once_also_across_a_restore(parallelism, cut):
    """Also when the cut is the very epoch of the end, and when it lies behind it."""
    records = [(n % 3, n) for n in range(9)]

    def program(parallelism):
        stamped = checkpointed(parallelism).from_collection(records).assign_timestamps_and_watermarks(BY_TIME)
        return stamped.key_by(lambda record: record[0]).process(Everything())

    job = InProcessJob.of(program(2), max_records=2)
    collected = []
    for _ in range(cut):
        checkpoint = job.checkpoint()
        collected += checkpoint.results
    job.kill()
    collected += InProcessJob.of(program(parallelism), max_records=2, restore=checkpoint).run()
    sums = {key: sum(n for k, n in records if k == key) for key in range(3)}
    assert sorted(collected, key=repr) == sorted(
        [(key, 10_000 + n, sums[key]) for key, n in records] + [(key, "end", sums[key]) for key in range(3)], key=repr
    )
