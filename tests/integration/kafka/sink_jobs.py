"""Jobs with a Kafka sink that run in the test process, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors import DeliveryGuarantee
from rekindle.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSinkBuilder
from rekindle.graph.build import build_plan
from rekindle.testing.in_process import InProcessJob

EXACTLY_ONCE, AT_LEAST_ONCE, NONE = (
    DeliveryGuarantee.EXACTLY_ONCE,
    DeliveryGuarantee.AT_LEAST_ONCE,
    DeliveryGuarantee.NONE,
)
NUMBERS = list(range(24))


def as_text(value: Any) -> bytes:
    return str(value).encode()


def builder(
    servers: str, topic: str, guarantee: DeliveryGuarantee = EXACTLY_ONCE, serialize: Any = as_text, **properties: Any
) -> KafkaSinkBuilder:
    """A builder of a sink that writes numbers as text; an underscore in a property's name stands for a dot."""
    serializer = (
        KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(serialize).build()
    )
    made = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(serializer)
    made.set_delivery_guarantee(guarantee).set_transactional_id_prefix(topic).set_producer_pool_size(3)
    for name, value in properties.items():
        made.set_property(name.replace("_", "."), value)
    return made


def job_of(
    sink: Any,
    parallelism: int = 2,
    restore: Any = None,
    *,
    numbers: Sequence[Any] = NUMBERS,
    interval_ms: int | None = 1000,
    max_records: int = 3,
    spread: bool = False,
    tolerable: int = 0,
) -> InProcessJob:
    """The job numbers -> sink; with parallelism 2 an epoch writes three numbers from each subtask of the source.

    With `spread` each subtask of the sink gets some of them, whichever subtasks the source reads with.
    """
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    if interval_ms is not None:
        env.enable_checkpointing(interval_ms)
        env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(tolerable)
    stream = env.from_collection(list(numbers))
    stream = stream.rebalance() if spread else stream
    (stream.sink_to(sink) if hasattr(sink, "create_writer") else stream.add_sink(sink)).uid("sink")
    plan = build_plan(env._program("kafka sink"))
    env.close()
    return InProcessJob(plan, max_records=max_records, restore=restore)
