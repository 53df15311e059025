"""Kafka sources in jobs on Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from rekindle.common import SimpleStringSchema, Types, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.kafka import FlinkKafkaConsumer, KafkaOffsetsInitializer
from tests.kafka_topics import add_partitions, committed, fill, source_of
from tests.waiting import wait_until
from tools.servers.kafka_access import KafkaAccess

PASSWORD = "open sesame 4711"
Topic = Callable[..., str]


def test_a_bounded_topic_is_counted_by_key(spark: Any, kafka: KafkaAccess, topic: Topic) -> None:
    name, group = topic(partitions=3), uuid.uuid4().hex
    for partition in range(3):
        fill(kafka, name, partition, [f"word{n % 5}" for n in range(100)])
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.enable_checkpointing(500)
    source = source_of(kafka, name, group_id=group).set_bounded(KafkaOffsetsInitializer.latest()).build()
    words = env.from_source(source, WatermarkStrategy.no_watermarks(), "words")
    pairs = words.map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.LONG()]))
    counts = pairs.key_by(lambda pair: pair[0], Types.STRING()).sum(1)

    with counts.execute_and_collect("count") as results:
        last = dict(results)

    assert last == {f"word{n}": 60 for n in range(5)}
    wait_until(lambda: committed(kafka, group, name) == 100, "the final checkpoint's offsets are committed", 30)


def test_an_unbounded_job_discovers_partitions_commits_and_stores_no_password(
    spark: Any, kafka: KafkaAccess, topic: Topic, tmp_path: Path
) -> None:
    name, group = topic(), uuid.uuid4().hex
    fill(kafka, name, 0, ["a"])
    properties = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "flink.partition-discovery.interval-millis": "200",
        "sasl.password": PASSWORD,  # without effect on this listener
    }
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.enable_checkpointing(300)
    env.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{tmp_path}")
    consumer = FlinkKafkaConsumer(name, SimpleStringSchema(), properties).set_start_from_earliest()
    results = env.add_source(consumer, "consumer").execute_and_collect("discovery")
    with results:
        records = iter(results)
        assert next(records) == "a"
        add_partitions(kafka, name, 2)
        fill(kafka, name, 1, ["b"])
        assert next(records) == "b"
        wait_until(lambda: committed(kafka, group, name, 1) == 1, "the new partition's offset is committed", 60)
        commands = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
        stored = b"".join(content(path) for path in tmp_path.rglob("*"))
    assert name.encode() in stored
    assert PASSWORD.encode() not in stored
    assert any("rekindle.runtime.slot" in command for command in commands)
    assert PASSWORD not in "".join(commands)


def content(path: Path) -> bytes:
    """The bytes of a file; older checkpoints are deleted meanwhile."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""
