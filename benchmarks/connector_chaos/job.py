"""The job that is killed: counts and sums per key what it reads from Kafka, and writes each step.

    python -m benchmarks.connector_chaos.job BOOTSTRAP INPUT NAME OUTPUTS DIRECTORY PARALLELISM [bounded]

`OUTPUTS` is JSON: the arguments of each `Output`.

All records of a key are in one partition, so that what is written for a key does not depend on how partitions
interleave.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator

import msgspec

from benchmarks.connector_chaos.sinks import add_sink
from rekindle.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from rekindle.datastream import (
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from rekindle.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from rekindle.datastream.state import ValueStateDescriptor

CHECKPOINT_INTERVAL_MS = 1000
RESTARTS, RESTART_DELAY_MS = 1000, 200
PARTITIONS = 4
RECORD = Types.TUPLE([Types.LONG(), Types.LONG()])
STEP = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


def partition_of(key: int) -> int:
    """The partition of all records of a key."""
    return key % PARTITIONS


class Sums(KeyedProcessFunction):
    """Yields (key, how many records of the key, their sum) for each record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Register the state."""
        self._sums = runtime_context.get_state(ValueStateDescriptor("sums", Types.TUPLE([Types.LONG(), Types.LONG()])))

    def process_element(
        self, value: tuple[int, int], ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[int, int, int]]:
        """Add a record."""
        count, total = self._sums.value() or (0, 0)
        count, total = count + 1, total + value[1]
        self._sums.update((count, total))
        yield value[0], count, total


def decode(message: bytes) -> tuple[int, int]:
    """The record of an input message: (key, amount)."""
    return msgspec.json.decode(message, type=tuple[int, int])


def environment(directory: str, parallelism: int) -> StreamExecutionEnvironment:
    """Checkpoints every second, kept; restarts without end; a new driver goes on from the latest checkpoint."""
    configuration = Configuration.from_dict(
        {
            "rekindle.progress": "off",
            "rekindle.master": f"local[{max(2, parallelism)}]",
            "execution.checkpointing.dir": directory,
            "execution.state-recovery.path": "latest",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    env.enable_checkpointing(CHECKPOINT_INTERVAL_MS)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(RESTARTS, RESTART_DELAY_MS))
    return env


def main(
    bootstrap: str, source_topic: str, name: str, outputs: str, directory: str, parallelism: str, end: str = ""
) -> None:
    """Run the job: for ever, or to the present end of its input if it is `bounded`."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(bootstrap)
        .set_topics(source_topic)
        .set_group_id(f"chaos-{name}")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(decode)
    )
    if end == "bounded":
        source.set_bounded(KafkaOffsetsInitializer.latest())
    env = environment(directory, int(parallelism))
    stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "numbers", RECORD).uid("numbers")
    steps = stream.key_by(lambda record: record[0], Types.LONG()).process(Sums(), STEP).uid("sums")
    for arguments in json.loads(outputs):
        add_sink(steps, arguments, name)
    env.execute(f"chaos {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
