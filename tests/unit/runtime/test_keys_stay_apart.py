"""Keyed state in whole jobs: each key finds its own state, and the broadcast side finds none."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import KeyedBroadcastProcessFunction, KeyedProcessFunction
from rekindle.datastream.state import MapStateDescriptor, ValueStateDescriptor
from rekindle.runtime.state import hashmap
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])


class Own(KeyedProcessFunction):
    """Stores its key in its state: elements and timers must find the key that they belong to."""

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
    """For every size of the row cache, and for keys whose state is cleared and comes again."""
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
