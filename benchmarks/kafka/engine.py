"""Rekindle's side: Kafka, decoder, `key_by`, a count in keyed state; then a counting sink, or Kafka again.

Every record passes through Spark's shuffle. Checkpoints go to a folder on disk, and epochs are long: both are settings
for throughput. Progress is recorded at the end of every epoch, by the job master's observer.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from benchmarks.kafka.peers.arguments import parser
from benchmarks.kafka.workload import pairs_decoder, report
from benchmarks.keyed_count.engine import END_OF_TIME
from benchmarks.keyed_count.workload import Mark
from rekindle.common import Configuration, DeserializationSchema, TypeInformation, Types, WatermarkStrategy
from rekindle.coordinator.job_events import EpochCounted, FunctionsOpened, JobEnded, JobEvent
from rekindle.coordinator.observer import JobObserver
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.spark import launcher

PARALLELISM = 2
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
GUARANTEES = {"at-least-once": DeliveryGuarantee.AT_LEAST_ONCE, "exactly-once": DeliveryGuarantee.EXACTLY_ONCE}


class Count(KeyedProcessFunction):
    """Counts a key's records, and emits the count at the end of event time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> None:
        count = self._count.value()
        if count is None:
            count = 0
            ctx.timer_service().register_event_time_timer(END_OF_TIME)
        self._count.update(count + value[1])

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[str, int]]:
        yield ctx.get_current_key(), self._count.value()


class EachCount(KeyedProcessFunction):
    """Counts a key's records, and emits each new count."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
        count = (self._count.value() or 0) + value[1]
        self._count.update(count)
        yield value[0], count


class Output(msgspec.Struct):
    """A message that the sink writes: some 60 bytes of JSON."""

    key: str
    amount: int
    text: str = "the number of records of this key"


def encode(pair: tuple[str, int]) -> bytes:
    """The value of an output message."""
    return msgspec.json.encode(Output(*pair))


class EpochMarks(JobObserver):
    """Records the time and the number of processed records at the end of each epoch, and the end of the job."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []

    def on_event(self, event: JobEvent) -> None:
        match event:
            case FunctionsOpened():
                self.marks.append(Mark(time.time(), 0))
            case EpochCounted(summary):
                self.marks.append(Mark(time.time(), self.marks[-1].records + summary.records_in))
            case JobEnded():  # the sink has committed everything
                self.marks.append(Mark(time.time(), self.marks[-1].records))


class Decode(DeserializationSchema):
    """Turns messages into pairs (key, amount), many at a time."""

    def __init__(self, decoder: str) -> None:
        self._decoder = decoder

    def open(self, context: Any) -> None:
        self.deserialize_all = pairs_decoder(self._decoder)  # type: ignore[method-assign]

    def deserialize(self, message: bytes) -> tuple[str, int]:
        return self.deserialize_all([message])[0]  # type: ignore[no-any-return]

    def get_produced_type(self) -> TypeInformation:
        return PAIR


def source(options: Any) -> KafkaSource[tuple[str, int]]:
    """The topic from its beginning to its present end."""
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(options.bootstrap)
        .set_topics(options.topic)
        .set_group_id("benchmark")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(Decode(options.decoder))
        .build()
    )


def sink(options: Any) -> KafkaSink[tuple[str, int]]:
    """The output topic."""
    serializer = KafkaRecordSerializationSchema.builder().set_topic(options.output)
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(options.bootstrap)
        .set_record_serializer(serializer.set_value_serialization_schema(encode).build())
        .set_delivery_guarantee(GUARANTEES[options.guarantee])
        .set_transactional_id_prefix(options.output)
        .build()
    )


def main() -> None:
    """Do one run and print one JSON line."""
    arguments = parser(__doc__)
    arguments.add_argument("--output", help="the topic of the counts; without it they are added up at the end")
    arguments.add_argument("--guarantee", choices=list(GUARANTEES), default="at-least-once")
    arguments.add_argument("--checkpoint-ms", type=int, default=10_000)
    arguments.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a configuration key")
    options = arguments.parse_args()
    settings: dict[str, Any] = {"master": f"local[{PARALLELISM}]", "rekindle.progress": "off"}
    settings |= {"rekindle.epoch.target-duration": "2 s"}
    settings |= dict(pair.split("=", 1) for pair in options.set)
    with tempfile.TemporaryDirectory(prefix="rekindle-kafka-benchmark-") as folder:
        run(options, settings, folder)


def run(options: Any, settings: dict[str, Any], folder: str) -> None:
    """Run the job with checkpoints in a folder, and print its JSON line."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(PARALLELISM)
    if options.checkpoint_ms:
        env.enable_checkpointing(options.checkpoint_ms)
        env.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{folder}")
    records = env.from_source(source(options), WatermarkStrategy.no_watermarks(), "records", PAIR)
    keyed = records.key_by(lambda pair: pair[0], Types.STRING())
    marks = EpochMarks()
    if options.output:
        keyed.process(EachCount(), PAIR).sink_to(sink(options))
        job = launcher.launch(env._program("kafka"), observer=marks)
        job.result().result()
        counted = marks.marks[-1].records
    else:
        job = launcher.launch(env._program("kafka", keyed.process(Count(), PAIR)._collect()), observer=marks)
        counted = sum(pair[1] for batch in job.results() for pair in batch)
    said = {"decoder": options.decoder, "parallelism": PARALLELISM, "epochs": len(marks.marks) - 2}
    said |= {"checkpoints every": f"{options.checkpoint_ms} ms" if options.checkpoint_ms else "off"}
    report("rekindle", [marks.marks], counted, options.records, {**said, **settings})


if __name__ == "__main__":
    main()
