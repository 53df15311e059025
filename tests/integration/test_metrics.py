"""Metrics of user functions reach the program that started the job: while it runs, and at its end."""

from __future__ import annotations

from rekindle.common import WatermarkStrategy
from rekindle.datastream import MapFunction
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from tests.support.environments import environment
from tests.support.waiting import wait_until

DEADLINE_S = 60
RECORDS, PER_SECOND = 8000, 2000


class Measured(MapFunction):
    def open(self, runtime_context):
        metrics = runtime_context.get_metrics_group()
        self.seen = metrics.counter("seen")
        self.rate = metrics.meter("rate")
        self.sizes = metrics.add_group("sizes").distribution("numbers")
        self.last = None
        metrics.gauge("last", lambda: self.last)

    def map(self, value):
        self.seen.inc()
        self.rate.mark_event()
        self.sizes.update(value)
        self.last = value
        return value

    def close(self):
        self.last = -1


def test_they_are_seen_while_the_job_runs_and_complete_at_its_end(spark):
    env = environment(2)
    source = DataGeneratorSource(lambda number: number, RECORDS, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
    numbers.map(Measured(), int).name("measured").add_sink(lambda value: None)
    client = env.execute_async("measured")

    def measured():
        return {(each.subtask, each.name): each for each in client.get_metrics() if each.operator == "measured"}

    early = wait_until(measured, "the first metrics come", DEADLINE_S)
    assert not client.get_job_execution_result().done(), "it was told at the end only"
    client.get_job_execution_result().result()
    late = measured()
    assert early.keys() <= late.keys()
    assert {name for _, name in late} == {"seen", "rate", "last", "sizes.numbers"}
    assert sum(late[subtask, "seen"].value for subtask in (0, 1)) == RECORDS
    assert early[0, "seen"].value < late[0, "seen"].value
    assert late[0, "rate"].value["count"] == late[0, "sizes.numbers"].value["count"] == late[0, "seen"].value
    assert [late[subtask, "last"].value for subtask in (0, 1)] == [-1, -1], "what close() did is in it"
    assert max(late[subtask, "sizes.numbers"].value["max"] for subtask in (0, 1)) == RECORDS - 1
