"""What the Kafka source makes of records: decoding, records that cannot be decoded, event time, pauses, metrics."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from typing import Any

import pytest

from rekindle.common import Duration, WatermarkStrategy
from rekindle.common.watermark_strategy import TimestampAssigner
from rekindle.datastream import OutputTag
from rekindle.datastream.connectors.base import Batch, SourceReader, SourceReaderContext
from rekindle.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    PoisonRecordHandling,
)
from rekindle.datastream.functions import ProcessFunction
from rekindle.testing import InProcessJob
from rekindle.testing.manual_clock import ManualClock
from tests.support.kafka_topics import (
    collect,
    committed,
    fill,
    metrics_of,
    read,
    readers_of,
    source_of,
    stream_of,
    wait_for_commits,
)
from tests.support.polled import polled_batch
from tests.support.waiting import wait_until
from tools.servers.kafka_access import KafkaAccess

Topic = Callable[..., str]
LATEST = KafkaOffsetsInitializer.latest()


# -- decoding ---------------------------------------------------------------------------------------------------------


def test_a_function_decodes_values_and_none_and_tombstones_are_left_out(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic()
    fill(kafka, name, 0, [1, None, 2, 3])

    builder = source_of(kafka, name).set_value_only_deserializer(lambda value: int(value) if value != b"2" else None)

    assert read(builder.set_bounded(LATEST).build()) == [1, 3]


def test_the_whole_record(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic(partitions=2)
    fill(kafka, name, 1, ["first"])
    fill(kafka, name, 1, [b"\xff", None], key=b"k", headers=[("h", b"1"), ("h", None)], timestamp=77)

    records = read(source_of(kafka, name).set_deserializer(lambda record: record).set_bounded(LATEST).build())

    expected = KafkaRecord(b"\xff", b"k", (("h", b"1"), ("h", None)), name, 1, 1, 77)
    assert records[1:] == [expected, KafkaRecord(None, b"k", (("h", b"1"), ("h", None)), name, 1, 2, 77)]
    assert (records[0].key, records[0].headers, records[0].offset) == (None, (), 0)


class KeyOnly(KafkaRecordDeserializationSchema):
    def open(self, context: Any = None) -> None:
        self.opened = True

    def deserialize(self, record: KafkaRecord) -> Any:
        assert self.opened
        return record.key


def test_a_schema_of_whole_records(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic()
    fill(kafka, name, 0, ["x"], key=b"k")
    assert read(source_of(kafka, name).set_deserializer(KeyOnly()).set_bounded(LATEST).build()) == [b"k"]


# -- records that cannot be decoded -----------------------------------------------------------------------------------


@pytest.fixture
def poisoned(kafka: KafkaAccess, topic: Topic) -> str:
    name = topic()
    fill(kafka, name, 0, [1, "two", 3])
    return name


def test_a_record_that_cannot_be_decoded_fails_the_job_by_name(kafka: KafkaAccess, poisoned: str) -> None:
    source = source_of(kafka, poisoned).set_value_only_deserializer(int).set_bounded(LATEST).build()
    with pytest.raises(Exception) as failure:
        read(source)
    assert str(failure.value.__cause__).startswith(
        f"The record at offset 1 of partition 0 of Kafka topic '{poisoned}' cannot be decoded: invalid literal for int"
    )


def test_or_it_is_left_out_and_counted(kafka: KafkaAccess, poisoned: str) -> None:
    builder = source_of(kafka, poisoned).set_value_only_deserializer(int)
    job = InProcessJob.of(stream_of(builder.set_poison_record_handling(PoisonRecordHandling.skip()).build()))
    assert collect(job, 2) == [1, 3]
    assert metrics_of(job)["numRecordsInErrors"] == 1
    job.kill()


@pytest.mark.parametrize("strategy", [None, WatermarkStrategy.for_monotonous_timestamps()])
def test_or_it_goes_to_a_side_output_with_its_bytes(
    kafka: KafkaAccess, poisoned: str, strategy: WatermarkStrategy | None
) -> None:
    tag = OutputTag("poison")
    builder = source_of(kafka, poisoned).set_value_only_deserializer(int).set_bounded(LATEST)
    source = builder.set_poison_record_handling(PoisonRecordHandling.side_output(tag)).build()

    [record] = read(source, strategy=strategy, shape=lambda stream: stream.get_side_output(tag))

    assert (record.value, record.topic, record.offset) == (b"two", poisoned, 1)


# -- event time -------------------------------------------------------------------------------------------------------


class EventTime(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_a_partition_whose_records_wait_behind_anothers_does_not_become_idle(kafka: KafkaAccess, topic: Topic) -> None:
    """Epochs take longer than the idle timeout, and the records of one partition use up their budget."""
    name = topic(partitions=2)
    fill(kafka, name, 0, range(2000), timestamp=9000)
    fill(kafka, name, 1, ["slow"] * 100, timestamp=500)
    clock = ManualClock()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(10))
    stream = stream_of(
        source_of(kafka, name).set_bounded(LATEST).build(),
        strategy=strategy,
        shape=lambda stream: stream.process(EventTime()),
    )
    job = InProcessJob.of(stream, clock, max_records=50)
    seen = []
    while not job.finished:
        seen += job.epoch()
        clock.advance(11_000)
    job.close()
    late = [value for value, time, watermark in seen if time <= watermark]
    assert (len(seen), late) == (2100, [])


def waiting_splits(reader: SourceReader[Any]) -> Collection[str]:
    waiting = reader.waiting_splits()
    assert waiting is not None
    return waiting


def test_a_reader_knows_which_partitions_have_records_left(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic(partitions=3)
    fill(kafka, name, 0, range(10))
    fill(kafka, name, 1, range(10))
    source = source_of(kafka, name).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    assert len(waiting_splits(reader)) == 3, "nothing is known before the first fetch"
    wait_until(reader.is_available, "records", 60)
    splits = polled_batch(reader, 3).splits
    assert splits is not None
    assert splits[0][0] in waiting_splits(reader)
    wait_until(
        lambda: not polled_batch(reader, 100).records and not reader.waiting_splits(), "the end of the records", 60
    )
    fill(kafka, name, 1, range(10))
    wait_until(lambda: reader.waiting_splits() == [f"{name}-1"], "new records", 60)
    reader.close()


def test_records_have_kafkas_time_and_an_idle_partition_holds_back_nothing(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic(partitions=2)
    fill(kafka, name, 0, ["a"], timestamp=1000)
    fill(kafka, name, 1, ["b"], timestamp=500)
    clock = ManualClock()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(10))
    source = source_of(kafka, name).build()
    job = InProcessJob.of(stream_of(source, strategy=strategy, shape=lambda stream: stream.process(EventTime())), clock)
    assert sorted((value, time) for value, time, _ in collect(job, 2)) == [("a", 1000), ("b", 500)]
    fill(kafka, name, 0, ["c"], timestamp=2000)
    assert collect(job, 1) == [("c", 2000, 499)]  # partition 1 is behind

    clock.advance(9_000)
    fill(kafka, name, 0, ["d"], timestamp=3000)
    assert collect(job, 1) == [("d", 3000, 499)]
    clock.advance(9_000)
    job.epoch()
    fill(kafka, name, 0, ["e"], timestamp=4000)
    assert collect(job, 1) == [("e", 4000, 2999)]  # partition 1 is idle now
    job.kill()


class OfRecord(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


class AfterKafka(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return record_timestamp + 1


@pytest.mark.parametrize(("assigner", "needed", "time"), [(OfRecord(), False, 7), (AfterKafka(), True, 1001)])
def test_kafkas_times_are_only_asked_for_if_something_reads_them(
    kafka: KafkaAccess, topic: Topic, assigner: TimestampAssigner, needed: bool, time: int
) -> None:
    name = topic()
    fill(kafka, name, 0, ["7"], timestamp=1000)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    source = source_of(kafka, name).build()
    job = InProcessJob.of(stream_of(source, strategy=strategy, shape=lambda stream: stream.process(EventTime())))

    assert collect(job, 1)[0][:2] == ("7", time)
    assert readers_of(job)[0]._context.needs_timestamps is needed
    job.kill()


def test_a_paused_partition_loses_and_reorders_nothing(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic(partitions=2)
    for partition in range(2):
        fill(kafka, name, partition, [f"{partition}:{n}" for n in range(1000)])
    source = source_of(kafka, name).set_bounded(LATEST).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    wait_until(reader.is_available, "records", 30)
    records: list[str] = []
    while sum(record.startswith("0") for record in records) < 10:
        records += polled_batch(reader, 7).records
    before = [record for record in records if record.startswith("0")]

    reader.pause_splits([f"{name}-0"])
    while sum(record.startswith("1") for record in records) < 1000:
        records += polled_batch(reader, 100).records
    assert [record for record in records if record.startswith("0")] == before
    reader.pause_splits([])
    while (batch := reader.poll(100)) is not None:
        assert isinstance(batch, Batch)
        records += batch.records

    for partition in range(2):
        assert [each for each in records if each[0] == str(partition)] == [f"{partition}:{n}" for n in range(1000)]
    reader.close()


def test_alignment_pauses_the_partition_that_is_ahead_and_loses_nothing(kafka: KafkaAccess, topic: Topic) -> None:
    name = topic(partitions=2)
    for partition, first in enumerate((0, 500_000)):
        for block in range(10):
            times = [first + 1000 * block + n for n in range(20)]
            fill(kafka, name, partition, [f"{partition}:{time}" for time in times], timestamp=times[0])
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    strategy = strategy.with_watermark_alignment("group", Duration.of_seconds(1), Duration.of_millis(0))
    source = source_of(kafka, name).set_bounded(LATEST).build()

    records = read(source, strategy=strategy, max_records=15)

    for partition in range(2):
        own = [record for record in records if record[0] == str(partition)]
        assert len(own) == 200
        assert own == sorted(own, key=lambda record: int(record[2:]))


# -- commits and metrics ----------------------------------------------------------------------------------------------


def test_the_group_and_the_metrics_show_offsets_and_lag(kafka: KafkaAccess, topic: Topic) -> None:
    name, group = topic(partitions=2), uuid.uuid4().hex
    fill(kafka, name, 0, range(10))
    source = source_of(kafka, name, group_id=group).build()
    job = InProcessJob.of(stream_of(source, checkpoints=True), max_records=4)
    readers_of(job)[0].is_available()
    wait_until(readers_of(job)[0].is_available, "records", 30)
    assert len(job.epoch()) == 4
    prefix = "KafkaSourceReader"
    values = metrics_of(job)
    assert (values["pendingRecords"], values[f"{prefix}.KafkaConsumer.records-lag-max"]) == (6, 6)
    assert values[f"{prefix}.topic.{name}.partition.0.currentOffset"] == 3
    assert values[f"{prefix}.topic.{name}.partition.0.committedOffset"] == -1

    taken = job.checkpoint(complete=False)
    job.epoch()
    wait_for_commits(kafka, readers_of(job)[0], group)
    assert committed(kafka, group, name) is None  # never at the snapshot
    job.complete(taken)
    wait_until(lambda: committed(kafka, group, name) == 8, "the group has the checkpoint's offset", 30)
    wait_until(
        lambda: job.epoch() is not None and metrics_of(job)[f"{prefix}.commitsSucceeded"] == 2,
        "the answer is counted",
        30,
    )
    values = metrics_of(job)
    assert values[f"{prefix}.topic.{name}.partition.0.committedOffset"] == 8
    assert values[f"{prefix}.commitsFailed"] == 0
    assert values["pendingRecords"] == 0
    described = kafka.consumer_groups_describe(group)
    assert any(line.split()[1:6] == [name, "0", "8", "10", "2"] for line in described.splitlines() if name in line)
    job.kill()


def test_no_older_commit_counts_after_a_newer_one(own_broker: Callable[..., Any]) -> None:
    """A group's coordinator that is not ready yet, as on a new broker, lets the client repeat commits in any order."""
    kafka, group, readers = own_broker(), uuid.uuid4().hex, 8
    name = kafka.create_topic("numbers", readers)
    for partition in range(readers):
        fill(kafka, name, partition, range(12))
    source = source_of(kafka, name, group_id=group).build()
    job = InProcessJob.of(stream_of(source, readers, checkpoints=True), max_records=2)
    until = time.monotonic() + 60
    read = 0
    while read < 12 * readers:
        assert time.monotonic() < until, f"{read} records came"
        taken = job.checkpoint()
        read += len(taken.results)
    job.checkpoint()
    job.close()
    assert [committed(kafka, group, name, partition) for partition in range(readers)] == [12] * readers


@pytest.mark.parametrize(
    "properties",
    [{}, {"group_id": "g", "commit_offsets_on_checkpoint": "false"}],
    ids=["no group", "switched off"],
)
def test_nothing_is_committed_without_a_group_or_if_switched_off(
    kafka: KafkaAccess, topic: Topic, properties: dict[str, Any]
) -> None:
    name = topic()
    fill(kafka, name, 0, [1])
    job = InProcessJob.of(stream_of(source_of(kafka, name, **properties).build(), checkpoints=True))
    collect(job, 1)
    job.checkpoint()
    collect(job, 0)
    assert committed(kafka, "g", name) is None
    assert metrics_of(job)["KafkaSourceReader.commitsSucceeded"] == 0
    job.kill()
