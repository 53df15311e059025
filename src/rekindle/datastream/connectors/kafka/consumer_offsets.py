"""The offsets of a `FlinkKafkaConsumer` in union list state, and those that wait to be committed to Kafka.

The state holds the offset of the last record that was read; a group's offset in Kafka is that of the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rekindle.common.typeinfo import Types
from rekindle.datastream.connectors.base import SourceReaderContext
from rekindle.datastream.connectors.kafka.client_properties import KAFKA_LOG
from rekindle.datastream.connectors.kafka.offset_commits import PendingOffsets
from rekindle.datastream.connectors.kafka.partition_progress import PartitionProgress
from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition
from rekindle.datastream.state import ListState
from rekindle.datastream.state_descriptors import ListStateDescriptor

#: The name of the state.
OFFSETS_STATE_NAME = "topic-partition-offset-states"
#: In place of an offset: the partition is read from its beginning, and nothing of it was read yet.
EARLIEST_OFFSET = -915623761775

LastOffsets = dict[KafkaTopicPartition, int]


def offsets_state_descriptor() -> ListStateDescriptor:
    """Describe the state: elements are ((topic, partition), offset of the last record read).

    >>> offsets_state_descriptor().get_name()
    'topic-partition-offset-states'
    """
    partition = Types.TUPLE([Types.STRING(), Types.INT()])
    return ListStateDescriptor(OFFSETS_STATE_NAME, Types.TUPLE([partition, Types.LONG()]))


def last_offsets(progress: Iterable[PartitionProgress]) -> LastOffsets:
    """Return the offset of the last record that was read, by partition.

    >>> from rekindle.datastream.connectors.base import SourceSplit
    >>> last_offsets([PartitionProgress.of(SourceSplit("orders-0", (17, None)))])
    {KafkaTopicPartition(topic='orders', partition=0): 16}
    """
    return {each.partition: each.next_offset - 1 if each.next_offset >= 0 else EARLIEST_OFFSET for each in progress}


def offsets_for_kafka(last: Mapping[KafkaTopicPartition, int] | None) -> dict[KafkaTopicPartition, int]:
    """Return what a group commits: the offset after the last record read.

    >>> offsets_for_kafka({KafkaTopicPartition("orders", 0): 16, KafkaTopicPartition("orders", 1): EARLIEST_OFFSET})
    {KafkaTopicPartition(topic='orders', partition=0): 17}
    """
    return {partition: offset + 1 for partition, offset in (last or {}).items() if offset >= -1}


class ConsumerOffsets:
    """Keeps the consumer's state over checkpoints."""

    def __init__(self, context: SourceReaderContext, name: str) -> None:
        self._name = name
        self._state: ListState[Any] | None = None
        #: The offsets of all subtasks in the restored checkpoint, ordered by topic and partition; None without one.
        self.restored_state: LastOffsets | None = None
        self.pending_offsets_to_commit = PendingOffsets()
        if context.operator_state_store is not None:
            self._state = context.operator_state_store.get_union_list_state(offsets_state_descriptor())
        if context.is_restored() and self._state is not None:
            self.restored_state = {
                KafkaTopicPartition(*partition): offset for partition, offset in sorted(self._state.get())
            }
            KAFKA_LOG.info("%s restored state: %s.", name, self.restored_state)
        else:
            KAFKA_LOG.info("%s has no restore state.", name)

    def store(self, offsets: LastOffsets) -> None:
        """Replace the state by these offsets."""
        if self._state is not None:
            self._state.update([(tuple(partition), offset) for partition, offset in offsets.items()])

    def take_pending(self, checkpoint_id: int) -> dict[KafkaTopicPartition, int]:
        """Return what to commit for a completed checkpoint; older ones are forgotten, an unknown one is a warning."""
        pending = self.pending_offsets_to_commit
        if checkpoint_id not in pending:
            KAFKA_LOG.warning("%s received confirmation for unknown checkpoint id %s.", self._name, checkpoint_id)
            return {}
        return offsets_for_kafka(pending.take(checkpoint_id))
