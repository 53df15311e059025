"""Kafka sources in jobs on Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from rekindle.common import JobStatus, RestartStrategies, SimpleStringSchema, Types, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.kafka import FlinkKafkaConsumer, KafkaOffsetsInitializer
from rekindle.datastream.functions import MapFunction
from tests.support.kafka_topics import add_partitions, committed, fill, source_of
from tests.support.waiting import wait_until
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


class FailsOnce(MapFunction):
    """Fails at its first record, until the file is there; the test makes it when it has appended more."""

    def __init__(self, failed: str, go_on: str) -> None:
        self.failed, self.go_on = Path(failed), Path(go_on)

    def map(self, value: str) -> str:
        if not self.go_on.exists():
            self.failed.touch()
            wait_until(self.go_on.exists, "the test has appended records", 120)
            raise ValueError("once")
        return value


def test_attempts_before_the_first_checkpoint_begin_where_the_first_began(
    spark: Any, kafka: KafkaAccess, topic: Topic, tmp_path: Path
) -> None:
    name = topic()
    fill(kafka, name, 0, ["before the run"])
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.enable_checkpointing(3_600_000)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    source = source_of(kafka, name).set_starting_offsets(KafkaOffsetsInitializer.latest()).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "latest")
    failed, go_on, result = tmp_path / "failed", tmp_path / "go on", tmp_path / "result"
    stream.map(FailsOnce(str(failed), str(go_on))).map(partial(append, str(result))).print()
    job = env.execute_async("latest")
    try:
        wait_until(lambda: job.get_job_status().result() is JobStatus.RUNNING, "the job runs", 120)
        fill(kafka, name, 0, ["a"])
        wait_until(failed.exists, "the first attempt has a record", 120)
        fill(kafka, name, 0, ["b"])
        go_on.touch()
        wait_until(lambda: content(result) == b"ab", "the second attempt reads what the first should have", 120)
    finally:
        job.cancel().result(120)


def append(path: str, value: str) -> str:
    with open(path, "a") as file:
        file.write(value)
    return value


def content(path: Path) -> bytes:
    """The bytes of a file; older checkpoints are deleted meanwhile."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""
