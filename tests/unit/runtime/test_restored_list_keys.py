"""Keys with lists inside, of a declared type: state, timers and windows come back under them, on both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common import Configuration, Row, Time, Types, WatermarkStrategy
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from rekindle.testing import InProcessJob

Selector = Callable[[Any], Any]

KEYS: list[tuple[str, TypeInformation, Selector]] = [
    ("list", Types.LIST(Types.INT()), lambda record: record[0]),
    ("array", Types.PRIMITIVE_ARRAY(Types.INT()), lambda record: record[0]),
    ("list in a tuple", Types.TUPLE([Types.STRING(), Types.LIST(Types.INT())]), lambda record: ("a", record[0])),
    (
        "list of rows",
        Types.LIST(Types.ROW_NAMED(["n"], [Types.INT()])),
        lambda record: [Row(n=number) for number in record[0]],
    ),
    ("tuple", Types.TUPLE([Types.INT(), Types.INT()]), lambda record: (record[0][0], 7)),
]
#: Key, number, event time. Each key has records before the checkpoint and after it.
RECORDS = [([1 + place % 3, 5], place, place) for place in range(12)]


class SumAndTimer(KeyedProcessFunction):
    """Emits the sum so far of each record's key, and the last sum at the end of time."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        if self.sum.value() is None:
            ctx.timer_service().register_event_time_timer(1000)
        self.sum.update((self.sum.value() or 0) + value[1])
        yield "sum", str(ctx.get_current_key()), self.sum.value()

    def on_timer(self, timestamp, ctx):
        yield "last", str(ctx.get_current_key()), self.sum.value()


def with_state_and_timers(keyed: Any) -> DataStream:
    return keyed.process(SumAndTimer())


def add(x: Any, y: Any) -> Any:
    return x[0], x[1] + y[1], y[2]


def in_tumbling_windows(keyed: Any) -> DataStream:
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).reduce(add)


def in_sessions(keyed: Any) -> DataStream:
    return keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(100))).reduce(add)


def keyed_job(
    operator: Callable[[Any], DataStream],
    key_type: TypeInformation | None,
    selector: Selector,
    backend: str,
    parallelism: int = 2,
    restore: Any = None,
) -> InProcessJob:
    configuration = Configuration.from_dict({"state.backend.type": backend})
    environment = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    environment.enable_checkpointing(60_000)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[2])
    records = environment.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy)
    return InProcessJob.of(operator(records.key_by(selector, key_type)), max_records=2, restore=restore)


def stopped(job: InProcessJob) -> tuple[list[Any], Any]:
    """The results until a checkpoint, and the checkpoint."""
    before = job.epoch() + job.epoch()
    checkpoint = job.checkpoint()
    job.kill()
    return before + checkpoint.results, checkpoint


@pytest.mark.parametrize("operator", [with_state_and_timers, in_tumbling_windows, in_sessions])
@pytest.mark.parametrize(("key_type", "selector"), [pair[1:] for pair in KEYS], ids=[pair[0] for pair in KEYS])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_timers_and_windows_of_list_keys_are_restored(
    backend: str, key_type: TypeInformation, selector: Selector, operator: Callable[[Any], DataStream]
) -> None:
    expected = keyed_job(operator, key_type, selector, backend).run()
    found, checkpoint = stopped(keyed_job(operator, key_type, selector, backend))
    found += keyed_job(operator, key_type, selector, backend, restore=checkpoint).run()
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize("declared_before", [True, False])
@pytest.mark.parametrize(("before", "after"), [("hashmap", "rocksdb"), ("rocksdb", "hashmap")])
def test_list_keys_move_to_another_backend_and_another_parallelism(
    before: str, after: str, declared_before: bool
) -> None:
    _, key_type, selector = KEYS[0]
    expected = keyed_job(with_state_and_timers, key_type, selector, before).run()
    first = keyed_job(with_state_and_timers, key_type if declared_before else None, selector, before)
    found, checkpoint = stopped(first)
    found += keyed_job(with_state_and_timers, key_type, selector, after, parallelism=3, restore=checkpoint).run()
    assert sorted(map(str, found)) == sorted(map(str, expected))
