"""For tests with a Kafka broker: fill topics, build sources, run jobs in this process, look at groups from outside."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from rekindle.common import SimpleStringSchema, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.kafka import KafkaSource, KafkaSourceBuilder, KafkaTopicPartition
from rekindle.datastream.data_stream import DataStream
from rekindle.testing import InProcessJob
from tests.support.waiting import wait_until
from tools.servers.kafka_access import QUIET, KafkaAccess

DEADLINE_S = 60.0


def fill(kafka: KafkaAccess, topic: str, partition: int, values: Iterable[Any], **fields: Any) -> None:
    """Append values to a partition, as text unless they are bytes or None."""
    producer = Producer(kafka.client() | QUIET)
    for value in values:
        encoded = value if value is None or isinstance(value, bytes) else str(value).encode()
        producer.produce(topic, encoded, partition=partition, **fields)
    assert producer.flush(DEADLINE_S) == 0


def add_partitions(kafka: KafkaAccess, topic: str, total: int) -> None:
    """Give a topic more partitions."""
    admin = AdminClient(kafka.client() | QUIET)
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(DEADLINE_S)
    until = time.monotonic() + DEADLINE_S
    while len(admin.list_topics(topic, timeout=10).topics[topic].partitions) < total:
        assert time.monotonic() < until


def empty_topic(kafka: KafkaAccess, name: str) -> str:
    """Make a topic whose name a program has fixed; one that an earlier test has left is deleted."""
    admin = AdminClient(kafka.client() | QUIET)
    if name in admin.list_topics(timeout=DEADLINE_S).topics:
        admin.delete_topics([name])[name].result(DEADLINE_S)
        wait_until(lambda: name not in admin.list_topics(timeout=DEADLINE_S).topics, f"no topic {name}", DEADLINE_S)
    return kafka.create_topic(name)


def committed(kafka: KafkaAccess, group: str, topic: str, partition: int = 0) -> int | None:
    """The offset that a group has committed, or None; also None while the group's coordinator starts.

    An admin client's question would kill the process in that case (librdkafka issue 5040).
    """
    consumer = Consumer(kafka.client(group_id=group, enable_auto_commit=False) | QUIET)
    try:
        (answer,) = consumer.committed([TopicPartition(topic, partition)], timeout=30)
    except KafkaException as error:
        if error.args[0].name() not in ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"):
            raise
        return None
    finally:
        consumer.close()
    assert answer.error is None, answer.error
    return answer.offset if answer.offset >= 0 else None


def wait_for_commits(kafka: KafkaAccess, reader: Any, group: str) -> None:
    """Return when every commit that a reader has sent is visible, and the reader knows: it sends one at a time."""
    mark = KafkaTopicPartition(kafka.create_topic(f"mark-{uuid.uuid4().hex}"), 0)
    reader._feed.commit({mark: 1})
    wait_until(lambda: committed(kafka, group, mark.topic) == 1, "the commit that was sent last", DEADLINE_S)
    feed = reader._feed
    wait_until(lambda: feed.has_messages() is not None and not feed._commits.under_way, "the answer", DEADLINE_S)


def source_of(kafka: KafkaAccess, *topics: str, **properties: Any) -> KafkaSourceBuilder:
    """A builder of a source of strings; an underscore in a property's name stands for a dot."""
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers)
    builder.set_value_only_deserializer(SimpleStringSchema())
    if topics:
        builder.set_topics(*topics)
    return builder.set_properties({name.replace("_", "."): value for name, value in properties.items()})


def stream_of(
    source: Any,
    parallelism: int = 1,
    strategy: WatermarkStrategy | None = None,
    checkpoints: bool = False,
    shape: Callable[[DataStream], DataStream] = lambda stream: stream,
    uid: str = "kafka",
) -> DataStream:
    """The stream of a source in a new environment."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    if checkpoints:
        env.enable_checkpointing(10)
    return shape(env.from_source(source, strategy or WatermarkStrategy.no_watermarks(), "kafka").uid(uid))


def collect(job: InProcessJob, count: int) -> list[Any]:
    """Run epochs until the job has returned this many records, and a few more epochs to see that no more come."""
    records: list[Any] = []
    until = time.monotonic() + DEADLINE_S
    while len(records) < count:
        assert time.monotonic() < until, f"{len(records)} of {count} records came: {records[-5:]}"
        records += job.epoch()
    for _ in range(5):
        records += job.epoch()
    return records


def read(source: Any, max_records: int = 1_000_000, **options: Any) -> list[Any]:
    """All records of a bounded source."""
    return InProcessJob.of(stream_of(source, **options), max_records=max_records).run()


def readers_of(job: InProcessJob) -> list[Any]:
    """The readers of a job's sources, one per subtask."""
    return [task._head.operator._reader for task in job.tasks.values() if hasattr(task._head.operator, "_reader")]


def metrics_of(job: InProcessJob) -> Mapping[str, Any]:
    """The values of the metrics of a job's first source, by name."""
    task = next(task for task in job.tasks.values() if hasattr(task._head.operator, "_reader"))
    return {reading.name: reading.value for reading in task.metrics.read()}
