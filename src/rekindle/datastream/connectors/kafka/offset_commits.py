"""When a source commits its offsets to Kafka, and which ones wait for their checkpoint. Pure.

Offsets in Kafka show others how far the job is. Rekindle itself goes on from its checkpoints only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition

#: The number of checkpoints that may wait for their completion; then the oldest is forgotten.
MAX_NUM_PENDING_CHECKPOINTS = 100

Offsets = Mapping[KafkaTopicPartition, int]


class OffsetCommitMode(Enum):
    """When offsets are committed to Kafka."""

    #: Never.
    DISABLED = "disabled"
    #: When a checkpoint is complete.
    ON_CHECKPOINTS = "on checkpoints"
    #: By Kafka's client, every `auto.commit.interval.ms`.
    KAFKA_PERIODIC = "kafka periodic"


def offset_commit_mode(auto_commit: bool, commit_on_checkpoints: bool, checkpointing: bool) -> OffsetCommitMode:
    """Choose the mode as Flink does: with checkpoints `enable.auto.commit` has no effect.

    >>> offset_commit_mode(auto_commit=True, commit_on_checkpoints=True, checkpointing=True).name
    'ON_CHECKPOINTS'
    >>> offset_commit_mode(auto_commit=True, commit_on_checkpoints=True, checkpointing=False).name
    'KAFKA_PERIODIC'
    """
    if checkpointing:
        return OffsetCommitMode.ON_CHECKPOINTS if commit_on_checkpoints else OffsetCommitMode.DISABLED
    return OffsetCommitMode.KAFKA_PERIODIC if auto_commit else OffsetCommitMode.DISABLED


class PendingOffsets:
    """The offsets of checkpoints that are not complete yet, oldest first; at most 100 of them.

    >>> pending = PendingOffsets()
    >>> for checkpoint_id in (1, 2, 3):
    ...     pending.put(checkpoint_id, {KafkaTopicPartition("orders", 0): checkpoint_id * 10})
    >>> pending.take(2)
    {KafkaTopicPartition(topic='orders', partition=0): 20}
    >>> list(pending)
    [3]
    """

    def __init__(self) -> None:
        self._by_checkpoint: dict[int, Offsets | None] = {}

    def put(self, checkpoint_id: int, offsets: Offsets | None) -> None:
        """Keep a checkpoint's offsets; None says that there is nothing to commit."""
        self._by_checkpoint[checkpoint_id] = offsets
        while len(self._by_checkpoint) > MAX_NUM_PENDING_CHECKPOINTS:
            del self._by_checkpoint[next(iter(self._by_checkpoint))]

    def take(self, checkpoint_id: int) -> Offsets | None:
        """Remove a checkpoint's offsets and those of older ones, and return them."""
        for older in [each for each in self._by_checkpoint if each < checkpoint_id]:
            del self._by_checkpoint[older]
        return self._by_checkpoint.pop(checkpoint_id)

    def __contains__(self, checkpoint_id: object) -> bool:
        return checkpoint_id in self._by_checkpoint

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._by_checkpoint))

    def __len__(self) -> int:
        return len(self._by_checkpoint)
