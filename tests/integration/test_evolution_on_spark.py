"""A job on Spark whose state changes its class twice, by a savepoint and by `latest`: nothing is lost or doubled."""

from __future__ import annotations

import msgspec

from rekindle.common import WatermarkStrategy, aliases
from rekindle.datastream import KeyedProcessFunction
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ValueStateDescriptor
from tests.integration.savepoint_jobs import (
    DEADLINE_S,
    EXPECTED,
    KEYS,
    PAIR,
    PER_SECOND,
    RECORDS,
    Running,
    with_savepoints,
)


class Total(msgspec.Struct, array_like=True):
    """By position: read as another version of the class, a value would have its fields at wrong places."""

    count: int = 0
    sum: int = 0


class WithNote(msgspec.Struct, array_like=True):
    note: str = "new"
    sum: float = 0.0
    count: int = 0


@aliases("Total", counted="count")
class Counted(msgspec.Struct, array_like=True):
    counted: int = 0
    sum: float = 0.0


WithNote.__qualname__ = "Total"


class Count(KeyedProcessFunction):
    """Counts in a field of its class; the sum must be that of all numbers of the key so far."""

    def __init__(self, cls: type, field: str = "count") -> None:
        self.cls, self.field = cls, field

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", self.cls))

    def process_element(self, value, ctx):
        total = self.total.value() or self.cls()
        count = getattr(total, self.field) + 1
        setattr(total, self.field, count)
        total.sum += value
        self.total.update(total)
        key = ctx.get_current_key()
        assert total.sum == sum(range(key, value + 1, KEYS)), total
        yield key, count


def counts(env, function):
    source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")
    return numbers.key_by(lambda n: n % KEYS, int).process(function, PAIR).uid("count")


def stopped(stream):
    """The results of a job that is stopped on its way, and the path of its savepoint."""
    running = Running(stream, "evolves")
    running.read(1000)
    path = running.client.stop_with_savepoint(False).result(DEADLINE_S)
    return running.rest(), path


def test_state_evolves_twice(spark, tmp_path):
    first, path = stopped(counts(with_savepoints(tmp_path, 1), Count(Total)))
    env = with_savepoints(tmp_path, 1, **{"execution.state-recovery.path": path})
    second, _ = stopped(counts(env, Count(WithNote)))
    env = with_savepoints(tmp_path, 2, **{"execution.state-recovery.path": "latest"})
    third = Running(counts(env, Count(Counted, "counted")), "evolves").rest()
    assert sorted(first + second + third) == EXPECTED
    assert first
    assert second
    assert third
