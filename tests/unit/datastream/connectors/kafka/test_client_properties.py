"""Kafka's properties: Java's names in librdkafka's spelling, and secrets that stay hidden."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import SimpleStringSchema
from rekindle.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    java_properties,
)
from rekindle.datastream.connectors.kafka.client_properties import (
    BROKERS_VARIABLE,
    admin_properties,
    chosen_brokers,
    consumer_properties,
    masked,
    producer_properties,
    warn_of_unknown_names,
)
from rekindle.datastream.connectors.kafka.property_names import Client, java_names, librdkafka_names
from rekindle.errors import ConfigurationError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"linger.ms": "5", "acks": "all", "batch.size": 16384},
            {"linger.ms": "5", "acks": "all", "batch.size": 16384},
        ),
        ({"buffer.memory": 33554432}, {"queue.buffering.max.kbytes": 32768}),
        ({"max.request.size": 5}, {"message.max.bytes": 5}),
        ({"request.timeout.ms": 7}, {"request.timeout.ms": 7}),
        ({"enable.idempotence": True}, {"enable.idempotence": "true"}),
        ({"key.serializer": "x", "metric.reporters": "y", "max.block.ms": 3}, {}),
        ({"ssl.truststore.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
        ({"ssl.truststore.location": "/ca", "ssl.truststore.type": "PEM"}, {"ssl.ca.location": "/ca"}),
        ({"ssl.keystore.location": "/me.p12"}, {"ssl.keystore.location": "/me.p12"}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        (
            {"sasl.jaas.config": f'{PLAIN} username="shop" password="a \\"b\\"; c";'},
            {"sasl.username": "shop", "sasl.password": 'a "b"; c'},
        ),
        (
            {"sasl.jaas.config": f"{SCRAM} username='shop' password=p;"},
            {"sasl.username": "shop", "sasl.password": "p"},
        ),
    ],
)
def test_producer_properties(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert producer_properties(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"fetch.max.wait.ms": 9, "max.poll.records": 5}, {"fetch.wait.max.ms": 9}),
        ({"request.timeout.ms": 7}, {"socket.timeout.ms": 7}),
        ({"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
        ({"isolation.level": "READ_COMMITTED"}, {"isolation.level": "read_committed"}),
        ({"partition.discovery.interval.ms": 1, "client.id.prefix": "x", "commit.offsets.on.checkpoint": "true"}, {}),
        ({"linger.ms": 5, "group.id": "g"}, {"group.id": "g"}),
    ],
)
def test_consumer_properties(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert consumer_properties(given) == expected


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"partitioner.class": "org.example.Mine"}, "set_partitioner"),
        ({"ssl.truststore.location": "/ca.jks"}, "keytool"),
        ({"ssl.keystore.location": "/me.jks"}, "PKCS12"),
        ({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}, "sasl.kerberos.principal"),
        ({"sasl.jaas.config": f"{PLAIN} username=shop;"}, "password"),
        ({"buffer.memory": "much"}, "number of bytes"),
    ],
)
@pytest.mark.parametrize("properties", [producer_properties, consumer_properties, admin_properties])
def test_what_cannot_be_used_is_refused_with_advice(properties: Any, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        properties(given)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "ssl.key.pem",
        "ssl.keystore.key",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    ],
)
def test_secrets_are_masked(name: str) -> None:
    assert "tiger" not in str(masked({name: "tiger"}))
    assert masked({"ssl.ca.location": "/ca.pem", "sasl.oauthbearer.token.endpoint.url": "u"}) == {
        "ssl.ca.location": "/ca.pem",
        "sasl.oauthbearer.token.endpoint.url": "u",
    }


def test_an_environment_variable_names_the_brokers_for_a_program_that_names_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = {"bootstrap.servers": "localhost:9092", "group.id": "readers"}
    source = KafkaSource.builder().set_properties(named).set_topics("t")
    source.set_value_only_deserializer(SimpleStringSchema())
    serializer = KafkaRecordSerializationSchema.builder().set_topic("t")
    serializer.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers("localhost:9092").set_record_serializer(serializer.build())
    assert "localhost:9092" in repr(sink.build()._settings)
    monkeypatch.setenv(BROKERS_VARIABLE, "broker:1234")
    assert chosen_brokers({"metadata.broker.list": "localhost:9092"}) == {"bootstrap.servers": "broker:1234"}
    assert source._settings().properties == {"bootstrap.servers": "broker:1234", "group.id": "readers"}
    assert "broker:1234" in repr(sink.build()._settings)


@pytest.mark.parametrize(("given", "sentence"), [("lingerms", "did you mean 'linger.ms'"), ("zzz", "CONFIGURATION.md")])
@pytest.mark.parametrize("properties", [producer_properties, consumer_properties, admin_properties])
def test_an_unknown_name_has_no_effect_and_is_warned_of(
    properties: Any, given: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert properties({given: 1}) == {}
    assert caplog.text == ""
    warn_of_unknown_names({given: 1, "linger.ms": 5, "partition.discovery.interval.ms": 1, "buffer.memory": 1})
    (record,) = caplog.records
    assert f"Kafka has no property '{given}', it has no effect" in record.getMessage()
    assert sentence in record.getMessage()


def test_a_builder_warns_once_of_a_property(caplog: pytest.LogCaptureFixture) -> None:
    KafkaSink.builder().set_property("linger.msec", "5").set_property("linger.ms", "5")
    source = KafkaSource.builder().set_bootstrap_servers("a:1").set_topics("t")
    source.set_value_only_deserializer(SimpleStringSchema()).set_property("fetch.min.byte", "1").build()
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        "Kafka has no property 'linger.msec'",
        "Kafka has no property 'fetch.min.byte'",
    ]


def test_a_java_name_that_librdkafka_does_not_have_is_warned_of_as_such(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_unknown_names({"ssl.engine.factory.class": "org.example.Engine"})
    (record,) = caplog.records
    assert record.getMessage().startswith("Kafka's Java property 'ssl.engine.factory.class' has no effect here")
    assert producer_properties({"ssl.engine.factory.class": "org.example.Engine"}) == {}


def test_a_java_name_that_is_translated_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_unknown_names(dict.fromkeys([*java_properties.RENAMED, *java_properties.COMPUTED], "any"))
    assert caplog.text == ""


def test_the_tables_of_names_hold_what_is_said_about_them() -> None:
    assert {"group.id", "client.id"} <= librdkafka_names(Client.CONSUMER)
    assert {"linger.ms", "client.id"} <= librdkafka_names(Client.PRODUCER)
    assert not {"group.id", "linger.ms"} & librdkafka_names()
    assert "max.poll.records" not in librdkafka_names(*Client), "of share consumers"
    of_flink = {name for name in java_properties.WITHOUT_MEANING if name.startswith(("flink.", "register."))}
    handled = {*java_properties.RENAMED, *java_properties.COMPUTED, *java_properties.REFUSED}
    assert handled | java_properties.WITHOUT_MEANING - of_flink <= java_names()
    assert set(java_properties.RENAMED.values()) <= librdkafka_names(*Client)
