"""`FlinkKafkaProducer`, the older spelling of the Kafka sink, for `add_sink`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from rekindle.common.serialization import SerializationSchema
from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.kafka.record_serializer import KafkaRecordSerializationSchema
from rekindle.datastream.connectors.kafka.sink import ExactlyOnceKafkaSink, KafkaSink
from rekindle.datastream.connectors.kafka.sink_settings import KafkaSinkSettings
from rekindle.datastream.functions import SinkFunction
from rekindle.errors import GraphError


class Semantic(Enum):
    """The promise of a `FlinkKafkaProducer` about records when the job fails.

    >>> Semantic.EXACTLY_ONCE.guarantee
    <DeliveryGuarantee.EXACTLY_ONCE: 0>
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2

    @property
    def guarantee(self) -> DeliveryGuarantee:
        """The same promise of a `KafkaSink`."""
        return DeliveryGuarantee[self.name]


class FlinkKafkaProducer(SinkFunction):
    """Writes records into one topic; `KafkaSink` is the newer spelling and does the same.

    With EXACTLY_ONCE the transactional ids begin with the job's name and the topic: a job that writes one topic from
    two such sinks calls `set_transactional_id_prefix` on them.

    >>> from rekindle.common.serialization import SimpleStringSchema
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> producer = FlinkKafkaProducer("words", SimpleStringSchema(), {"bootstrap.servers": "localhost:9092"})
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sink = env.from_collection(["a"]).add_sink(producer).name("words")
    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, Any],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        """Create a sink for a topic. `producer_config` needs bootstrap.servers."""
        if not isinstance(semantic, Semantic):
            raise GraphError(f"FlinkKafkaProducer takes a Semantic, such as Semantic.AT_LEAST_ONCE, not {semantic!r}.")
        schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
        self._schema = schema.set_value_serialization_schema(serialization_schema).build()
        builder = KafkaSink.builder().set_bootstrap_servers(producer_config.get("bootstrap.servers", ""))
        for name, value in producer_config.items():
            if name != "bootstrap.servers":
                builder.set_property(name, value)
        builder.set_producer_pool_size(kafka_producer_pool_size).set_record_serializer(self._schema)
        self._settings: KafkaSinkSettings = replace(builder.build()._settings, guarantee=semantic.guarantee)
        self._write_timestamps = False

    def __repr__(self) -> str:
        return f"FlinkKafkaProducer({self._settings!r})"

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> FlinkKafkaProducer:
        """Set the beginning of the transactional ids, as `KafkaSinkBuilder` does."""
        self._settings = replace(self._settings, prefix=transactional_id_prefix)
        return self

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducer:
        """Log failed deliveries instead of failing the job: records may be lost."""
        self._refuse_exactly_once("set_log_failures_only(True)", log_failures_only)
        self._settings = replace(self._settings, log_failures_only=log_failures_only)
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducer:
        """Set whether a checkpoint waits for the broker's confirmation; without it records may be lost."""
        self._refuse_exactly_once("set_flush_on_checkpoint(False)", not flush_on_checkpoint)
        if self._settings.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            guarantee = DeliveryGuarantee.AT_LEAST_ONCE if flush_on_checkpoint else DeliveryGuarantee.NONE
            self._settings = replace(self._settings, guarantee=guarantee)
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducer:
        """Set whether messages get the timestamps of their records; by default they get the time of their sending."""
        self._write_timestamps = write_timestamp_to_kafka
        return self

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """Accepted without effect: a transaction that timed out is sent again from its checkpoint."""
        return self

    def invoke(self, value: Any, context: Any) -> None:
        """Never called: `add_sink` runs `as_sink()`."""
        raise GraphError("A FlinkKafkaProducer belongs in add_sink().")

    def as_sink(self) -> KafkaSink:
        """Return the sink that `add_sink` runs."""
        schema = self._schema if self._write_timestamps else self._schema.without_timestamps()
        settings = replace(self._settings, serializer=schema)
        exactly_once = settings.guarantee is DeliveryGuarantee.EXACTLY_ONCE
        return ExactlyOnceKafkaSink(settings) if exactly_once else KafkaSink(settings)

    def _refuse_exactly_once(self, setting: str, asked: bool) -> None:
        if asked and self._settings.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise GraphError(f"{setting} loses records: with Semantic.EXACTLY_ONCE it is refused.")
