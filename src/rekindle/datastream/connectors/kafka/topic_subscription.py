"""Which partitions a Kafka source reads: of listed topics, of topics that match a pattern, or listed ones. Pure."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition
from rekindle.errors import ConnectorError


class TopicSubscription(ABC):
    """Chooses the partitions of a source."""

    @abstractmethod
    def chosen(self, cluster: Mapping[str, Collection[int]], servers: str) -> list[KafkaTopicPartition]:
        """Return the chosen partitions of a cluster, which is given as the partition numbers of each topic."""

    @abstractmethod
    def has_topic(self, topic: str) -> bool:
        """Return whether partitions of this topic may be chosen."""


@dataclass(frozen=True)
class TopicList(TopicSubscription):
    """All partitions of these topics, which must exist."""

    topics: tuple[str, ...]

    def chosen(self, cluster: Mapping[str, Collection[int]], servers: str) -> list[KafkaTopicPartition]:
        _refuse_missing([topic for topic in self.topics if topic not in cluster], "topic", servers)
        return sorted(KafkaTopicPartition(topic, number) for topic in self.topics for number in cluster[topic])

    def has_topic(self, topic: str) -> bool:
        return topic in self.topics

    def __str__(self) -> str:
        return ", ".join(self.topics)


@dataclass(frozen=True)
class TopicPattern(TopicSubscription):
    """All partitions of the topics whose whole names match; there may be none yet."""

    pattern: str

    def chosen(self, cluster: Mapping[str, Collection[int]], servers: str) -> list[KafkaTopicPartition]:
        topics = filter(self.has_topic, cluster)
        return sorted(KafkaTopicPartition(topic, number) for topic in topics for number in cluster[topic])

    def has_topic(self, topic: str) -> bool:
        return re.fullmatch(self.pattern, topic) is not None


@dataclass(frozen=True)
class PartitionSet(TopicSubscription):
    """These partitions, which must exist."""

    partitions: frozenset[KafkaTopicPartition]

    def chosen(self, cluster: Mapping[str, Collection[int]], servers: str) -> list[KafkaTopicPartition]:
        partitions = sorted(self.partitions)
        _refuse_missing(sorted({each.topic for each in partitions if each.topic not in cluster}), "topic", servers)
        missing = [f"{each.topic}-{each.partition}" for each in partitions if each.partition not in cluster[each.topic]]
        _refuse_missing(missing, "partition", servers)
        return partitions

    def has_topic(self, topic: str) -> bool:
        return any(each.topic == topic for each in self.partitions)


def _refuse_missing(names: list[str], what: str, servers: str) -> None:
    if names:
        kind = what if len(names) == 1 else f"{what}s"
        listed = ", ".join(f"'{name}'" for name in names)
        raise ConnectorError(
            f"Kafka at {servers} has no {kind} {listed}: create what is missing, correct the name, or use "
            "set_topic_pattern(), which also takes topics that are created later."
        )
