"""The builder of a Kafka source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rekindle.common.serialization import DeserializationSchema
from rekindle.datastream.connectors.base import Boundedness
from rekindle.datastream.connectors.kafka.client_properties import (
    admin_properties,
    chosen_brokers,
    consumer_properties,
    warn_of_unknown_names,
)
from rekindle.datastream.connectors.kafka.kafka_record import KafkaRecordDeserializationSchema
from rekindle.datastream.connectors.kafka.offsets_initializers import KafkaOffsetsInitializer, OffsetsKind
from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition
from rekindle.datastream.connectors.kafka.poison_records import PoisonRecordHandling
from rekindle.datastream.connectors.kafka.record_decoding import RecordDecoding
from rekindle.datastream.connectors.kafka.source import KafkaSource
from rekindle.datastream.connectors.kafka.source_settings import (
    SourceSettings,
    flag_of,
    number_of,
    reset_of,
    timeout_s,
)
from rekindle.datastream.connectors.kafka.topic_subscription import (
    PartitionSet,
    TopicList,
    TopicPattern,
    TopicSubscription,
)
from rekindle.errors import GraphError

DISCOVERY_INTERVAL = "partition.discovery.interval.ms"
#: Flink 2's default: 5 minutes.
DEFAULT_DISCOVERY_INTERVAL_MS = 300_000


class KafkaSourceBuilder:
    """Builds a `KafkaSource`. Bootstrap servers, topics (or partitions) and a deserializer must be set.

    >>> builder = KafkaSourceBuilder().set_bootstrap_servers("localhost:9092").set_topics("orders")
    >>> builder.set_value_only_deserializer(bytes.decode).set_bounded(KafkaOffsetsInitializer.latest()).build()
    <KafkaSource of orders>
    """

    def __init__(self) -> None:
        self._properties: dict[str, Any] = {}
        self._subscription: TopicSubscription | None = None
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._deserializer: Any = None
        self._whole_record = False
        self._poison = PoisonRecordHandling.fail()

    # -- what to read -------------------------------------------------------------------------------------------------

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Set the addresses of some of the cluster's brokers: `host:port`, separated by commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Set the consumer group to which offsets are committed. The source does not join it."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read these topics, which must exist."""
        if not topics or not all(isinstance(topic, str) and topic for topic in topics):
            raise GraphError(f"set_topics() takes names of topics, not {topics!r}.")
        return self._subscribe(TopicList(tuple(dict.fromkeys(topics))))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read the topics whose whole names match a regular expression (Python's), also those created later."""
        try:
            re.compile(topic_pattern)
        except (re.error, TypeError) as error:
            raise GraphError(
                f"set_topic_pattern() takes a regular expression, not {topic_pattern!r}: {error}."
            ) from None
        return self._subscribe(TopicPattern(topic_pattern))

    def set_partitions(self, partitions: set[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read these partitions only, which must exist."""
        if not partitions or not all(isinstance(each, KafkaTopicPartition) for each in partitions):
            raise GraphError(f"set_partitions() takes a set of KafkaTopicPartition, not {partitions!r}.")
        return self._subscribe(PartitionSet(frozenset(partitions)))

    def _subscribe(self, subscription: TopicSubscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise GraphError("A KafkaSource takes one of set_topics(), set_topic_pattern() and set_partitions(), once.")
        self._subscription = subscription
        return self

    # -- from where to where ------------------------------------------------------------------------------------------

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set where a job without state begins; earliest unless set. A restored job goes on from its checkpoint."""
        self._starting = _initializer("set_starting_offsets", starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stop at these offsets, but run as a stream that has no end."""
        self._stopping = _initializer("set_unbounded", stopping_offsets_initializer)
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stop at these offsets: the source is bounded."""
        self._stopping = _initializer("set_bounded", stopping_offsets_initializer)
        self._boundedness = Boundedness.BOUNDED
        return self

    # -- records ------------------------------------------------------------------------------------------------------

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema | Callable[[bytes], Any]
    ) -> KafkaSourceBuilder:
        """Decode values with a schema, or with a function of bytes; records without a value are left out."""
        if not isinstance(deserialization_schema, DeserializationSchema) and not callable(deserialization_schema):
            raise GraphError(
                "set_value_only_deserializer() takes a DeserializationSchema or a function of bytes, "
                f"not {deserialization_schema!r}."
            )
        self._deserializer, self._whole_record = deserialization_schema, False
        return self

    def set_deserializer(
        self, record_deserializer: KafkaRecordDeserializationSchema | Callable[[Any], Any]
    ) -> KafkaSourceBuilder:
        """Decode whole records with a schema, or with a function of a `KafkaRecord`."""
        if not isinstance(record_deserializer, KafkaRecordDeserializationSchema) and not callable(record_deserializer):
            raise GraphError(
                "set_deserializer() takes a KafkaRecordDeserializationSchema or a function of a KafkaRecord, "
                f"not {record_deserializer!r}."
            )
        self._deserializer, self._whole_record = record_deserializer, True
        return self

    def set_poison_record_handling(self, handling: PoisonRecordHandling) -> KafkaSourceBuilder:
        """Set what happens to a record that cannot be decoded; without this the job fails."""
        if not isinstance(handling, PoisonRecordHandling):
            raise GraphError(f"set_poison_record_handling() takes a PoisonRecordHandling, not {handling!r}.")
        self._poison = handling
        return self

    # -- properties ---------------------------------------------------------------------------------------------------

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Set how the client ids of this source begin, as brokers' logs and quotas show them."""
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: Any) -> KafkaSourceBuilder:
        """Set a property of Kafka's consumer, under Java's name or librdkafka's, or one of Flink's source options."""
        return self.set_properties({key: value})

    def set_properties(self, props: Mapping[str, Any]) -> KafkaSourceBuilder:
        """Set several properties."""
        if not isinstance(props, Mapping):
            raise GraphError(f"set_properties() takes a dict of properties, not {type(props).__name__}.")
        self._properties.update(props)
        return self

    # -- the source ---------------------------------------------------------------------------------------------------

    def build(self) -> KafkaSource[Any]:
        """Return the source. Refuses missing settings and unknown properties; the cluster is not asked yet."""
        if not self._properties.get("bootstrap.servers") and not self._properties.get("metadata.broker.list"):
            raise GraphError("A KafkaSource needs the address of the cluster: call set_bootstrap_servers().")
        if self._subscription is None:
            raise GraphError(
                "A KafkaSource needs to know what to read: call set_topics(), set_topic_pattern() or set_partitions()."
            )
        if self._deserializer is None:
            raise GraphError("A KafkaSource needs set_value_only_deserializer() or set_deserializer().")
        self._check_group()
        decoding = RecordDecoding(self._deserializer, self._whole_record, self._poison)
        return KafkaSource(
            self._subscription, self._starting, self._stopping, self._boundedness, decoding, self._settings()
        )

    def _check_group(self) -> None:
        commits = flag_of(self._properties, "commit.offsets.on.checkpoint", False)
        committed = OffsetsKind.COMMITTED in (self._starting.kind, self._stopping.kind if self._stopping else None)
        if "group.id" not in self._properties and (commits or committed):
            raise GraphError("A KafkaSource that commits offsets, or begins at committed ones, needs set_group_id().")

    def _settings(self) -> SourceSettings:
        properties = chosen_brokers(self._properties)
        consumer_properties(properties), admin_properties(properties)  # refuses what Python cannot do
        warn_of_unknown_names(properties)
        return SourceSettings(
            properties,
            reset_of(properties, self._starting.reset),
            self._discovery_interval_ms(),
            flag_of(properties, "commit.offsets.on.checkpoint", True),
            flag_of(properties, "enable.auto.commit", False),
            self._stopping is not None,
            timeout_s(properties),
        )

    def _discovery_interval_ms(self) -> int | None:
        """Return how often to look for new partitions: a source that stops looks only if it is told to."""
        if self._boundedness is Boundedness.BOUNDED:
            return None
        default = DEFAULT_DISCOVERY_INTERVAL_MS if self._stopping is None else -1
        interval = number_of(self._properties, DISCOVERY_INTERVAL, default)
        return interval if interval > 0 else None


def _initializer(where: str, initializer: Any) -> KafkaOffsetsInitializer:
    if not isinstance(initializer, KafkaOffsetsInitializer):
        raise GraphError(f"{where}() takes a KafkaOffsetsInitializer, not {initializer!r}.")
    return initializer
