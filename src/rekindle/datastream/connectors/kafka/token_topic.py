"""The topic of commit tokens: notes of a sink's commits, written inside the very transactions that it commits.

A token says "transactional id X of timeline T has committed up to number N". After a restart it decides whether a
checkpoint's messages are in their topics already. The topic is compacted, so a token never expires, and each subtask
of the sink has a partition of its own: once its producers are fenced, no open transaction hides what lies there.
"""

from __future__ import annotations

import hashlib
import re
import time
from typing import Any

from rekindle.datastream.connectors.kafka.client_errors import (
    ClientErrors,
    connector_error,
    error_name,
    new_client,
)
from rekindle.datastream.connectors.kafka.client_properties import confluent_kafka
from rekindle.datastream.connectors.kafka.record_serializer import Message
from rekindle.datastream.connectors.kafka.sink_settings import KafkaSinkSettings
from rekindle.datastream.connectors.kafka.transaction_number import TransactionNumber
from rekindle.errors import ConnectorError

_LONGEST_NAME = 249
#: Small and young segments, because only closed ones are compacted.
_CONFIG = {"cleanup.policy": "compact", "segment.ms": "3600000", "segment.bytes": "1048576"}
_SUFFIX = "-rekindle-tokens"


def token_topic_name(prefix: str) -> str:
    """Return the name of the token topic of a transactional id prefix.

    >>> token_topic_name("orders")
    'orders-rekindle-tokens'
    """
    plain = re.sub(r"[^\w.-]", "_", prefix, flags=re.ASCII)
    if plain != prefix or len(plain) + len(_SUFFIX) > _LONGEST_NAME:
        digest = hashlib.sha256(prefix.encode()).hexdigest()[:12]
        plain = f"{plain[: _LONGEST_NAME - len(_SUFFIX) - 13]}-{digest}"
    return plain + _SUFFIX


class TokenTopic:
    """Makes, writes and reads a sink's token topic."""

    def __init__(self, settings: KafkaSinkSettings, prefix: str) -> None:
        self.name = token_topic_name(prefix)
        self._prefix = prefix
        self._settings = settings
        self._reports = ClientErrors()

    def message(self, number: TransactionNumber) -> Message:
        """Return the token of a transaction, to be sent inside it."""
        return (self.name, number.encoded(), number.key().encode(), number.subtask)

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, subtask: int) -> dict[str, tuple[int, int]]:
        """Return the last committed number of each key of a subtask's partition.

        Call it after `init_transactions` of all of the subtask's ids: only then is nothing undecided. Up to the high
        watermark: up to the last stable offset, a token behind somebody's open transaction would be missed.
        """
        self._check_partition(subtask)
        end = self.high_watermark(subtask)
        return self._read_to(subtask, end) if end > 0 else {}

    def _check_partition(self, subtask: int) -> None:
        """The sink made the partition before it wrote a record: if it is gone, so are the tokens."""
        if self._partitions(new_client("AdminClient", self._address, self._reports)) <= subtask:
            raise ConnectorError(
                f"The topic '{self.name}', in which the Kafka sink notes its commits, lacks partition {subtask}: "
                "without it nobody knows whether the checkpoint's messages are in Kafka already. If they are not, make "
                "the topic again, empty and compacted, with a partition for each subtask."
            )

    def high_watermark(self, subtask: int) -> int:
        """Return the end of a partition, open transactions included."""
        package = confluent_kafka()
        consumer = self._consumer("read_uncommitted")
        try:
            partition = package.TopicPartition(self.name, subtask)
            return int(consumer.get_watermark_offsets(partition, timeout=self._settings.limit_s)[1])
        except package.KafkaException as error:
            raise connector_error(
                error, f"find the end of topic '{self.name}'", self._address, self._reports
            ) from error
        finally:
            consumer.close()

    def _read_to(self, subtask: int, end: int) -> dict[str, tuple[int, int]]:
        package = confluent_kafka()
        consumer = self._consumer("read_committed")
        tokens: dict[str, tuple[int, int]] = {}
        until = time.monotonic() + self._settings.limit_s
        try:
            consumer.assign([package.TopicPartition(self.name, subtask, package.OFFSET_BEGINNING)])
            while True:
                for message in consumer.consume(1000, timeout=0.02):
                    if message.error() is None:
                        tokens[message.key().decode()] = TransactionNumber.decoded(message.value())
                    elif message.error().name() == "_PARTITION_EOF":
                        if message.offset() >= end:
                            return tokens
                    else:
                        raise connector_error(
                            message.error(), f"read topic '{self.name}'", self._address, self._reports
                        )
                if time.monotonic() > until:
                    raise self._hidden(subtask)
        finally:
            consumer.close()

    def _hidden(self, subtask: int) -> ConnectorError:
        return ConnectorError(
            f"The Kafka sink could not read partition {subtask} of its topic '{self.name}' to the end within "
            f"{self._settings.limit_s:.0f} s: another program has a transaction open there. See that no other running "
            f"job has the transactional id prefix '{self._prefix}'."
        )

    def _consumer(self, isolation: str) -> Any:
        properties = {
            **self._settings.admin(),
            "group.id": self.name,  # asked for by the client; nothing is stored under it
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "fetch.wait.max.ms": 10,
        }
        return new_client("Consumer", properties, self._reports)

    # -- making -------------------------------------------------------------------------------------------------------

    def ensure(self, subtasks: int) -> int:
        """Make the topic, or add partitions, so that each subtask has one. Several subtasks may try at once.

        Return the number of partitions: as many subtasks as ever ran with this prefix, because none begins a
        transaction before it has called this.
        """
        admin = new_client("AdminClient", self._address, self._reports)
        until = time.monotonic() + self._settings.limit_s
        while (partitions := self._partitions(admin)) < subtasks:
            if time.monotonic() > until:
                raise ConnectorError(
                    f"The topic '{self.name}' had {partitions} of {subtasks} partitions after "
                    f"{self._settings.limit_s:.0f} s: see that the brokers run."
                )
            self._grow(admin, partitions, subtasks)
            time.sleep(0.02)
        return partitions

    def _partitions(self, admin: Any) -> int:
        """The number of partitions with a leader; 0 without the topic."""
        package = confluent_kafka()
        names = package.TopicCollection([self.name])
        try:
            found = admin.describe_topics(names, request_timeout=self._settings.limit_s)[self.name].result()
        except package.KafkaException as error:
            if error_name(error) == "UNKNOWN_TOPIC_OR_PART":
                return 0
            admin.poll(0)  # a failed login is reported here
            raise connector_error(error, f"describe topic '{self.name}'", self._address, self._reports) from error
        return sum(1 for each in found.partitions if each.leader is not None)

    def _grow(self, admin: Any, partitions: int, subtasks: int) -> None:
        package = confluent_kafka()
        limit_s = self._settings.limit_s
        if partitions == 0:
            new = package.admin.NewTopic(self.name, num_partitions=subtasks, replication_factor=-1, config=_CONFIG)
            futures = admin.create_topics([new], request_timeout=limit_s)
        else:
            futures = admin.create_partitions(
                [package.admin.NewPartitions(self.name, subtasks)], request_timeout=limit_s
            )
        try:
            futures[self.name].result()
        except package.KafkaException as error:
            if error_name(error) not in ("TOPIC_ALREADY_EXISTS", "INVALID_PARTITIONS", "REASSIGNMENT_IN_PROGRESS"):
                what = f"make topic '{self.name}', in which the sink notes its commits"
                raise connector_error(error, what, self._address, self._reports) from error

    @property
    def _address(self) -> dict[str, Any]:
        return self._settings.admin()
