"""Reads topics in the tests of the Kafka sink, as another program would."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from tests.support.ending_transactions import ending_transactions
from tests.support.waiting import wait_until
from tools.servers.kafka_access import QUIET, KafkaAccess

DEADLINE_S = 30.0


def messages(
    kafka: KafkaAccess, topic: str, *, isolation: str = "read_committed", listener: str = "PLAINTEXT"
) -> list[Message]:
    """All messages of a topic that a reader with this isolation level sees now.

    Of transactions whose commit has returned, too: Kafka writes their marks into the topics a moment later.
    """
    settings = {"group.id": "test", "enable.partition.eof": True, "isolation.level": isolation, "fetch.wait.max.ms": 10}
    consumer = Consumer(kafka.client(listener) | QUIET | settings)
    found: list[Message] = []
    until = time.monotonic() + DEADLINE_S
    if isolation == "read_committed":
        wait_until(lambda: ending_transactions(kafka.bootstrap_servers) == 0, "no transaction is ending", DEADLINE_S)
    try:
        partitions = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        ended: set[int] = set()
        while len(ended) < len(partitions):
            assert time.monotonic() < until, f"partitions {ended} of {list(partitions)} came to their end"
            for message in consumer.consume(1000, timeout=0.02):
                error, partition = message.error(), message.partition()
                if error is None:
                    found.append(message)
                else:
                    assert error.name() == "_PARTITION_EOF", error
                    assert partition is not None
                    ended.add(partition)
    finally:
        consumer.close()
    return found


def numbers(found: Iterable[Message]) -> list[int]:
    """The numbers in these messages, in their order."""
    return [int(message.value() or b"") for message in found]


def values(kafka: KafkaAccess, topic: str, **options: Any) -> list[int]:
    """The numbers in a topic's visible messages, sorted."""
    return sorted(numbers(messages(kafka, topic, **options)))
