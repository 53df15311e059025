"""How far a running job is behind: Kafka's own tool shows its group, and the job's client shows the same as metrics."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from rekindle.common import JobClient, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.kafka import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from tests.support.kafka_topics import committed, fill, source_of
from tests.support.waiting import wait_until
from tools.servers.kafka_access import KafkaAccess

DEADLINE_S = 90.0
INTERVAL_MS = 2_000


def test_a_running_jobs_group_has_its_lag_in_kafkas_tool_and_in_the_metrics(
    spark: Any, kafka: KafkaAccess, topic: Callable[..., str]
) -> None:
    name, group = topic(partitions=2), uuid.uuid4().hex
    fill(kafka, name, 0, range(30))
    fill(kafka, name, 1, range(20))
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.enable_checkpointing(INTERVAL_MS)
    source = source_of(kafka, name, group_id=group).build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", str).add_sink(lambda value: None)
    client = env.execute_async("lag")
    sent, enough = 30, threading.Event()

    def keep_sending() -> None:
        """Records that no checkpoint covers yet come all the time: the tool takes longer than a checkpoint."""
        nonlocal sent
        while not enough.wait(0.05):
            fill(kafka, name, 0, range(5))
            sent += 5

    def behind() -> bool:
        (first, end, lag), other = (shown := described(kafka, group, name))[0], shown[1]
        assert (end - first, other) == (lag, (20, 20, 0)), shown
        return first >= 30 and lag > 0

    try:
        wait_until(lambda: committed(kafka, group, name, 1) == 20, "a checkpoint's offsets", DEADLINE_S)
        with ThreadPoolExecutor(1) as threads:
            sending = threads.submit(keep_sending)
            try:
                wait_until(behind, "the lag of records that are not committed", DEADLINE_S)
            finally:
                enough.set()
            sending.result()
        wait_until(lambda: described(kafka, group, name)[0] == (sent, sent, 0), "all are committed", DEADLINE_S)
        wait_until(lambda: offsets(client, name, "committedOffset") == {0: sent, 1: 20}, "the metric", DEADLINE_S)
        assert offsets(client, name, "currentOffset") == {0: sent - 1, 1: 19}
        lags = [each.value for each in client.get_metrics() if each.name.endswith("KafkaConsumer.records-lag-max")]
        assert lags == [0]
    finally:
        client.cancel().result(DEADLINE_S)


def described(kafka: KafkaAccess, group: str, topic: str) -> dict[int, tuple[int, ...]]:
    """Committed offset, end and lag of each partition, as kafka-consumer-groups prints them."""
    text = kafka.consumer_groups_describe(group)
    lines = re.findall(rf"{group}\s+{re.escape(topic)}\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", text)
    assert lines, text
    return {int(partition): tuple(map(int, numbers)) for partition, *numbers in lines}


def offsets(client: JobClient, topic: str, metric: str) -> dict[int, int]:
    """A metric of each partition, by the partition's number."""
    pattern = re.compile(rf"KafkaSourceReader\.topic\.{re.escape(topic)}\.partition\.(\d+)\.{metric}")
    found = [(pattern.fullmatch(each.name), each.value) for each in client.get_metrics()]
    return {int(match[1]): cast(int, value) for match, value in found if match is not None}


def test_a_broker_that_never_had_a_group_answers_that_nothing_is_committed(own_broker: Callable[..., Any]) -> None:
    """Its coordinator starts with the first question. The admin client's dies of the answer: librdkafka issue 5040."""
    broker = own_broker()
    name = broker.create_topic("first")
    starting = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)

    def begins(number: int) -> list[int]:
        source = source_of(broker, name, group_id=f"new-{number}").set_starting_offsets(starting).build()
        return [split.position[0] for split in source.create_splits(1)]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(begins, range(24))) == [[0]] * 24
