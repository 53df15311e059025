"""The Kafka sink on a real broker: its guarantees, its record serializer, and what it says when something is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common.serialization import SimpleStringSchema
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors import DeliveryGuarantee
from rekindle.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
    Semantic,
)
from rekindle.errors import ConfigurationError
from tests.integration.kafka.kafka_reading import messages, values
from tests.integration.kafka.sink_jobs import AT_LEAST_ONCE, EXACTLY_ONCE, NONE, NUMBERS, as_text, builder, job_of
from tools.servers.kafka_access import KafkaAccess
from tools.servers.ports import LOOPBACK, free_ports


def cause_of(run: Callable[[], Any]) -> str:
    """The sentence with which a job fails."""
    with pytest.raises(Exception) as caught:
        run()
    return str(caught.value.__cause__)


@pytest.mark.parametrize("guarantee", DeliveryGuarantee)
def test_every_record_arrives_once_with_each_guarantee(
    kafka: KafkaAccess, topic: Callable[..., str], guarantee: DeliveryGuarantee
) -> None:
    name = topic(partitions=3)
    job_of(builder(kafka.bootstrap_servers, name, guarantee).build()).run()
    assert values(kafka, name) == NUMBERS


def test_at_least_once_is_confirmed_at_the_barrier_and_written_again_after_a_restart(
    kafka: KafkaAccess, topic: Callable[..., str]
) -> None:
    name = topic()
    sink = builder(kafka.bootstrap_servers, name, AT_LEAST_ONCE, linger_ms=60_000).build()
    job = job_of(sink, 1)
    checkpoint = job.checkpoint()
    assert values(kafka, name) == NUMBERS[:3], "flushed at the barrier, although nothing would be sent for a minute"
    job.checkpoint(complete=False)
    job.kill()
    job_of(sink, 1, checkpoint).run()
    assert values(kafka, name) == sorted([*NUMBERS, *NUMBERS[3:6]])


def test_exactly_once_without_checkpoints_commits_at_the_end(
    kafka: KafkaAccess, topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    name = topic()
    job = job_of(builder(kafka.bootstrap_servers, name).build(), 1, interval_ms=None)
    assert "commits at the end of the job only" in caplog.text
    job.epoch()
    assert values(kafka, name) == []
    job.run()
    assert values(kafka, name) == NUMBERS


def test_read_uncommitted_sees_records_as_they_come_and_read_committed_when_they_count(
    kafka: KafkaAccess, topic: Callable[..., str]
) -> None:
    name = topic()
    job = job_of(builder(kafka.bootstrap_servers, name).build(), 1)
    checkpoint = job.checkpoint(complete=False)
    assert values(kafka, name) == []
    assert values(kafka, name, isolation="read_uncommitted") == NUMBERS[:3]
    job.complete(checkpoint)
    assert values(kafka, name) == NUMBERS[:3]
    job.close()


class _ByParity(KafkaTopicSelector):
    def __init__(self, topics: list[str]) -> None:
        self.topics = topics

    def apply(self, data: Any) -> str:
        return self.topics[data % 2]


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_the_record_serializer_sets_all_parts_of_a_message_also_when_it_is_sent_again(
    kafka: KafkaAccess, topic: Callable[..., str], guarantee: DeliveryGuarantee
) -> None:
    names = [topic(partitions=3), topic(partitions=3)]
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(_ByParity(names))
        .set_key_serialization_schema(lambda n: None if n == 1 else b"k%d" % n)
        .set_value_serialization_schema(lambda n: None if n == 2 else b"v%d" % n)
        .set_header_provider(lambda n: {"number": b"%d" % n, "none": None})
        .set_partitioner(lambda n, key, value, topic, partitions: partitions[n % len(partitions)])
        .set_timestamp_extractor(lambda n: 1_700_000_000_000 + n)
        .build()
    )
    made = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_record_serializer(serializer)
    sink = made.set_delivery_guarantee(guarantee).set_transactional_id_prefix(names[0]).build()
    job = job_of(sink, 1, numbers=range(4), max_records=10)
    checkpoint = job.checkpoint(complete=False)
    if guarantee is EXACTLY_ONCE:
        assert checkpoint.manifest is not None
        job.kill()
        job_of(sink, 1, checkpoint, numbers=range(4))  # sends the file

    got = sorted((each.timestamp()[1], each) for name in names for each in messages(kafka, name))
    assert [(m.topic(), m.partition(), m.key(), m.value(), m.headers()) for _, m in got] == [
        (names[0], 0, b"k0", b"v0", [("number", b"0"), ("none", None)]),
        (names[1], 1, None, b"v1", [("number", b"1"), ("none", None)]),
        (names[0], 2, b"k2", None, [("number", b"2"), ("none", None)]),
        (names[1], 0, b"k3", b"v3", [("number", b"3"), ("none", None)]),
    ]
    assert [at for at, _ in got] == [1_700_000_000_000 + n for n in range(4)]


@pytest.mark.parametrize("semantic", Semantic)
def test_the_older_spelling_does_the_same(kafka: KafkaAccess, topic: Callable[..., str], semantic: Semantic) -> None:
    name = topic()
    config = {"bootstrap.servers": kafka.bootstrap_servers, "key.serializer": "org.example.Any"}
    producer = FlinkKafkaProducer(name, SimpleStringSchema(), config, 3, semantic)
    job_of(producer, 1, numbers=list(map(str, NUMBERS))).run()
    assert values(kafka, name) == NUMBERS


def test_more_records_than_the_queue_holds_wait_for_room(kafka: KafkaAccess, topic: Callable[..., str]) -> None:
    name = topic()
    sink = builder(kafka.bootstrap_servers, name, queue_buffering_max_messages=100).build()
    job_of(sink, 1, numbers=range(5_000), max_records=10_000).run()
    assert values(kafka, name) == list(range(5_000))


# -- what is wrong is told ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_missing_topic_is_told_at_the_start(kafka: KafkaAccess, guarantee: DeliveryGuarantee) -> None:
    sink = builder(kafka.bootstrap_servers, "no-such-topic", guarantee, max_block_ms=1000).build()
    told = cause_of(lambda: job_of(sink, 1))
    assert f"Kafka at {kafka.bootstrap_servers} failed to find topic 'no-such-topic'" in told
    assert "create the topic, or correct its name" in told


@pytest.mark.parametrize("guarantee", [NONE, EXACTLY_ONCE])
def test_a_broker_that_is_not_there_is_told_within_the_configured_time(guarantee: DeliveryGuarantee) -> None:
    address = f"{LOOPBACK}:{free_ports(1)[0]}"
    began = time.monotonic()
    told = cause_of(lambda: job_of(builder(address, "any", guarantee, max_block_ms=1500).build(), 1))
    assert f"Kafka at {address} failed to" in told
    assert "see that the brokers run" in told
    assert time.monotonic() - began < 10


def test_a_message_that_is_too_large_is_told_with_its_topic(kafka: KafkaAccess, topic: Callable[..., str]) -> None:
    name = topic(max_message_bytes=1000)
    for size, properties in ((5000, {"max_request_size": 2_000_000}), (3_000_000, {})):
        large = builder(kafka.bootstrap_servers, name, AT_LEAST_ONCE, lambda n, size=size: b"x" * size, **properties)
        job = job_of(large.build(), 1)
        told = cause_of(job.checkpoint)
        assert f"topic '{name}'" in told
        assert "MSG_SIZE_TOO_LARGE" in told
        job.close()


def test_an_unknown_topic_of_a_selector_is_told(kafka: KafkaAccess) -> None:
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda number: "not-there")
        .set_value_serialization_schema(as_text)
        .build()
    )
    made = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_record_serializer(serializer)
    made.set_property("topic.metadata.propagation.max.ms", 500)
    job = job_of(made.set_delivery_guarantee(AT_LEAST_ONCE).build(), 1)
    assert "'not-there'" in cause_of(job.checkpoint)
    job.close()


def test_a_transaction_timeout_above_the_brokers_is_told_at_the_start(
    kafka: KafkaAccess, topic: Callable[..., str]
) -> None:
    sink = builder(kafka.bootstrap_servers, topic(), transaction_timeout_ms=3_600_000).build()
    told = cause_of(lambda: job_of(sink, 1))
    assert "INVALID_TRANSACTION_TIMEOUT" in told
    assert "lower transaction.timeout.ms, or raise the broker's transaction.max.timeout.ms" in told


def test_a_transaction_timeout_below_the_checkpoint_interval_is_refused(
    kafka: KafkaAccess, topic: Callable[..., str]
) -> None:
    sink = builder(kafka.bootstrap_servers, topic(), transaction_timeout_ms=10_000).build()
    told = cause_of(lambda: job_of(sink, 1, interval_ms=60_000))
    assert "transaction.timeout.ms is 10000, the checkpoint interval 60000 ms" in told


def test_a_value_that_the_client_does_not_take_is_told(kafka: KafkaAccess, topic: Callable[..., str]) -> None:
    sink = builder(kafka.bootstrap_servers, topic(), AT_LEAST_ONCE, acks="some").build()
    with pytest.raises(Exception) as caught:
        job_of(sink, 1)
    assert isinstance(caught.value.__cause__, ConfigurationError)
    assert "acks" in str(caught.value.__cause__)


def test_passwords_are_in_no_repr_and_no_plan() -> None:
    sink = builder("localhost:9092", "words", sasl_password="tiger-7", ssl_key_password="tiger-8").build()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).sink_to(sink)
    shown = [repr(sink), str(sink), env.get_execution_plan()]
    env.close()
    assert not any("tiger" in text for text in shown)


def test_a_topic_that_takes_smaller_messages_than_the_client_sends_is_told_at_the_start(
    kafka: KafkaAccess, topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    small, large = topic(max_message_bytes=1000), topic()
    for name in (small, large):
        job_of(builder(kafka.bootstrap_servers, name, max_request_size=5000).build(), 1).run()
    (warning,) = [each.getMessage() for each in caplog.records if "max.request.size" in each.getMessage()]
    assert f"up to 5000 bytes (max.request.size), but topic '{small}' takes at most 1000" in warning
