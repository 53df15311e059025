"""What the builders of the Kafka sink refuse, and the pure parts of its transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rekindle.common.serialization import SimpleStringSchema
from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    Semantic,
)
from rekindle.datastream.connectors.kafka.message_file import message_file, read_messages
from rekindle.datastream.connectors.kafka.token_topic import token_topic_name
from rekindle.datastream.connectors.kafka.transaction_number import PreparedTransaction, TransactionNumber
from rekindle.errors import ConfigurationError, RekindleError

SERVERS = {"bootstrap.servers": "localhost:9092"}


def serializer() -> Any:
    schema = KafkaRecordSerializationSchema.builder().set_topic("words")
    return schema.set_value_serialization_schema(SimpleStringSchema()).build()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: KafkaSink.builder().build(), "set_bootstrap_servers"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("a:1").build(), "set_record_serializer"),
        (lambda: KafkaSink.builder().set_delivery_guarantee("once"), "DeliveryGuarantee"),
        (lambda: KafkaSink.builder().set_property("transactional.id", "x"), "set_transactional_id_prefix"),
        (lambda: KafkaSink.builder().set_property("linger", 1), "linger.ms"),
        (lambda: KafkaSink.builder().set_producer_pool_size(1), "2 or more"),
        (lambda: KafkaSink.builder().set_transactional_id_prefix(""), "1 to 6400 bytes"),
        (lambda: KafkaRecordSerializationSchema.builder().build(), "set_topic"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("a").build(), "set_value_serialization_schema"),
        (lambda: KafkaRecordSerializationSchema.builder().set_value_serialization_schema(3), "SerializationSchema"),
        (lambda: FlinkKafkaProducer("t", SimpleStringSchema(), {}), "set_bootstrap_servers"),
        (lambda: FlinkKafkaProducer("t", SimpleStringSchema(), SERVERS, semantic="once"), "Semantic"),
    ],
)
def test_builders_refuse_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises((RekindleError, TypeError)) as caught:
        make()
    assert sentence in str(caught.value)


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
