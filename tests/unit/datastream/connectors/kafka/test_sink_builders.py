"""What the builders of the Kafka sink refuse, and the pure parts of its transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Types
from rekindle.common.serialization import SimpleStringSchema
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    Semantic,
)
from rekindle.datastream.connectors.kafka.message_file import message_file, read_messages
from rekindle.datastream.connectors.kafka.start_checks import enough_producers
from rekindle.datastream.connectors.kafka.token_topic import token_topic_name
from rekindle.datastream.connectors.kafka.transaction_number import PreparedTransaction, TransactionNumber
from rekindle.datastream.connectors.sink_api import InitContext
from rekindle.errors import ConfigurationError, RekindleError
from rekindle.graph.build import build_plan

SERVERS = {"bootstrap.servers": "localhost:9092"}


def serializer() -> Any:
    schema = KafkaRecordSerializationSchema.builder().set_topic("words")
    return schema.set_value_serialization_schema(SimpleStringSchema()).build()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: KafkaSink.builder().build(), "set_bootstrap_servers"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("a:1").build(), "set_record_serializer"),
        (lambda: KafkaSink.builder().set_delivery_guarantee("once"), "DeliveryGuarantee"),  # type: ignore[arg-type]
        (lambda: KafkaSink.builder().set_property("transactional.id", "x"), "set_transactional_id_prefix"),
        (lambda: KafkaSink.builder().set_producer_pool_size(1), "2 or more"),
        (lambda: KafkaSink.builder().set_transactional_id_prefix(""), "1 to 6400 bytes"),
        (lambda: KafkaRecordSerializationSchema.builder().build(), "set_topic"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("a").build(), "set_value_serialization_schema"),
        (lambda: KafkaRecordSerializationSchema.builder().set_value_serialization_schema(3), "SerializationSchema"),  # type: ignore[arg-type]
        (lambda: FlinkKafkaProducer("t", SimpleStringSchema(), {}), "set_bootstrap_servers"),
        (lambda: FlinkKafkaProducer("t", SimpleStringSchema(), SERVERS, semantic="once"), "Semantic"),  # type: ignore[arg-type]
    ],
)
def test_builders_refuse_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises((RekindleError, TypeError)) as caught:
        make()
    assert sentence in str(caught.value)


def exactly_once(prefix: str, servers: str = "a:1") -> KafkaSink:
    builder = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(serializer())
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    return builder.set_transactional_id_prefix(prefix).build()


def older(prefix: str = "") -> FlinkKafkaProducer:
    made = FlinkKafkaProducer("words", SimpleStringSchema(), SERVERS, semantic=Semantic.EXACTLY_ONCE)
    return made.set_transactional_id_prefix(prefix) if prefix else made


def plan_with(*sinks: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    words = env.from_collection(["a"], Types.STRING())
    for number, sink in enumerate(sinks):
        add = words.add_sink if isinstance(sink, FlinkKafkaProducer) else words.sink_to
        add(sink).name(f"sink {number}")
    build_plan(env._program("writer"))


@pytest.mark.parametrize(
    ("sinks", "prefix"),
    [
        ((exactly_once("p"), exactly_once("p")), "'p', at Kafka a:1"),
        ((older(), older()), "'writer-words', at Kafka localhost:9092"),
        ((exactly_once("writer-words", "localhost:9092"), older()), "'writer-words'"),
    ],
)
def test_two_exactly_once_sinks_with_one_prefix_are_refused_when_the_job_is_built(sinks: Any, prefix: str) -> None:
    with pytest.raises(RekindleError) as caught:
        plan_with(*sinks)
    words = "The sinks 'Sink: sink 0' and 'Sink: sink 1' of job 'writer' have one transactional id prefix, "
    assert words in str(caught.value)
    assert prefix in str(caught.value)
    assert str(caught.value).endswith("give each its own with set_transactional_id_prefix().")


def test_sinks_with_other_prefixes_or_brokers_may_be_in_one_job() -> None:
    plan_with(exactly_once("p"), exactly_once("q"), exactly_once("p", "b:1"), older(), older("own"))


@pytest.mark.parametrize(
    ("pool_size", "incomplete", "producers"), [(5, 1, 5), (5, 4, 6), (20, 4, 20), (5, 2**31, 32), (40, 2**31, 40)]
)
def test_there_are_producers_for_all_checkpoints_that_may_be_incomplete(
    pool_size: int, incomplete: int, producers: int, caplog: pytest.LogCaptureFixture
) -> None:
    context = InitContext(task_name="sink (1/1)", incomplete_checkpoints=incomplete)
    assert enough_producers(pool_size, context) == producers
    assert ("tolerable-failed-checkpoints" in caplog.text) == (incomplete > 30)


def test_exactly_once_needs_a_prefix() -> None:
    builder = KafkaSink.builder().set_bootstrap_servers("a:1").set_record_serializer(serializer())
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(RekindleError, match="set_transactional_id_prefix"):
        builder.build()


@pytest.mark.parametrize("setting", ["set_log_failures_only", "set_flush_on_checkpoint"])
def test_settings_of_the_older_spelling_that_lose_records_are_refused_with_exactly_once(setting: str) -> None:
    producer = FlinkKafkaProducer("t", SimpleStringSchema(), SERVERS, semantic=Semantic.EXACTLY_ONCE)
    value = setting == "set_log_failures_only"
    with pytest.raises(RekindleError, match="refused"):
        getattr(producer, setting)(value)
    assert getattr(producer, setting)(not value).ignore_failures_after_transaction_timeout() is producer


def test_the_older_spelling_flushes_and_logs_as_told() -> None:
    producer = FlinkKafkaProducer("t", SimpleStringSchema(), SERVERS)
    assert producer.as_sink()._settings.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    producer.set_flush_on_checkpoint(False).set_log_failures_only(True)
    assert producer.as_sink()._settings.guarantee is DeliveryGuarantee.NONE
    assert producer.as_sink()._settings.log_failures_only


def test_a_number_that_is_no_number_is_refused() -> None:
    builder = KafkaSink.builder().set_bootstrap_servers("a:1").set_record_serializer(serializer())
    sink = builder.set_property("transaction.timeout.ms", "long").build()
    with pytest.raises(ConfigurationError, match=r"transaction\.timeout\.ms"):
        _ = sink._settings.transaction_timeout_ms


def test_messages_come_back_from_their_file(tmp_path: Path) -> None:
    messages = [("t", b"v"), ("t", None, b"k"), ("t", b"v", None, 2, None, None, 17, [("h", b"1"), ("n", None)])]
    file = message_file(str(tmp_path / "interval"))
    file.append(messages[:1])
    file.append(messages[1:])
    file.finish()
    assert list(read_messages(file.path)) == messages
    assert file.items == 3


def test_a_committable_says_which_transaction_it_is() -> None:
    number = TransactionNumber("my-sink-3-1", 3, "t", 2, 5)
    prepared = PreparedTransaction(number, 7, "/x", 4, 5)
    assert PreparedTransaction.of(prepared.committable()) == prepared
    assert number.prefix == "my-sink"
    assert [number.is_covered_by({number.key(): last}) for last in ((2, 5), (3, 1), (2, 4), (1, 9))] == [
        True,
        True,
        False,
        False,
    ]


def test_every_prefix_has_a_token_topic_of_its_own() -> None:
    names = {token_topic_name(prefix) for prefix in ("a b", "a_b", "ä", "x" * 300, "x" * 301)}
    assert len(names) == 5
    assert all(len(name) <= 249 for name in names)
