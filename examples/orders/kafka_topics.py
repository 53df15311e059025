"""Makes the Kafka topics of the job, and reads back what was committed to the topics of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from examples.orders.ends import STREAMS
from examples.orders.kafka_ends import result_topic
from examples.orders.settings import Feed, Settings

#: The partitions of a topic of results.
RESULT_PARTITIONS = 3
# Results carry the times of their events, in 2024; by default Kafka deletes what is older than a week.
_KEPT = {"retention.ms": "-1"}
_READ_S = 60.0
_POLL_S = 0.1
_AT_ONCE = 10_000


def create_topics(client: dict[str, Any], settings: Settings, feed: Feed, more: Sequence[str] = ()) -> None:
    """Make the topics of orders and results that do not exist; `more` are further streams of results."""
    topics = [NewTopic(settings.source_topic, feed.splits)]
    names = [result_topic(settings, stream) for stream in (*STREAMS, *more)]
    topics += [NewTopic(name, RESULT_PARTITIONS, config=_KEPT) for name in names]
    admin = AdminClient(client)  # it must live until it has answered
    for made in admin.create_topics(topics, request_timeout=_READ_S).values():
        try:
            made.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


class CommittedRows:
    """Counts the rows that a reader of the topics sees, as they are committed."""

    def __init__(self, client: dict[str, Any], settings: Settings) -> None:
        self._streams = {result_topic(settings, stream): stream for stream in STREAMS}
        self._consumer = _reader_of(client, *self._streams)
        self._rows: Counter[str] = Counter()

    def count(self) -> dict[str, int]:
        """Rows by stream; for batches, the events in them."""
        for message in self._consumer.consume(_AT_ONCE, 0):
            topic, value = message.topic(), message.value()
            if message.error() is None and topic is not None and value is not None:
                stream = self._streams[topic]
                self._rows[stream] += value.count(b'"order_id"') if stream == "batches" else 1
        return dict(self._rows)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


def committed_rows(client: dict[str, Any], settings: Settings, stream: str) -> Iterator[Any]:
    """Every committed row of a stream, in the order of its partitions, to their present ends."""
    consumer = _reader_of(client | {"enable.partition.eof": True}, result_topic(settings, stream))
    left, deadline = RESULT_PARTITIONS, monotonic() + _READ_S
    try:
        while left:
            if monotonic() > deadline:
                raise TimeoutError(f"Kafka did not give all of '{result_topic(settings, stream)}' within {_READ_S} s.")
            # A short time: `consume` waits for it unless there is as much as it may return.
            for message in consumer.consume(_AT_ONCE, _POLL_S):
                error, value = message.error(), message.value()
                if error is not None:
                    left -= error.code() == KafkaError._PARTITION_EOF
                elif value is not None:
                    yield msgspec.json.decode(value)
    finally:
        consumer.close()


def _reader_of(client: dict[str, Any], *topics: str) -> Consumer:
    reading = {"group.id": "readers-of-results", "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({**client, **reading, "fetch.queue.backoff.ms": 10})
    numbers = range(RESULT_PARTITIONS)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic in topics for number in numbers])
    return consumer
