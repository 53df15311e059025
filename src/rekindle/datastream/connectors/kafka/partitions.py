"""Partitions of Kafka topics, their names as splits, and the subtask that reads each. Pure."""

from __future__ import annotations

from typing import NamedTuple

#: The position of a partition that is read from its beginning, wherever that is when the reading begins.
BEGINNING = -2


class KafkaTopicPartition(NamedTuple):
    """One partition of a topic. Partitions are ordered by topic and number.

    >>> KafkaTopicPartition("orders", 0)
    KafkaTopicPartition(topic='orders', partition=0)
    """

    topic: str
    partition: int


def split_id_of(partition: KafkaTopicPartition) -> str:
    """Return the id of a partition's split.

    >>> split_id_of(KafkaTopicPartition("new-orders", 3))
    'new-orders-3'
    """
    return f"{partition.topic}-{partition.partition}"


def partition_of(split_id: str) -> KafkaTopicPartition:
    """Return the partition of a split.

    >>> partition_of("new-orders-3")
    KafkaTopicPartition(topic='new-orders', partition=3)
    """
    topic, _, number = split_id.rpartition("-")
    return KafkaTopicPartition(topic, int(number))


def owner_of(partition: KafkaTopicPartition, parallelism: int) -> int:
    """Return the subtask that reads a partition, as in Flink: a topic's partitions go round the subtasks.

    Where the round begins depends on the topic's name, so that the first partitions of many topics are spread too.

    >>> [owner_of(KafkaTopicPartition("orders", number), 3) for number in range(5)]
    [0, 1, 2, 0, 1]
    """
    begin = ((_java_hash(partition.topic) * 31) & 0x7FFFFFFF) % parallelism
    return (begin + partition.partition) % parallelism


def _java_hash(text: str) -> int:
    """Return Java's hash of a string: the same in every process, unlike Python's."""
    result = 0
    for character in text:
        result = (31 * result + ord(character)) & 0xFFFFFFFF
    return result
