"""The benchmark's topics: filled before any clock starts, and read back after a job has written one."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.kafka.workload import CLIENT_SETTINGS, FETCH_RECORDS, PARTITIONS, record_decoder, value_of
from benchmarks.keyed_count.workload import BLOCK_RECORDS
from tools.servers.kafka_access import KafkaAccess

_FLUSH_S = 120
_READ_DEADLINE_S = 300


def fill(broker: KafkaAccess, topic: str, records: int) -> None:
    """Make a topic with this many records, spread over its partitions."""
    from confluent_kafka import Producer

    broker.create_topic(topic, partitions=PARTITIONS)
    queue = {"queue.buffering.max.messages": 1_000_000, "linger.ms": 50, "batch.size": 262_144}
    producer = Producer(broker.client() | queue)
    block = [value_of(index) for index in range(min(records, BLOCK_RECORDS))]
    for index in range(records):
        while True:
            try:
                producer.produce(topic, block[index % BLOCK_RECORDS], partition=index % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(_FLUSH_S):
        raise SystemExit(f"kafka: the broker did not take all records of {topic}.")


def delete(broker: KafkaAccess, topic: str) -> None:
    """Delete a topic, for the sake of the disk."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(broker.client())  # must live until the answer is there
    admin.delete_topics([topic])[topic].result(60)


def read_counts(broker: KafkaAccess, topic: str) -> tuple[int, int]:
    """Return what a job has written, as committed: how many messages, and the sum of the highest count of each key."""
    from confluent_kafka import Consumer, TopicPartition

    own = {"group.id": "none", "enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer(broker.client() | CLIENT_SETTINGS | own | {"enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    decode = record_decoder("msgspec")
    highest: dict[str, int] = {}
    messages, open_partitions, until = 0, PARTITIONS, time.monotonic() + _READ_DEADLINE_S
    while open_partitions and time.monotonic() < until:
        for message in consumer.consume(FETCH_RECORDS, 0.1):
            if message.error() is not None:
                open_partitions -= _is_end(message)
                continue
            record = decode(message.value())
            messages += 1
            if record.amount > highest.get(record.key, 0):
                highest[record.key] = record.amount
    consumer.close()
    return messages, sum(highest.values())


def _is_end(message: Any) -> int:
    if message.error().name() != "_PARTITION_EOF":
        raise SystemExit(f"kafka: what was written cannot be read back: {message.error()}.")
    return 1
