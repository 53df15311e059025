"""The driver's questions to a Kafka cluster: its partitions, and the offsets where a source begins and stops."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rekindle.datastream.connectors.kafka.client_errors import ClientErrors, connector_error, error_name, new_client
from rekindle.datastream.connectors.kafka.client_properties import confluent_kafka
from rekindle.datastream.connectors.kafka.offsets_initializers import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    OffsetsKind,
)
from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition
from rekindle.datastream.connectors.kafka.source_settings import SourceSettings
from rekindle.datastream.connectors.kafka.topic_subscription import TopicSubscription
from rekindle.errors import ConnectorError

Offsets = dict[KafkaTopicPartition, int]
Partitions = Collection[KafkaTopicPartition]

#: Errors that a broker which is just starting may answer with; the question is asked again.
_TRIED_AGAIN = ("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN")
#: Reports that time does not heal.
_HOPELESS = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL")
#: The answers of a broker while the coordinator of a group starts or moves.
_NO_COORDINATOR_YET = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
_COORDINATOR_PAUSE_S = 0.1
_TRY_S = 1.0


class ClusterLookup:
    """Asks a cluster, with one client. An answer that does not come in time is a `ConnectorError`."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._reports = ClientErrors()
        self._client = new_client("AdminClient", settings.admin(), self._reports)

    # -- partitions ---------------------------------------------------------------------------------------------------

    def partitions(self, subscription: TopicSubscription) -> list[KafkaTopicPartition]:
        """Return the partitions that a source reads."""
        return subscription.chosen(self._cluster(), self._settings.servers)

    def _cluster(self) -> dict[str, list[int]]:
        """Return the partition numbers of every topic. Wrong credentials fail at once, a missing broker in time."""
        deadline = time.monotonic() + self._settings.timeout_s
        while True:
            left = deadline - time.monotonic()
            try:
                topics = self._client.list_topics(timeout=max(0.1, min(_TRY_S, left))).topics
            except confluent_kafka().KafkaException as error:
                self._client.poll(0)
                hopeless = error_name(error) not in _TRIED_AGAIN or error_name(self._reports.cause()) in _HOPELESS
                if hopeless or left <= _TRY_S:
                    raise self._failed(error, "list its topics") from None
            else:
                return {name: sorted(each.partitions) for name, each in topics.items() if each.error is None}

    # -- offsets ------------------------------------------------------------------------------------------------------

    def offsets(self, initializer: KafkaOffsetsInitializer, partitions: Partitions) -> Offsets:
        """Return where each partition begins or stops."""
        kind = initializer.kind
        if kind is OffsetsKind.EARLIEST:
            return self.earliest(partitions)
        if kind is OffsetsKind.LATEST:
            return self.latest(partitions)
        if kind is OffsetsKind.TIMESTAMP:
            return self._at(partitions, initializer.at_ms or 0)
        found = {each: initializer.by_partition[each] for each in partitions if each in initializer.by_partition}
        return found | self._committed_or_reset([each for each in partitions if each not in found], initializer.reset)

    def earliest(self, partitions: Partitions) -> Offsets:
        """Return the first offset that each partition still has."""
        spec = confluent_kafka().admin.OffsetSpec.earliest()
        return self._list_offsets(dict.fromkeys(partitions, spec), "find the beginnings of partitions")

    def latest(self, partitions: Partitions) -> Offsets:
        """Return the end of each partition: under read_committed before the first open transaction."""
        spec = confluent_kafka().admin.OffsetSpec.latest()
        return self._list_offsets(dict.fromkeys(partitions, spec), "find the ends of partitions")

    def _at(self, partitions: Partitions, at_ms: int) -> Offsets:
        spec = confluent_kafka().admin.OffsetSpec.for_timestamp(at_ms)
        found = self._list_offsets(dict.fromkeys(partitions, spec), "find the records of a time")
        return found | self.latest([each for each, offset in found.items() if offset < 0])

    def _committed_or_reset(self, partitions: Partitions, reset: KafkaOffsetResetStrategy) -> Offsets:
        found = self.committed(partitions) if self._settings.group_id is not None else {}
        rest = [each for each in partitions if each not in found]
        if not rest:
            return found
        if reset is KafkaOffsetResetStrategy.NONE:
            raise ConnectorError(_nothing_committed(self._settings, rest))
        return found | (self.earliest(rest) if reset is KafkaOffsetResetStrategy.EARLIEST else self.latest(rest))

    def committed(self, partitions: Partitions) -> Offsets:
        """Return the group's committed offsets; partitions without one are left out."""
        if not partitions:
            return {}
        # Not the admin client: its question kills the process while the group's coordinator starts (librdkafka 5040).
        consumer = new_client("Consumer", self._settings.consumer_of_group(), self._reports)
        try:
            answered = self._ask_group(consumer, list(_topic_partitions(partitions)))
        except confluent_kafka().KafkaException as error:
            raise self._failed(error, f"look up the offsets of the group '{self._settings.group_id}'") from None
        finally:
            consumer.close()
        return {KafkaTopicPartition(each.topic, each.partition): each.offset for each in answered if each.offset >= 0}

    def _ask_group(self, consumer: Any, asked: list[Any]) -> list[Any]:
        """Return the group's offsets; ask again while its coordinator starts or moves."""
        deadline = time.monotonic() + self._settings.timeout_s
        while True:
            try:
                answered: list[Any] = consumer.committed(asked, timeout=max(0.1, deadline - time.monotonic()))
                failed = next((each.error for each in answered if each.error is not None), None)
                if failed is None:
                    return answered
                raise confluent_kafka().KafkaException(failed)
            except confluent_kafka().KafkaException as error:
                if error_name(error) not in _NO_COORDINATOR_YET or time.monotonic() > deadline:
                    raise
                time.sleep(_COORDINATOR_PAUSE_S)

    def _list_offsets(self, specs: Mapping[KafkaTopicPartition, Any], doing: str) -> Offsets:
        if not specs:
            return {}
        package = confluent_kafka()
        level = package.IsolationLevel
        isolation = level.READ_COMMITTED if self._settings.reads_committed else level.READ_UNCOMMITTED
        asked = dict(zip(_topic_partitions(specs), specs.values(), strict=True))
        try:
            futures = self._client.list_offsets(
                asked, isolation_level=isolation, request_timeout=self._settings.timeout_s
            )
            return {KafkaTopicPartition(at.topic, at.partition): each.result().offset for at, each in futures.items()}
        except package.KafkaException as error:
            raise self._failed(error, doing) from None

    def _failed(self, error: Exception, doing: str) -> ConnectorError:
        waited = f"{doing} within {self._settings.timeout_s:g} s"
        return connector_error(error, waited, self._settings.properties, self._reports)


def _topic_partitions(partitions: Iterable[KafkaTopicPartition]) -> Iterable[Any]:
    make = confluent_kafka().TopicPartition
    return (make(each.topic, each.partition) for each in partitions)


def _nothing_committed(settings: SourceSettings, partitions: list[KafkaTopicPartition]) -> str:
    named = ", ".join(f"'{each.topic}-{each.partition}'" for each in partitions[:5])
    more = f" and {len(partitions) - 5} more" if len(partitions) > 5 else ""
    who = f"The group '{settings.group_id}' has" if settings.group_id is not None else "Without a group id there is"
    return (
        f"{who} no committed offset for {named}{more} at Kafka {settings.servers}: say where to begin then, "
        "for example with KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)."
    )
