"""The Kafka sink and its builder, under PyFlink's names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.kafka.client_properties import (
    chosen_brokers,
    confluent_kafka,
    producer_properties,
    warn_of_unknown_names,
)
from rekindle.datastream.connectors.kafka.producer_client import ProducerClient
from rekindle.datastream.connectors.kafka.record_serializer import KafkaRecordSerializationSchema
from rekindle.datastream.connectors.kafka.sink_settings import KafkaSinkSettings
from rekindle.datastream.connectors.kafka.start_checks import check_times, check_topic, enough_producers
from rekindle.datastream.connectors.kafka.transaction_committer import TransactionCommitter
from rekindle.datastream.connectors.kafka.transaction_pool import TransactionPool
from rekindle.datastream.connectors.kafka.writers import ProducerWriter, TransactionWriter
from rekindle.datastream.connectors.sink_api import (
    Committer,
    CommitterInitContext,
    InitContext,
    Sink,
    SinkWriter,
    SupportsCommitter,
    WriterInitContext,
)
from rekindle.errors import GraphError

#: Kafka's limit for a transactional id's prefix in Flink.
_LONGEST_PREFIX_BYTES = 6400
#: Properties that the builder sets by itself.
_OWN_PROPERTIES = {
    "bootstrap.servers": "set_bootstrap_servers()",
    "metadata.broker.list": "set_bootstrap_servers()",
    "transactional.id": "set_transactional_id_prefix()",
    "delivery.report.only.error": "nothing: the sink needs it",
}


class KafkaSink(Sink[Any]):
    """Writes records into Kafka's topics. Make one with `KafkaSink.builder()`.

    >>> from rekindle.common.serialization import SimpleStringSchema
    >>> serializer = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic("words")
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> sink = (
    ...     KafkaSink.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_record_serializer(serializer)
    ...     .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    ...     .set_transactional_id_prefix("word-count")
    ...     .build()
    ... )
    """

    def __init__(self, settings: KafkaSinkSettings) -> None:
        """Do not call directly: use `KafkaSink.builder()`."""
        self._settings = settings

    def __repr__(self) -> str:
        return f"KafkaSink({self._settings!r})"

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Return a builder without settings."""
        return KafkaSinkBuilder()

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """Return a writer with a producer of its own, after the topic was found."""
        settings = self._settings
        client = ProducerClient(settings.producer(), settings.limit_s)
        check_topic(settings, client)
        settings.serializer.open()
        return ProducerWriter(settings, client)


class ExactlyOnceKafkaSink(KafkaSink, SupportsCommitter[Any]):
    """The sink with transactions: the builder makes it for EXACTLY_ONCE.

    Writer and committer of a subtask share the producers.
    """

    def __init__(self, settings: KafkaSinkSettings) -> None:
        """Do not call directly: use `KafkaSink.builder()`."""
        super().__init__(settings)
        self._pools: dict[int, TransactionPool] = {}

    def exclusive_name(self, job_name: str) -> str | None:
        """Return the prefix: the producers of two sinks with one prefix would fence each other."""
        return (
            f"one transactional id prefix, '{self._settings.prefix_in(job_name)}', at Kafka "
            f"{self._settings.bootstrap_servers}: give each its own with set_transactional_id_prefix()"
        )

    def create_committer(self, context: CommitterInitContext) -> Committer[Any]:
        """Return a committer."""
        self._pools[context.subtask] = pool = self._new_pool(context)
        return TransactionCommitter(pool)

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """Return a writer, after earlier attempts were fenced and the topic was found."""
        pool = self._pools.get(context.subtask)
        if pool is None:
            self._pools[context.subtask] = pool = self._new_pool(context)
        settings = pool.settings
        check_times(settings, context)
        check_topic(settings, pool.fence_own())
        settings.serializer.open()
        return TransactionWriter(settings, pool, context)

    def _new_pool(self, context: InitContext) -> TransactionPool:
        settings = self._settings
        size = enough_producers(settings.pool_size, context)
        settings = replace(settings, prefix=settings.prefix_in(context.job_name), pool_size=size)
        return TransactionPool(settings, context.subtask, context.parallelism)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pools": {}}


class KafkaSinkBuilder:
    """Builds a `KafkaSink`: servers and a record serializer are required.

    >>> KafkaSink.builder().set_bootstrap_servers("localhost:9092").build()
    Traceback (most recent call last):
        ...
    rekindle.errors.GraphError: A Kafka sink needs a record serializer: call set_record_serializer().
    """

    def __init__(self) -> None:
        """Begin without settings."""
        self._servers = ""
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix = ""
        self._pool_size = KafkaSinkSettings.pool_size
        self._properties: dict[str, Any] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Set the addresses of brokers, separated by commas."""
        if not isinstance(bootstrap_servers, str) or not bootstrap_servers.strip():
            raise GraphError(f"set_bootstrap_servers() takes addresses such as 'host:9092', not {bootstrap_servers!r}.")
        self._servers = bootstrap_servers
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Set what the sink promises; the default is NONE. EXACTLY_ONCE needs `set_transactional_id_prefix` too."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise GraphError(f"set_delivery_guarantee() takes a DeliveryGuarantee, not {delivery_guarantee!r}.")
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set the beginning of the transactional ids. Each sink of each running job needs its own, always the same."""
        size = len(transactional_id_prefix.encode()) if isinstance(transactional_id_prefix, str) else 0
        if not 0 < size <= _LONGEST_PREFIX_BYTES:
            raise GraphError(
                f"set_transactional_id_prefix() takes a text of 1 to {_LONGEST_PREFIX_BYTES} bytes, not "
                f"{str(transactional_id_prefix)[:80]!r}."
            )
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Set what turns records into messages."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise GraphError(
                f"set_record_serializer() takes a KafkaRecordSerializationSchema, not {record_serializer!r}: make one "
                "with KafkaRecordSerializationSchema.builder()."
            )
        self._serializer = record_serializer
        return self

    def set_producer_pool_size(self, producer_pool_size: int) -> KafkaSinkBuilder:
        """Set how many transactions of a subtask may wait for their checkpoints, the written one included (5).

        There are more if the job tolerates that many failed checkpoints.
        """
        if not isinstance(producer_pool_size, int) or producer_pool_size < 2:
            raise GraphError(f"set_producer_pool_size() takes 2 or more, not {producer_pool_size!r}.")
        self._pool_size = producer_pool_size
        return self

    def set_property(self, key: str, value: Any) -> KafkaSinkBuilder:
        """Set a property of the producer, by its name in Java or in librdkafka."""
        if key in _OWN_PROPERTIES:
            raise GraphError(f"The Kafka property '{key}' belongs to the sink: use {_OWN_PROPERTIES[key]}.")
        producer_properties({**self._properties, key: value})  # refuses what Python cannot do
        warn_of_unknown_names({key: value})
        self._properties[key] = value
        return self

    def build(self) -> KafkaSink:
        """Return the sink."""
        if not self._servers:
            raise GraphError("A Kafka sink needs brokers: call set_bootstrap_servers().")
        if self._serializer is None:
            raise GraphError("A Kafka sink needs a record serializer: call set_record_serializer().")
        confluent_kafka()
        exactly_once = self._guarantee is DeliveryGuarantee.EXACTLY_ONCE
        if exactly_once and not self._prefix:
            raise GraphError(
                "A Kafka sink with EXACTLY_ONCE needs set_transactional_id_prefix(): a name that no other sink on the "
                "same brokers has, and that stays the same when the job is started again."
            )
        servers = chosen_brokers({"bootstrap.servers": self._servers})["bootstrap.servers"]
        settings = KafkaSinkSettings(
            servers, self._serializer, self._guarantee, self._prefix, dict(self._properties), self._pool_size
        )
        return ExactlyOnceKafkaSink(settings) if exactly_once else KafkaSink(settings)
