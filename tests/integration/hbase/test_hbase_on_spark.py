"""The HBase sink in jobs on Spark whose slots die: readers see what an undisturbed run writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from rekindle.crash_points import CRASH_AT, CRASH_ONCE
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.connectors.hbase import Delete, HBaseSink, Put
from rekindle.datastream.state import ValueStateDescriptor
from tools.servers.hbase_access import HBaseAccess

KEYS, NUMBERS = 50, 4_000
#: The fourth snapshot of a slot is that of a later checkpoint; a record is in HBase before its checkpoint counts.
CRASHES = ["after-snapshot:4@slot1", "before-acknowledgement:3@slot0"]


class Count(KeyedProcessFunction):
    """Counts per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % KEYS, count


def as_mutations(counted: tuple[int, int]) -> Any:
    """Some rows are deleted and come back; each count has a column of its own beside the last one."""
    key, count = counted
    row = b"%03d" % key
    if count % 25 == key % 25:
        return Delete(row)
    return Put(row, {b"f:count": b"%d" % count, b"f:%d" % (count % 10): b"%d" % count})


def run(hbase: HBaseAccess, table: str, directory: Path, rate: RateLimiterStrategy) -> None:
    settings = {"rekindle.progress": "off", "execution.checkpointing.dir": str(directory)}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2).enable_checkpointing(200)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 20))
    sink = (
        HBaseSink.builder()
        .set_thrift_servers(hbase.address)
        .set_table(table)
        .set_converter(as_mutations)
        .set_buffer_flush_max_mutations(100)
        .build()
    )
    generator = DataGeneratorSource(lambda number: number, NUMBERS, rate)
    numbers = env.from_source(generator, WatermarkStrategy.no_watermarks(), "numbers", int)
    counts = numbers.key_by(lambda number: number % KEYS, Types.LONG()).process(
        Count(), Types.TUPLE([Types.LONG(), Types.LONG()])
    )
    counts.key_by(lambda counted: counted[0], Types.LONG()).sink_to(sink).name("hbase")
    env.execute("counts into hbase")


@pytest.mark.long
def test_a_slot_that_dies_leaves_what_an_undisturbed_run_leaves(
    spark: Any, hbase: HBaseAccess, table: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = table("f")
    run(hbase, undisturbed, tmp_path / "undisturbed", RateLimiterStrategy.no_op())
    assert len(hbase.rows(undisturbed)) > KEYS // 2
    for crash in CRASHES:
        died = tmp_path / f"{crash}.died"
        with monkeypatch.context() as patch:
            patch.setitem(spark.sparkContext.environment, CRASH_AT, crash)
            patch.setitem(spark.sparkContext.environment, CRASH_ONCE, str(died))
            disturbed = table("f")
            run(hbase, disturbed, tmp_path / crash, RateLimiterStrategy.per_second(2_500))
        assert died.exists(), "no slot died"
        assert hbase.rows(disturbed) == hbase.rows(undisturbed)
