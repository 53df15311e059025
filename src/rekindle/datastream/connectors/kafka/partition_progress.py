"""How far a reader is in one partition. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rekindle.datastream.connectors.base import SourceSplit
from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition, partition_of


class PartitionProgress:
    """The next offset of a partition, and the offset before which it stops, if any.

    >>> progress = PartitionProgress.of(SourceSplit("orders-0", (17, 20)))
    >>> progress.advance(19)
    >>> progress.split().position, progress.finished
    ((20, 20), True)
    """

    __slots__ = ("next_offset", "partition", "split_id", "stop_offset")

    def __init__(self, split_id: str, next_offset: int, stop_offset: int | None) -> None:
        self.split_id = split_id
        self.partition: KafkaTopicPartition = partition_of(split_id)
        self.next_offset = next_offset
        self.stop_offset = stop_offset

    @classmethod
    def of(cls, split: SourceSplit) -> PartitionProgress:
        """Return the progress of a split."""
        next_offset, stop_offset = split.position
        return cls(split.split_id, next_offset, stop_offset)

    def split(self) -> SourceSplit:
        """Return the split with its position."""
        return SourceSplit(self.split_id, (self.next_offset, self.stop_offset))

    @property
    def finished(self) -> bool:
        """Whether the partition is read up to its stop."""
        return self.stop_offset is not None and self.next_offset >= self.stop_offset

    def advance(self, offset: int) -> None:
        """Note that the record at this offset is read."""
        self.next_offset = offset + 1

    def end_reached(self, offset: int) -> None:
        """Note the end of the partition: there is no record before this offset that was not returned."""
        if self.stop_offset is not None and offset >= self.stop_offset:
            self.next_offset = max(self.next_offset, self.stop_offset)

    def before_stop(self, messages: list[Any]) -> list[Any]:
        """Return the messages before the stop; if one is behind it, the partition is finished."""
        stop = self.stop_offset
        if stop is None or messages[-1].offset() < stop:
            return messages
        self.next_offset = max(self.next_offset, stop)
        return [message for message in messages if message.offset() < stop]


def positions(progress: Iterable[PartitionProgress]) -> dict[KafkaTopicPartition, int]:
    """Return the next offsets that are known, by partition, which a group commits."""
    return {each.partition: each.next_offset for each in progress if each.next_offset >= 0}
