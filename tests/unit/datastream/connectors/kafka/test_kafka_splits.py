"""The pure parts of the Kafka source: who reads a partition, progress, pending offsets, assigners that read times."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.datastream.connectors.base import SourceSplit
from rekindle.datastream.connectors.kafka.consumer_offsets import EARLIEST_OFFSET, last_offsets, offsets_for_kafka
from rekindle.datastream.connectors.kafka.offset_commits import MAX_NUM_PENDING_CHECKPOINTS, PendingOffsets
from rekindle.datastream.connectors.kafka.offsets_initializers import KafkaOffsetsInitializer
from rekindle.datastream.connectors.kafka.partition_progress import PartitionProgress, positions
from rekindle.datastream.connectors.kafka.partitions import (
    BEGINNING,
    KafkaTopicPartition,
    owner_of,
    partition_of,
    split_id_of,
)
from rekindle.errors import GraphError

TOPICS = st.text("abc.-_019", min_size=1, max_size=20)


@given(TOPICS, st.integers(1, 40), st.integers(1, 12))
def test_the_partitions_of_a_topic_are_balanced_at_every_parallelism(
    topic: str, partitions: int, subtasks: int
) -> None:
    owned = Counter(owner_of(KafkaTopicPartition(topic, number), subtasks) for number in range(partitions))
    counts = [owned[subtask] for subtask in range(subtasks)]
    assert max(counts) - min(counts) <= 1


@given(TOPICS, st.integers(0, 1000))
def test_a_split_id_names_its_partition(topic: str, number: int) -> None:
    partition = KafkaTopicPartition(topic, number)
    assert partition_of(split_id_of(partition)) == partition


def test_the_owner_is_flinks() -> None:
    # Java: ("t".hashCode() * 31 & 0x7fffffff) % 5 is 1, that of "orders" (a negative hash) is 2.
    assert owner_of(KafkaTopicPartition("t", 0), 5) == (ord("t") * 31) % 5
    java_hash = -1008770331
    assert owner_of(KafkaTopicPartition("orders", 0), 5) == ((java_hash * 31) & 0x7FFFFFFF) % 5


@pytest.mark.parametrize(("end", "finished"), [(19, False), (20, True), (25, True)])
def test_the_end_of_a_partition_finishes_it_only_at_its_stop(end: int, finished: bool) -> None:
    progress = PartitionProgress.of(SourceSplit("t-0", (17, 20)))
    progress.end_reached(end)
    assert progress.finished is finished
    assert progress.next_offset == (20 if finished else 17)


def test_only_known_offsets_are_committed_and_the_state_holds_the_last_record() -> None:
    read = PartitionProgress.of(SourceSplit("t-0", (17, None)))
    new = PartitionProgress.of(SourceSplit("t-1", (BEGINNING, None)))
    assert positions([read, new]) == {KafkaTopicPartition("t", 0): 17}
    state = last_offsets([read, new])
    assert list(state.values()) == [16, EARLIEST_OFFSET]
    assert offsets_for_kafka(state) == {KafkaTopicPartition("t", 0): 17}
    assert offsets_for_kafka(None) == {}


def test_the_oldest_of_more_than_100_pending_checkpoints_is_dropped() -> None:
    pending = PendingOffsets()
    for checkpoint_id in range(MAX_NUM_PENDING_CHECKPOINTS + 5):
        pending.put(checkpoint_id, {})
    assert list(pending) == list(range(5, MAX_NUM_PENDING_CHECKPOINTS + 5))
    pending.take(50)
    assert next(iter(pending)) == 51


@pytest.mark.parametrize("wrong", [-1, "soon", True, None])
def test_what_is_no_time_or_no_offset_is_refused(wrong: Any) -> None:
    with pytest.raises(GraphError, match="takes milliseconds"):
        KafkaOffsetsInitializer.timestamp(wrong)
    with pytest.raises(GraphError, match="must be 0 or more"):
        KafkaOffsetsInitializer.offsets({KafkaTopicPartition("t", 0): wrong})
    with pytest.raises(GraphError, match="keys are KafkaTopicPartition"):
        KafkaOffsetsInitializer.offsets({("t", 0): 1})  # type: ignore[dict-item]
