"""The client of a reader: fetches messages of its partitions, keeps what the engine does not take yet, and commits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic
from typing import Any

from rekindle.datastream.connectors.kafka.client_errors import ClientErrors, connector_error, error_name, new_client
from rekindle.datastream.connectors.kafka.client_properties import KAFKA_LOG, confluent_kafka
from rekindle.datastream.connectors.kafka.offset_commits import CommitsInTurn
from rekindle.datastream.connectors.kafka.offsets_initializers import KafkaOffsetResetStrategy
from rekindle.datastream.connectors.kafka.partition_progress import PartitionProgress
from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition
from rekindle.datastream.connectors.kafka.source_settings import SourceSettings
from rekindle.errors import ConnectorError

#: The number of messages that are fetched at once: the client is not faster with more.
FETCH_RECORDS = 4096
#: Errors that the client itself goes on to repair, as after a broker's restart.
_PASSING = frozenset(("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE"))
#: The longest that a client that closes waits for the answer to a commit, so that it can send the newest one.
_LAST_COMMIT_S = 5.0
_REFUSED = frozenset(("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"))

OnCommit = Callable[[Any, list[Any]], None]


class MessageFeed:
    """Fetches messages. Within a partition they come in the order of their offsets."""

    def __init__(
        self,
        settings: SourceSettings,
        progress: Mapping[KafkaTopicPartition, PartitionProgress],
        client: Mapping[str, Any],
        on_commit: OnCommit,
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._reports = ClientErrors()
        self._package = confluent_kafka()
        self._error_of = self._package.Message.error
        self._on_commit = on_commit
        self._commits = CommitsInTurn(self._send_commit)
        self._consumer = new_client("Consumer", {**client, "on_commit": self._answered}, self._reports)
        self._held: list[Any] = []
        self._held_has_errors = False
        self._aside: dict[KafkaTopicPartition, list[Any]] = {}  # of paused partitions
        self.add(progress.values())

    def add(self, progress: Iterable[PartitionProgress]) -> None:
        """Begin to fetch these partitions, except finished ones."""
        unfinished = [each for each in progress if not each.finished]
        if unfinished:
            self._consumer.incremental_assign([self._at(each.partition, each.next_offset) for each in unfinished])

    # -- messages -----------------------------------------------------------------------------------------------------

    def has_messages(self) -> bool:
        """Fetch if need be, and return whether there is something to take."""
        return bool(self._held) or self._fetch()

    def take(self, most: int) -> list[Any]:
        """Return up to `most` messages; errors of partitions that come before them are dealt with."""
        while self._held or self._fetch():
            if not self._held_has_errors:
                return self._taken(most)
            clean = next((n for n, each in enumerate(self._held) if self._error_of(each)), len(self._held))
            if clean:
                return self._taken(min(most, clean))
            self._deal_with(self._held.pop(0))
        return []

    def _fetch(self) -> bool:
        self._held = self._consumer.consume(FETCH_RECORDS, 0)
        self._held_has_errors = any(map(self._error_of, self._held))
        if not self._held and error_name(self._reports.cause()) in _REFUSED:
            raise self._failed(self._reports.cause(), "let the source go on reading")
        if self._aside:
            self._set_aside(self._aside)
        return bool(self._held)

    def _taken(self, most: int) -> list[Any]:
        taken = self._held[:most] if most < len(self._held) else self._held
        self._held = self._held[most:] if most < len(self._held) else []
        return taken

    # -- pauses -------------------------------------------------------------------------------------------------------

    def pause(self, partitions: Collection[KafkaTopicPartition]) -> None:
        """Fetch and return nothing of these partitions until they are resumed."""
        if partitions:
            self._consumer.pause([self._at(each) for each in partitions])
            self._aside.update({each: [] for each in partitions if each not in self._aside})
            self._set_aside(partitions)

    def resume(self, partitions: Collection[KafkaTopicPartition]) -> None:
        """Go on with these partitions: first with what was set aside."""
        if partitions:
            waiting = [message for each in partitions for message in self._aside.pop(each, [])]
            self._held[:0] = waiting
            self._held_has_errors = any(map(self._error_of, self._held))
            self._consumer.resume([self._at(each) for each in partitions])

    def drop(self, partition: KafkaTopicPartition) -> None:
        """Fetch no more of a finished partition."""
        self._consumer.pause([self._at(partition)])

    def _set_aside(self, partitions: Collection[KafkaTopicPartition]) -> None:
        kept: list[Any] = []
        for message in self._held:
            partition = KafkaTopicPartition(message.topic(), message.partition())
            (self._aside[partition] if partition in partitions else kept).append(message)
        self._held = kept

    # -- errors -------------------------------------------------------------------------------------------------------

    def _deal_with(self, message: Any) -> None:
        """Deal with the end of a partition, an offset that is out of range, or an error of the client."""
        error = message.error()
        name = error.name()
        progress = self._progress.get(KafkaTopicPartition(message.topic(), message.partition()))
        if name == "_PARTITION_EOF":
            if progress is not None:
                progress.end_reached(message.offset())
        elif name == "_AUTO_OFFSET_RESET" and progress is not None:
            self._reset(progress, error)
        elif name in _PASSING or (error.retriable() and not error.fatal()):
            KAFKA_LOG.warning("Kafka at %s: %s; the source waits for it.", self._settings.servers, error.str())
        else:
            raise self._failed(error, f"give records of '{message.topic()}-{message.partition()}'")

    def _reset(self, progress: PartitionProgress, error: Any) -> None:
        """Go on from the beginning or the end of a partition whose next offset is not there, or fail."""
        at = self._at(progress.partition)
        try:
            first, end = self._consumer.get_watermark_offsets(at, timeout=self._settings.timeout_s)
        except self._package.KafkaException as failure:
            raise self._failed(failure, f"tell the range of '{progress.split_id}'") from None
        told = (
            f"Kafka topic '{progress.partition.topic}', partition {progress.partition.partition}, at "
            f"{self._settings.servers} has no offset {progress.next_offset}: it has {first} up to {end}"
        )
        if self._settings.reset is KafkaOffsetResetStrategy.NONE:
            raise ConnectorError(
                f"{told} ({error.str()}). Records were deleted before they were read, or the topic was made anew: set "
                "auto.offset.reset to 'earliest' or 'latest' to go on without them."
            )
        go_on = first if self._settings.reset is KafkaOffsetResetStrategy.EARLIEST else end
        KAFKA_LOG.warning("%s; the source goes on from %s.", told, go_on)
        progress.next_offset = go_on
        self._consumer.incremental_unassign([at])
        self._consumer.incremental_assign([self._at(progress.partition, go_on)])

    def _failed(self, error: Any, doing: str) -> ConnectorError:
        return connector_error(error, doing, self._settings.properties, self._reports)

    # -- offsets ------------------------------------------------------------------------------------------------------

    def commit(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Commit offsets to the group, without waiting for the answer; after the commit that is under way."""
        if self._commits.under_way:
            self.has_messages()  # the client calls back in a fetch: a source at its end makes no other one
        if offsets:
            self._commits.commit(offsets)

    def _send_commit(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        self._consumer.commit(offsets=[self._at(each, offset) for each, offset in offsets.items()], asynchronous=True)

    def _answered(self, error: Any, partitions: list[Any]) -> None:
        self._on_commit(error, partitions)
        try:
            self._commits.answered()
        except self._package.KafkaException as failure:  # no reason to fail the job: the next checkpoint commits
            self._on_commit(failure, [])

    def store(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Let the client commit these offsets when its interval is over."""
        if offsets:
            self._consumer.store_offsets(offsets=[self._at(each, offset) for each, offset in offsets.items()])

    def end_of(self, partition: KafkaTopicPartition) -> int | None:
        """Return the partition's end as of the last fetch; None before the first one."""
        _, end = self._consumer.get_watermark_offsets(self._at(partition), cached=True)
        return end if end >= 0 else None

    def close(self) -> None:
        """Close the client; it finishes the newest commit, if the answer to an older one comes soon enough."""
        deadline = monotonic() + _LAST_COMMIT_S
        while self._commits.waits and monotonic() < deadline:
            self._consumer.poll(0.05)
        self._commits = CommitsInTurn(self._send_commit)  # a client that closes can send no more
        self._consumer.close()

    def _at(self, partition: KafkaTopicPartition, offset: int | None = None) -> Any:
        make = self._package.TopicPartition
        return make(*partition) if offset is None else make(*partition, offset)
