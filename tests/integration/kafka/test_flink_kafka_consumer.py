"""`FlinkKafkaConsumer` as text S0 describes it: union list state, commits that wait for checkpoints, commit modes."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from rekindle.common import SimpleStringSchema, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.kafka import FlinkKafkaConsumer, KafkaTopicPartition, OffsetCommitMode
from rekindle.datastream.connectors.kafka.consumer_offsets import offsets_state_descriptor
from rekindle.datastream.data_stream import DataStream
from rekindle.datastream.functions import CheckpointedFunction, MapFunction
from rekindle.testing import InProcessJob
from tests.support.kafka_topics import add_partitions, collect, committed, fill, readers_of, wait_for_commits
from tests.support.waiting import wait_until
from tools.servers.kafka_access import KafkaAccess

Topic = Callable[..., str]


def consumer_of(kafka: KafkaAccess, topics: Any, **properties: Any) -> FlinkKafkaConsumer[str]:
    dotted = {name.replace("_", "."): value for name, value in properties.items()}
    consumer: FlinkKafkaConsumer[str] = FlinkKafkaConsumer(
        topics, SimpleStringSchema(), {"bootstrap.servers": kafka.bootstrap_servers, **dotted}
    )
    consumer.set_start_from_earliest()
    return consumer


def stream_of(consumer: Any, parallelism: int = 1, checkpoints: bool = True) -> DataStream:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    if checkpoints:
        env.enable_checkpointing(10)
    return env.add_source(consumer, "consumer").uid("kafka")


def reader_of(job: InProcessJob) -> Any:
    return readers_of(job)[0]


@pytest.fixture
def group() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def ten(kafka: KafkaAccess, topic: Topic) -> str:
    """A topic with two partitions: a0 to a9, and b0 to b4; the records of the first have the times 1000 to 1009."""
    name = topic(partitions=2)
    for n in range(10):
        fill(kafka, name, 0, [f"a{n}"], timestamp=1000 + n)
    fill(kafka, name, 1, [f"b{n}" for n in range(5)])
    return name


class ReadsOffsets(MapFunction, CheckpointedFunction):
    """Emits what the union list state of the consumer holds."""

    def initialize_state(self, context: Any) -> None:
        state = context.get_operator_state_store().get_union_list_state(offsets_state_descriptor())
        self.offsets = sorted(state.get())

    def snapshot_state(self, context: Any) -> None:
        pass

    def map(self, value: Any) -> Any:
        return self.offsets


# -- partitions and topics that appear while the job is down ----------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_restore_reads_new_partitions_and_topics_from_their_beginning(
    kafka: KafkaAccess, topic: Topic, parallelism: int
) -> None:
    name = topic()
    fill(kafka, name, 0, ["old"])
    pattern = re.compile(f"{name}.*")
    job = InProcessJob.of(stream_of(consumer_of(kafka, pattern).set_start_from_latest(), 2))
    fill(kafka, name, 0, ["a0"])
    assert collect(job, 1) == ["a0"]
    checkpoint = job.checkpoint()
    job.kill()
    add_partitions(kafka, name, 2)
    fill(kafka, name, 0, ["a1"])
    fill(kafka, name, 1, ["b0", "b1"])
    fill(kafka, kafka.create_topic(f"{name}-more"), 0, ["c0", "c1"])

    consumer = consumer_of(kafka, pattern).set_start_from_latest()
    restored = InProcessJob.of(stream_of(consumer, parallelism), restore=checkpoint)
    assert sorted(collect(restored, 5)) == ["a1", "b0", "b1", "c0", "c1"]
    later = restored.checkpoint()
    restored.kill()

    again = InProcessJob.of(stream_of(consumer, 2), restore=later)
    fill(kafka, name, 1, ["b2"])
    assert collect(again, 1) == ["b2"]  # and the others not again
    again.kill()


# -- state ------------------------------------------------------------------------------------------------------------


def test_a_first_run_says_that_there_is_no_state(
    kafka: KafkaAccess, ten: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "rekindle.kafka"):
        job = InProcessJob.of(stream_of(consumer_of(kafka, ten)))
        assert reader_of(job).offsets.restored_state is None
        job.kill()
    assert re.search(r"Consumer subtask 0 of .*consumer.* has no restore state", caplog.text)


def test_the_state_holds_the_offset_of_the_last_record_and_is_restored_in_order(kafka: KafkaAccess, ten: str) -> None:
    job = InProcessJob.of(stream_of(consumer_of(kafka, ten), 2))
    assert len(collect(job, 15)) == 15
    checkpoint = job.checkpoint()
    job.kill()
    fill(kafka, ten, 1, ["b5"])

    restored = InProcessJob.of(stream_of(consumer_of(kafka, ten), 1), restore=checkpoint)

    state = reader_of(restored).offsets.restored_state
    assert list(state.items()) == [(KafkaTopicPartition(ten, 0), 9), (KafkaTopicPartition(ten, 1), 4)]
    assert collect(restored, 1) == ["b5"]
    restored.kill()


def test_a_checkpointed_function_of_the_same_uid_reads_the_state(kafka: KafkaAccess, ten: str) -> None:
    job = InProcessJob.of(stream_of(consumer_of(kafka, ten), 2))
    collect(job, 15)
    checkpoint = job.checkpoint()
    job.kill()

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.enable_checkpointing(10)
    stream = env.from_collection([1]).map(ReadsOffsets()).uid("kafka")

    assert InProcessJob.of(stream, restore=checkpoint).run() == [[((ten, 0), 9), ((ten, 1), 4)]]


def test_a_snapshot_before_the_first_fetch_stores_the_start_and_puts_the_restored_up_for_commit(
    kafka: KafkaAccess, ten: str, group: str
) -> None:
    job = InProcessJob.of(stream_of(consumer_of(kafka, ten, group_id=group)))
    reader = reader_of(job)
    reader.snapshot_state(1)
    assert list(reader.offsets._state.get()) == [((ten, 0), -1), ((ten, 1), -1)]
    reader.notify_checkpoint_complete(1)
    assert reader._feed is None  # nothing restored commits nothing
    collect(job, 15)
    checkpoint = job.checkpoint(complete=False)
    job.kill()

    restored = reader_of(InProcessJob.of(stream_of(consumer_of(kafka, ten, group_id=group)), restore=checkpoint))
    restored.snapshot_state(7)
    assert list(restored.offsets._state.get()) == [((ten, 0), 9), ((ten, 1), 4)]
    assert committed(kafka, group, ten) is None
    restored.notify_checkpoint_complete(7)
    wait_until(lambda: committed(kafka, group, ten, 1) == 5, "the restored offset is committed", 30)
    restored.close()


def test_a_snapshot_of_a_closed_source_changes_nothing(
    kafka: KafkaAccess, ten: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = InProcessJob.of(stream_of(consumer_of(kafka, ten, group_id=group)))
    collect(job, 15)
    reader = reader_of(job)
    before = list(reader.offsets._state.get())
    reader.close()
    with caplog.at_level(logging.DEBUG, "rekindle.kafka"):
        reader.snapshot_state(5)
    assert "snapshotState() called on closed source" in caplog.messages
    assert list(reader.offsets._state.get()) == before
    assert 5 not in reader.pending_offsets_to_commit


# -- commits ----------------------------------------------------------------------------------------------------------


def test_offsets_are_committed_at_the_completion_and_not_before(kafka: KafkaAccess, ten: str, group: str) -> None:
    job = InProcessJob.of(stream_of(consumer_of(kafka, ten, group_id=group)))
    collect(job, 15)
    aborted, taken = job.checkpoint(complete=False), job.checkpoint(complete=False)
    reader = reader_of(job)
    assert list(reader.pending_offsets_to_commit) == [aborted.id, taken.id]
    job.abort(aborted)
    assert list(reader.pending_offsets_to_commit) == [aborted.id, taken.id]  # an abort changes nothing
    wait_for_commits(kafka, reader, group)
    assert committed(kafka, group, ten) is None

    job.complete(taken)
    wait_until(lambda: committed(kafka, group, ten) == 10, "the group has the next offset", 30)
    assert list(reader.pending_offsets_to_commit) == []  # older entries go
    job.kill()


def test_an_unknown_checkpoint_is_a_warning_and_at_most_100_wait(
    kafka: KafkaAccess, ten: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = InProcessJob.of(stream_of(consumer_of(kafka, ten, group_id=group)))
    reader = reader_of(job)
    for checkpoint_id in range(1, 103):
        reader.snapshot_state(checkpoint_id)
    assert list(reader.pending_offsets_to_commit) == list(range(3, 103))
    reader.notify_checkpoint_complete(1)
    assert "received confirmation for unknown checkpoint id 1." in caplog.text
    assert len(reader.pending_offsets_to_commit) == 100
    job.kill()


@pytest.mark.parametrize(
    ("checkpoints", "on_checkpoints", "auto", "mode"),
    [
        (True, True, "true", OffsetCommitMode.ON_CHECKPOINTS),
        (True, True, "false", OffsetCommitMode.ON_CHECKPOINTS),
        (True, False, "true", OffsetCommitMode.DISABLED),
        (False, True, "true", OffsetCommitMode.KAFKA_PERIODIC),
        (False, True, "false", OffsetCommitMode.DISABLED),
    ],
)
def test_the_commit_mode_is_chosen_as_in_flink(
    kafka: KafkaAccess, ten: str, checkpoints: bool, on_checkpoints: bool, auto: str, mode: OffsetCommitMode
) -> None:
    consumer = consumer_of(kafka, ten, group_id="g", enable_auto_commit=auto)
    consumer.set_commit_offsets_on_checkpoints(on_checkpoints)
    job = InProcessJob.of(stream_of(consumer, checkpoints=checkpoints))
    assert reader_of(job).offset_commit_mode is mode
    job.kill()


def test_without_checkpoints_the_client_commits_by_itself(kafka: KafkaAccess, ten: str, group: str) -> None:
    consumer = consumer_of(kafka, ten, group_id=group, auto_commit_interval_ms=50)
    job = InProcessJob.of(stream_of(consumer, checkpoints=False))
    collect(job, 15)
    wait_until(lambda: job.epoch() == [] and committed(kafka, group, ten) == 10, "the client commits", 30)
    job.kill()


# -- start ------------------------------------------------------------------------------------------------------------


def test_the_start_modes(kafka: KafkaAccess, ten: str, group: str) -> None:
    client = Consumer(kafka.client(group_id=group))
    client.commit(offsets=[TopicPartition(ten, 0, 8)], asynchronous=False)
    client.close()

    def first(consumer: Any) -> dict[str, Any]:
        return {split.split_id[-1]: split.position[0] for split in consumer.create_splits(1)}

    consumer = FlinkKafkaConsumer(
        [ten], SimpleStringSchema(), {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group}
    )
    assert first(consumer) == {"0": 8, "1": 5}  # the group's offset, and the end where it has none
    assert first(consumer.set_start_from_earliest()) == {"0": 0, "1": 0}
    assert first(consumer.set_start_from_latest()) == {"0": 10, "1": 5}
    assert first(consumer.set_start_from_timestamp(1003)) == {"0": 3, "1": 0}
    assert first(consumer.set_start_from_specific_offsets({KafkaTopicPartition(ten, 1): 2})) == {"0": 8, "1": 2}
    assert first(consumer.set_start_from_group_offsets()) == {"0": 8, "1": 5}


@pytest.mark.parametrize("filters", [True, False])
def test_restored_partitions_of_other_topics_are_left_out_unless_told(
    kafka: KafkaAccess, ten: str, topic: Topic, filters: bool
) -> None:
    other = topic()
    job = InProcessJob.of(stream_of(consumer_of(kafka, [ten, other])))
    checkpoint = job.checkpoint()
    job.kill()
    fill(kafka, other, 0, ["of the other topic"])

    consumer = consumer_of(kafka, ten)
    if not filters:
        consumer.disable_filter_restored_partitions_with_subscribed_topics()
    restored = InProcessJob.of(stream_of(consumer), restore=checkpoint)

    rest = 15 - len(checkpoint.results)
    assert ("of the other topic" in collect(restored, rest + (not filters))) is not filters
    restored.kill()


def test_the_consumers_own_strategy_gives_a_watermark_per_partition(kafka: KafkaAccess, ten: str) -> None:
    consumer = consumer_of(kafka, ten)
    consumer.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    stream = stream_of(consumer)

    assert stream.get_type().__class__.__name__ == SimpleStringSchema().get_produced_type().__class__.__name__
    job = InProcessJob.of(stream)
    collect(job, 15)
    operator: Any = next(iter(job.tasks.values()))._head.operator
    times = operator.times
    assert sorted(times.splits.splits()) == [f"{ten}-0", f"{ten}-1"]
    assert times.watermark == 1008  # that of partition 0, which is behind
    job.kill()
