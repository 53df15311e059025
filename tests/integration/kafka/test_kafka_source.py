"""The Kafka source on a real broker: where it begins and stops, what it reads, and the positions in its checkpoints."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from rekindle.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from rekindle.datastream.connectors.kafka.partitions import owner_of
from rekindle.errors import ConnectorError
from rekindle.testing import InProcessJob
from tests.support.kafka_topics import add_partitions, collect, fill, read, readers_of, source_of, stream_of
from tools.servers.kafka_access import QUIET, KafkaAccess

Topic = Callable[..., str]
LATEST = KafkaOffsetsInitializer.latest()


@pytest.fixture
def numbers(kafka: KafkaAccess, topic: Topic) -> str:
    """A topic with two partitions: 0 to 9 with the times 1000 to 1009, and 10 to 19 with 1010 to 1019."""
    name = topic(partitions=2)
    for number in range(20):
        fill(kafka, name, number // 10, [number], timestamp=1000 + number)
    return name


def text(numbers: Any) -> list[str]:
    return sorted(map(str, numbers))


# -- start and stop ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (KafkaOffsetsInitializer.earliest(), range(20)),
        (KafkaOffsetsInitializer.latest(), []),
        (KafkaOffsetsInitializer.timestamp(1005), range(5, 20)),
        (KafkaOffsetsInitializer.timestamp(1013), range(13, 20)),
        (KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST), [7, 8, 9, *range(10, 20)]),
        (KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST), [7, 8, 9]),
    ],
    ids=[
        "earliest",
        "latest",
        "time in partition 0",
        "time in partition 1",
        "committed, earliest",
        "committed, latest",
    ],
)
def test_a_source_begins_where_it_is_told_to(
    kafka: KafkaAccess, numbers: str, start: KafkaOffsetsInitializer, expected: Any
) -> None:
    group = uuid.uuid4().hex
    commit(kafka, group, numbers, 7)

    source = source_of(kafka, numbers, group_id=group).set_starting_offsets(start).set_bounded(LATEST).build()

    assert sorted(read(source)) == text(expected)


def commit(kafka: KafkaAccess, group: str, topic: str, offset: int) -> None:
    consumer = Consumer(kafka.client(group_id=group))
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_a_source_begins_at_given_offsets_and_elsewhere_by_the_strategy(kafka: KafkaAccess, numbers: str) -> None:
    given = {KafkaTopicPartition(numbers, 0): 8}
    for strategy, expected in [
        (KafkaOffsetResetStrategy.EARLIEST, [8, 9, *range(10, 20)]),
        (KafkaOffsetResetStrategy.LATEST, [8, 9]),
    ]:
        start = KafkaOffsetsInitializer.offsets(given, strategy)
        source = source_of(kafka, numbers).set_starting_offsets(start).set_bounded(LATEST).build()
        assert sorted(read(source)) == text(expected)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        (KafkaOffsetsInitializer.latest(), range(20)),
        (KafkaOffsetsInitializer.timestamp(1013), [*range(10), 10, 11, 12]),
        (KafkaOffsetsInitializer.earliest(), []),
    ],
)
@pytest.mark.parametrize("bounded", [True, False])
def test_a_source_stops_where_it_is_told_to(
    kafka: KafkaAccess, numbers: str, stop: KafkaOffsetsInitializer, expected: Any, bounded: bool
) -> None:
    builder = source_of(kafka, numbers)
    source = (builder.set_bounded(stop) if bounded else builder.set_unbounded(stop)).build()

    assert sorted(read(source)) == text(expected)


def test_a_source_stops_at_given_offsets_also_between_two_records(kafka: KafkaAccess, numbers: str) -> None:
    stops = {KafkaTopicPartition(numbers, 0): 3, KafkaTopicPartition(numbers, 1): 10}
    source = source_of(kafka, numbers).set_bounded(KafkaOffsetsInitializer.offsets(stops)).build()

    assert sorted(read(source, parallelism=2)) == text([0, 1, 2, *range(10, 20)])


def test_a_partition_that_ends_with_the_mark_of_a_transaction_ends_too(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic()
    producer = Producer(kafka.client(transactional_id=name) | QUIET)
    producer.init_transactions()
    for committed in (True, False):
        producer.begin_transaction()
        producer.produce(name, str(committed).encode())
        producer.flush()
        producer.commit_transaction() if committed else producer.abort_transaction()

    assert read(source_of(kafka, name).set_bounded(LATEST).build()) == ["True"]
    seen = source_of(kafka, name, isolation_level="read_uncommitted").set_bounded(LATEST).build()
    assert read(seen) == ["True", "False"]


# -- which partitions -------------------------------------------------------------------------------------------------


def test_topics_by_list_by_pattern_and_partitions_by_set(kafka: KafkaAccess, numbers: str, topic: Topic) -> None:
    other = topic()
    fill(kafka, other, 0, ["other"])
    stem = numbers.rsplit("-", 1)[0]

    def values(builder: Any) -> list[str]:
        return sorted(read(builder.set_bounded(LATEST).build(), parallelism=2))

    assert values(source_of(kafka, numbers, other)) == sorted([*text(range(20)), "other"])
    assert values(source_of(kafka).set_topic_pattern(f"{stem}-.*")) == sorted([*text(range(20)), "other"])
    assert values(source_of(kafka).set_topic_pattern(f"{stem}-nothing")) == []
    assert values(source_of(kafka).set_partitions({KafkaTopicPartition(numbers, 1)})) == text(range(10, 20))


def test_what_is_missing_is_named(kafka: KafkaAccess, numbers: str) -> None:
    address = kafka.bootstrap_servers
    with pytest.raises(ConnectorError, match=f"Kafka at {address} has no topic 'nowhere': create"):
        source_of(kafka, "nowhere", numbers).build().create_splits(1)
    with pytest.raises(ConnectorError, match=f"has no partition '{numbers}-7'"):
        source_of(kafka).set_partitions({KafkaTopicPartition(numbers, 7)}).build().create_splits(1)
    start = KafkaOffsetsInitializer.committed_offsets()
    with pytest.raises(ConnectorError, match=f"The group 'new' has no committed offset for '{numbers}-0', "):
        source_of(kafka, numbers, group_id="new").set_starting_offsets(start).build().create_splits(1)


# -- checkpoints ------------------------------------------------------------------------------------------------------


def test_positions_survive_two_changes_of_the_parallelism_and_stay_balanced(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic(partitions=6)
    for partition in range(6):
        fill(kafka, name, partition, [f"{partition}:{n}" for n in range(40)])
    source = source_of(kafka, name).set_bounded(LATEST).build()
    records: list[str] = []
    checkpoint = None

    for parallelism in (2, 3, 1):
        job = InProcessJob.of(stream_of(source, parallelism), max_records=10, restore=checkpoint)
        assert len(splits_of(job)) == parallelism
        for splits in splits_of(job):
            assert len(splits) == 6 // parallelism
            assert all(owner_of(split, parallelism) == owner_of(splits[0], parallelism) for split in splits)
        records += [each for _ in range(3) for each in job.epoch()]
        checkpoint = job.checkpoint()
        records += checkpoint.results
        job.kill()
    records += InProcessJob.of(stream_of(source, 2), restore=checkpoint).run()

    assert sorted(records) == sorted(f"{partition}:{n}" for partition in range(6) for n in range(40))


def splits_of(job: InProcessJob) -> list[list[KafkaTopicPartition]]:
    return [list(reader._progress) for reader in readers_of(job)]


def test_what_counts_after_a_restore_is_the_checkpoint_not_the_group(kafka: KafkaAccess, numbers: str) -> None:
    group = uuid.uuid4().hex
    committed = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
    source = source_of(kafka, numbers, group_id=group).set_starting_offsets(committed).set_bounded(LATEST).build()
    job = InProcessJob.of(stream_of(source, checkpoints=True), max_records=5)
    first = collect_some(job, 5)
    checkpoint = job.checkpoint()
    job.kill()
    commit(kafka, group, numbers, 10)

    rest = InProcessJob.of(stream_of(source, checkpoints=True), restore=checkpoint).run()

    assert sorted(first + checkpoint.results + rest) == text(range(20))


def collect_some(job: InProcessJob, count: int) -> list[Any]:
    records: list[Any] = []
    while len(records) < count:
        records += job.epoch()
    return records


# -- discovery --------------------------------------------------------------------------------------------------------


def test_new_partitions_and_topics_are_read_from_their_beginning_and_once(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic()
    fill(kafka, name, 0, ["old"])
    builder = source_of(kafka, partition_discovery_interval_ms=1000).set_starting_offsets(LATEST)
    source = builder.set_topic_pattern(f"{name}.*").build()
    job = InProcessJob.of(stream_of(source, 2))
    assert collect(job, 0) == []

    add_partitions(kafka, name, 3)
    fill(kafka, name, 2, ["first of partition 2"])
    fill(kafka, kafka.create_topic(f"{name}-more"), 0, ["first of a new topic"])
    job.discover_splits()
    job.discover_splits()
    assert sorted(collect(job, 2)) == ["first of a new topic", "first of partition 2"]

    checkpoint = job.checkpoint()
    job.kill()
    restored = InProcessJob.of(stream_of(source, 3), restore=checkpoint)
    restored.discover_splits()
    fill(kafka, name, 1, ["first of partition 1"])
    fill(kafka, name, 2, ["second of partition 2"])
    assert sorted(collect(restored, 2)) == ["first of partition 1", "second of partition 2"]
    restored.kill()


def test_a_partition_found_after_the_checkpoint_is_read_from_its_beginning_after_a_restore(
    kafka: KafkaAccess, topic: Topic
) -> None:
    name = topic()
    source = source_of(kafka, name, partition_discovery_interval_ms=1000).set_starting_offsets(LATEST).build()
    job = InProcessJob.of(stream_of(source))
    checkpoint = job.checkpoint()
    add_partitions(kafka, name, 2)
    fill(kafka, name, 1, ["a"])
    job.discover_splits()
    assert collect(job, 1) == ["a"]
    job.kill()

    restored = InProcessJob.of(stream_of(source, 2), restore=checkpoint)
    restored.discover_splits()
    assert collect(restored, 1) == ["a"]
    restored.kill()


def test_a_restore_without_discovery_reads_new_partitions_from_their_beginning(
    kafka: KafkaAccess, topic: Topic
) -> None:
    name = topic()
    source = source_of(kafka, name, partition_discovery_interval_ms=-1).set_starting_offsets(LATEST).build()
    job = InProcessJob.of(stream_of(source))
    checkpoint = job.checkpoint()
    job.kill()
    add_partitions(kafka, name, 2)
    fill(kafka, name, 1, ["a"])

    restored = InProcessJob.of(stream_of(source, 2), restore=checkpoint)
    assert collect(restored, 1) == ["a"]
    restored.kill()


def test_the_interval_of_discovery_is_flinks(kafka: KafkaAccess) -> None:
    assert source_of(kafka, "t").build().discovery_interval_ms == 300_000
    assert source_of(kafka, "t", partition_discovery_interval_ms="1000").build().discovery_interval_ms == 1000
    assert source_of(kafka, "t", partition_discovery_interval_ms=-1).build().discovery_interval_ms is None
    bounded: KafkaSource[str] = source_of(kafka, "t", partition_discovery_interval_ms=9).set_bounded(LATEST).build()
    assert bounded.discovery_interval_ms is None
