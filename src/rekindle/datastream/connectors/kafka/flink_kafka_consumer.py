"""`FlinkKafkaConsumer`, Flink's older Kafka source, for `env.add_source`. It is pulled, as every source is here."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from rekindle.common.serialization import DeserializationSchema
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream.connectors.base import (
    AddedSource,
    Boundedness,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.datastream.connectors.kafka.client_properties import (
    KAFKA_LOG,
    admin_properties,
    chosen_brokers,
    consumer_properties,
    warn_of_unknown_names,
)
from rekindle.datastream.connectors.kafka.consumer_offsets import ConsumerOffsets, last_offsets
from rekindle.datastream.connectors.kafka.kafka_record import KafkaRecordDeserializationSchema
from rekindle.datastream.connectors.kafka.offset_commits import OffsetCommitMode
from rekindle.datastream.connectors.kafka.offsets_initializers import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from rekindle.datastream.connectors.kafka.partitions import BEGINNING, KafkaTopicPartition, partition_of
from rekindle.datastream.connectors.kafka.poison_records import PoisonRecordHandling
from rekindle.datastream.connectors.kafka.reader import KafkaReader
from rekindle.datastream.connectors.kafka.record_decoding import RecordDecoding
from rekindle.datastream.connectors.kafka.source import KafkaSource
from rekindle.datastream.connectors.kafka.source_settings import (
    SourceSettings,
    flag_of,
    number_of,
    reset_of,
    timeout_s,
)
from rekindle.datastream.connectors.kafka.topic_subscription import TopicList, TopicPattern, TopicSubscription
from rekindle.errors import GraphError

T = TypeVar("T")
DISCOVERY_INTERVAL = "flink.partition-discovery.interval-millis"


class FlinkKafkaConsumerBase(KafkaSource[T], AddedSource[T], Generic[T]):
    """The base of Flink's older Kafka consumers."""

    def __init__(
        self, subscription: TopicSubscription, decoding: RecordDecoding, properties: Mapping[str, Any]
    ) -> None:
        settings = _settings(properties)
        start = KafkaOffsetsInitializer.committed_offsets(settings.reset)
        super().__init__(subscription, start, None, Boundedness.CONTINUOUS_UNBOUNDED, decoding, settings)
        self._filters_restored = True

    # -- where a job without state begins -----------------------------------------------------------------------------

    def set_start_from_earliest(self) -> FlinkKafkaConsumerBase[T]:
        """Begin at the first record of each partition, whatever the group has committed."""
        self._starting = KafkaOffsetsInitializer.earliest()
        return self

    def set_start_from_latest(self) -> FlinkKafkaConsumerBase[T]:
        """Begin at the end of each partition, whatever the group has committed."""
        self._starting = KafkaOffsetsInitializer.latest()
        return self

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumerBase[T]:
        """Begin at the first record at or after a time in milliseconds, which must be in the past."""
        start = KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp)
        if startup_offsets_timestamp > time.time() * 1000:
            raise GraphError(f"set_start_from_timestamp() takes a time in the past, not {startup_offsets_timestamp}.")
        self._starting = start
        return self

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumerBase[T]:
        """Begin at the group's committed offsets, and without one where `auto.offset.reset` says. The default."""
        self._starting = KafkaOffsetsInitializer.committed_offsets(self._settings.reset)
        return self

    def set_start_from_specific_offsets(
        self, specific_startup_offsets: Mapping[KafkaTopicPartition, int]
    ) -> FlinkKafkaConsumerBase[T]:
        """Begin at these offsets of the next records, and in other partitions at the group's committed offsets."""
        self._starting = KafkaOffsetsInitializer.offsets(specific_startup_offsets, self._settings.reset)
        return self

    # -- other settings -----------------------------------------------------------------------------------------------

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumerBase[T]:
        """Set whether offsets are committed to Kafka when a checkpoint is complete; they are unless set."""
        self._settings = replace(self._settings, commit_on_checkpoints=bool(commit_on_checkpoints))
        return self

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> FlinkKafkaConsumerBase[T]:
        """Assign event times and watermarks per partition."""
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise GraphError(
                f"assign_timestamps_and_watermarks() takes a WatermarkStrategy, not {watermark_strategy!r}."
            )
        self.watermark_strategy = watermark_strategy
        return self

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumerBase[T]:
        """Go on with restored partitions also if their topics are not subscribed any more."""
        self._filters_restored = False
        return self

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader that keeps its offsets in union list state too."""
        return FlinkKafkaConsumerReader(self._settings, self._decoding, context, splits, self._has_topic)

    def _has_topic(self, topic: str) -> bool:
        return not self._filters_restored or self._subscription.has_topic(topic)


class FlinkKafkaConsumer(FlinkKafkaConsumerBase[T], Generic[T]):
    """Flink's older Kafka source; new programs use `KafkaSource`.

    Topics are a name, a list of names, or a compiled regular expression. The offset of the last record of each
    partition is in the union list state `topic-partition-offset-states`.

    >>> from rekindle.common import SimpleStringSchema
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> properties = {"bootstrap.servers": "localhost:9092", "group.id": "readers"}
    >>> consumer = FlinkKafkaConsumer("orders", SimpleStringSchema(), properties).set_start_from_earliest()
    >>> StreamExecutionEnvironment.get_execution_environment().add_source(consumer).get_type()
    String
    """

    def __init__(
        self: FlinkKafkaConsumer[Any],  # no argument tells a checker the type
        topics: str | Sequence[str] | re.Pattern[str],
        deserialization_schema: DeserializationSchema | KafkaRecordDeserializationSchema,
        properties: Mapping[str, Any],
    ) -> None:
        if not isinstance(deserialization_schema, DeserializationSchema | KafkaRecordDeserializationSchema):
            raise GraphError(f"FlinkKafkaConsumer takes a DeserializationSchema, not {deserialization_schema!r}.")
        whole = isinstance(deserialization_schema, KafkaRecordDeserializationSchema)
        decoding = RecordDecoding(deserialization_schema, whole, PoisonRecordHandling.fail())
        super().__init__(_subscription(topics), decoding, properties)


class FlinkKafkaConsumerReader(KafkaReader[T], Generic[T]):
    """Reads as `KafkaReader` does, and keeps its offsets as Flink's consumer does."""

    def __init__(
        self,
        settings: SourceSettings,
        decoding: RecordDecoding,
        context: SourceReaderContext,
        splits: list[SourceSplit],
        has_topic: Any,
    ) -> None:
        self._name = f"Consumer subtask {context.index_of_subtask} of {context.task_name or 'a FlinkKafkaConsumer'}"
        self.offsets = ConsumerOffsets(context, self._name)
        restored = self.offsets.restored_state
        if restored is not None:
            splits = [_restored(split, restored) for split in splits if self._keeps(split, has_topic)]
        super().__init__(settings, decoding, context, splits)
        self.pending_offsets_to_commit = self.offsets.pending_offsets_to_commit

    def _keeps(self, split: SourceSplit, has_topic: Any) -> bool:
        kept = bool(has_topic(partition_of(split.split_id).topic))
        if not kept:
            KAFKA_LOG.warning("%s does not go on with '%s': it is not subscribed any more.", self._name, split.split_id)
        return kept

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """Store the offset of each partition's last record, and keep what is to be committed at the completion."""
        splits = [each.split() for each in self._progress.values()]
        if self._closed:
            KAFKA_LOG.debug("snapshotState() called on closed source")
            return splits
        current = last_offsets(self._progress.values())
        self.offsets.store(current)
        if self.offset_commit_mode is OffsetCommitMode.ON_CHECKPOINTS:
            # Before the first fetch nothing was read: what the restored checkpoint had is still to be committed.
            pending = self.offsets.restored_state if self._feed is None else current
            self.pending_offsets_to_commit.put(checkpoint_id, pending)
        return splits

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Commit a completed checkpoint's offsets; an unknown one is a warning."""
        if self._closed:
            KAFKA_LOG.debug("notifyCheckpointComplete() called on closed source")
        elif self.offset_commit_mode is OffsetCommitMode.ON_CHECKPOINTS:
            offsets = self.offsets.take_pending(checkpoint_id)
            own = {partition: offset for partition, offset in offsets.items() if partition in self._progress}
            if own:
                self._commit(own)


def _restored(split: SourceSplit, restored: Mapping[KafkaTopicPartition, int]) -> SourceSplit:
    """Return a split that begins after the last record of the restored state."""
    last = restored.get(partition_of(split.split_id))
    if last is None:
        return split
    return SourceSplit(split.split_id, (last + 1 if last >= -1 else BEGINNING, None))


def _subscription(topics: Any) -> TopicSubscription:
    if isinstance(topics, re.Pattern):
        return TopicPattern(topics.pattern)
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise GraphError(f"FlinkKafkaConsumer takes a topic or a list of topics, not {topics!r}.")
    return TopicList(tuple(dict.fromkeys(names)))


def _settings(properties: Mapping[str, Any]) -> SourceSettings:
    if not isinstance(properties, Mapping):
        raise GraphError(f"FlinkKafkaConsumer takes a dict of properties, not {type(properties).__name__}.")
    own = chosen_brokers(properties)
    if not own.get("bootstrap.servers") and not own.get("metadata.broker.list"):
        raise GraphError("FlinkKafkaConsumer needs the property 'bootstrap.servers'.")
    consumer_properties(own), admin_properties(own)  # refuses what Python cannot do
    warn_of_unknown_names(own)
    interval = number_of(own, DISCOVERY_INTERVAL, -1)
    return SourceSettings(
        own,
        reset_of(own, KafkaOffsetResetStrategy.LATEST),
        interval if interval > 0 else None,
        commit_on_checkpoints=True,
        # Kafka's consumer commits by itself unless told otherwise; without a group it cannot.
        auto_commit=flag_of(own, "enable.auto.commit", True) and number_of(own, "auto.commit.interval.ms", 5000) > 0,
        stops=False,
        timeout_s=timeout_s(own),
    )
