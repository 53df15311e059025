"""The Kafka source: reads topics exactly once, over failures and changes of the parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.connectors.kafka.cluster_lookup import ClusterLookup
from rekindle.datastream.connectors.kafka.offsets_initializers import KafkaOffsetsInitializer
from rekindle.datastream.connectors.kafka.partitions import (
    BEGINNING,
    KafkaTopicPartition,
    owner_of,
    partition_of,
    split_id_of,
)
from rekindle.datastream.connectors.kafka.reader import KafkaReader
from rekindle.datastream.connectors.kafka.record_decoding import RecordDecoding
from rekindle.datastream.connectors.kafka.source_settings import SourceSettings
from rekindle.datastream.connectors.kafka.topic_subscription import TopicSubscription

if TYPE_CHECKING:
    from rekindle.datastream.connectors.kafka.source_builder import KafkaSourceBuilder

T = TypeVar("T")


class KafkaSource(Source[T], Generic[T]):
    """Reads Kafka topics. Build one with `KafkaSource.builder()`; see `docs/guide/kafka.md`.

    >>> from rekindle.common import SimpleStringSchema
    >>> source = (
    ...     KafkaSource.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_group_id("readers")
    ...     .set_topics("orders")
    ...     .set_starting_offsets(KafkaOffsetsInitializer.earliest())
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    >>> source.boundedness().name, source.get_produced_type()
    ('CONTINUOUS_UNBOUNDED', String)
    """

    returns_fresh_records = True
    has_watermarks_per_split = True
    discovers_at_restore = True

    def __init__(
        self,
        subscription: TopicSubscription,
        starting: KafkaOffsetsInitializer,
        stopping: KafkaOffsetsInitializer | None,
        boundedness: Boundedness,
        decoding: RecordDecoding,
        settings: SourceSettings,
    ) -> None:
        """Do not call directly: use `KafkaSource.builder()`."""
        self._subscription = subscription
        self._starting = starting
        self._stopping = stopping
        self._boundedness = boundedness
        self._decoding = decoding
        self._settings = settings
        self.discovery_interval_ms = settings.discovery_interval_ms
        self._lookup: ClusterLookup | None = None

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Return a builder of a source."""
        from rekindle.datastream.connectors.kafka.source_builder import KafkaSourceBuilder

        return KafkaSourceBuilder()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._subscription}>"

    def boundedness(self) -> Boundedness:
        """Return BOUNDED after `set_bounded`, else CONTINUOUS_UNBOUNDED."""
        return self._boundedness

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the deserializer's records, or None if it is not known."""
        return self._decoding.produced_type()

    # -- on the driver ------------------------------------------------------------------------------------------------

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Return the partitions with the offsets where they begin and stop, as the cluster says now."""
        lookup = self._opened_lookup()
        partitions = lookup.partitions(self._subscription)
        begins = lookup.offsets(self._starting, partitions)
        return self._splits(begins, self._stops(partitions))

    def discover_splits(self) -> list[SourceSplit]:
        """Return the partitions that there are now, to be read from their beginning if they are new."""
        partitions = self._opened_lookup().partitions(self._subscription)
        return self._splits(dict.fromkeys(partitions, BEGINNING), self._stops(partitions))

    def _stops(self, partitions: list[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        return {} if self._stopping is None else self._opened_lookup().offsets(self._stopping, partitions)

    def _splits(
        self, begins: dict[KafkaTopicPartition, int], stops: dict[KafkaTopicPartition, int]
    ) -> list[SourceSplit]:
        return [SourceSplit(split_id_of(each), (begins[each], stops.get(each))) for each in sorted(begins)]

    def _opened_lookup(self) -> ClusterLookup:
        if self._lookup is None:
            self._lookup = ClusterLookup(self._settings)
        return self._lookup

    def close(self) -> None:
        """Release the driver's client."""
        self._lookup = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_lookup": None}

    # -- everywhere ---------------------------------------------------------------------------------------------------

    def split_owner(self, split_id: str, parallelism: int) -> int:
        """Return the subtask of a partition, as in Flink."""
        return owner_of(partition_of(split_id), parallelism)

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader of these partitions."""
        return KafkaReader(self._settings, self._decoding, context, splits)
