"""Jobs with an HBase sink that run in the test process, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.common import WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.hbase import Delete, HBaseSink, HBaseSinkBuilder, Mutation, Put
from rekindle.graph.build import build_plan
from rekindle.testing.in_process import InProcessJob
from tools.servers.hbase_access import HBaseAccess

#: An operation on a row: its number, what is done, and a value.
Operation = tuple[int, str, int]
OPERATIONS: list[Operation] = [
    (number % 7, "delete" if number % 5 == 4 else "column" if number % 11 == 10 else "put", number)
    for number in range(60)
]


def as_mutation(operation: Operation) -> Mutation:
    row, kind, value = operation
    key = b"row-%d" % row
    if kind == "delete":
        return Delete(key)
    if kind == "column":
        return Delete(key, [b"f:last"])
    return Put(key, {b"f:last": b"%d" % value, b"g:%d" % (value % 3): b"%d" % value})


def builder(hbase: HBaseAccess, table: str, converter: Any = as_mutation) -> HBaseSinkBuilder:
    """A builder whose flushes are small, and begin at their number or at barriers only."""
    made = HBaseSink.builder().set_thrift_servers(hbase.address).set_table(table).set_converter(converter)
    return made.set_buffer_flush_max_mutations(4).set_buffer_flush_interval(0)


def job_of(
    sink: Any,
    parallelism: int = 1,
    restore: Any = None,
    *,
    operations: Sequence[Any] = OPERATIONS,
    timestamps: Any = None,
    max_records: int = 10,
) -> InProcessJob:
    """The job operations -> key by row -> sink."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism).enable_checkpointing(1000)
    stream = env.from_collection(list(operations)).set_parallelism(1)
    if timestamps is not None:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(timestamps)
        stream = stream.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    stream.key_by(lambda operation: operation[0]).sink_to(sink).uid("sink")
    plan = build_plan(env._program("hbase sink"))
    env.close()
    return InProcessJob(plan, max_records=max_records, restore=restore)
