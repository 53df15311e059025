"""When a source commits its offsets to Kafka, and which ones wait for their checkpoint. Pure.

Offsets in Kafka show others how far the job is. Rekindle itself goes on from its checkpoints only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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


class CommitsInTurn:
    """Sends one commit at a time; of those that wait for its answer, the newest offsets remain.

    Kafka's client repeats a commit that the group's coordinator was not ready for, also after a newer one: with two
    under way the older offsets could be the last ones that count.

    >>> sent = []
    >>> commits = CommitsInTurn(sent.append)
    >>> orders = KafkaTopicPartition("orders", 0)
    >>> for offset in (10, 20, 30):
    ...     commits.commit({orders: offset})
    >>> [offsets[orders] for offsets in sent]
    [10]
    >>> commits.answered()
    >>> [offsets[orders] for offsets in sent], commits.waits
    ([10, 30], False)
    """

    def __init__(self, send: Callable[[Offsets], None]) -> None:
        self._send = send
        self._under_way = False
        self._waiting: dict[KafkaTopicPartition, int] = {}

    @property
    def waits(self) -> bool:
        """Whether offsets wait for the answer to an older commit."""
        return bool(self._waiting)

    @property
    def under_way(self) -> bool:
        """Whether a commit has no answer yet."""
        return self._under_way

    def commit(self, offsets: Offsets) -> None:
        """Send a commit, or keep its offsets until the one under way is answered."""
        if self._under_way:
            self._waiting.update(offsets)
        else:
            self._send(offsets)
            self._under_way = True

    def answered(self) -> None:
        """Hear that the commit under way has succeeded or failed."""
        self._under_way = False
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            self.commit(waiting)
