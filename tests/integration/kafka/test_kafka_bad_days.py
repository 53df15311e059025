"""The Kafka source on bad days: no broker, wrong passwords, deleted records, a broker that dies in the middle."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from rekindle.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from rekindle.errors import ConfigurationError, ConnectorError, GraphError
from rekindle.serde import cloud_dumps
from rekindle.testing import InProcessJob
from tests.support.certificates import make_files
from tests.support.kafka_topics import collect, fill, read, readers_of, source_of, stream_of
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import QUIET, KafkaAccess
from tools.servers.kafka_listeners import sasl_plain, tls
from tools.servers.ports import LOOPBACK, free_ports

Topic = Callable[..., str]
LATEST = KafkaOffsetsInitializer.latest()
PASSWORD = "open sesame"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that asks for passwords, and for certificates; the tests that kill a broker use it too."""
    files = make_files(tmp_path_factory.mktemp("tls") / "files")
    certificates = tls(files.certificate, files.key, files.authority, client_certificates=True)
    with KafkaBroker(listeners=[sasl_plain("shop", PASSWORD), certificates]) as broker:
        yield broker


# -- at the start -----------------------------------------------------------------------------------------------------


def test_a_broker_that_is_not_there_is_named_in_time() -> None:
    address = f"{LOOPBACK}:{free_ports(1)[0]}"
    source = source_of(KafkaAccess({"PLAINTEXT": address}), "orders", request_timeout_ms=1500).build()
    began = time.monotonic()
    with pytest.raises(ConnectorError, match=rf"Kafka at {address} failed to list its topics within 1.5 s: .*refused"):
        source.create_splits(1)
    assert time.monotonic() - began < 10


def secured_source(broker: KafkaBroker, listener: str, topic: str, **changes: str) -> KafkaSource[Any]:
    builder = KafkaSource.builder().set_topics(topic).set_value_only_deserializer(bytes.decode).set_bounded(LATEST)
    return builder.set_properties(broker.client(listener) | changes).build()


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SSL"])
def test_passwords_and_certificates_pass_through(secured: KafkaBroker, listener: str) -> None:
    name = secured.create_topic(f"secured-{listener}")
    fill(secured, name, 0, ["a", "b"])
    assert read(secured_source(secured, listener, name)) == ["a", "b"]


def test_wrong_credentials_are_told_at_once(secured: KafkaBroker) -> None:
    source = secured_source(secured, "SASL_PLAINTEXT", "any", **{"sasl.password": "guessed wrong"})
    began = time.monotonic()
    with pytest.raises(ConnectorError, match="the broker refused the login") as refused:
        source.create_splits(1)
    assert time.monotonic() - began < 15  # not the 30 s of the timeout
    assert secured.addresses["SASL_PLAINTEXT"] in str(refused.value)
    assert "guessed wrong" not in str(refused.value)


def test_passwords_are_in_no_repr_and_no_log(
    secured: KafkaBroker, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    name = secured.create_topic("secrets")
    fill(secured, name, 0, ["a"])
    source = secured_source(secured, "SASL_PLAINTEXT", name)
    with caplog.at_level(logging.DEBUG):
        job = InProcessJob.of(stream_of(source, checkpoints=True))
        told = [repr(job.plan), repr(source), str(vars(source)), repr(source._settings), caplog.text]
        job.kill()
    assert PASSWORD not in " ".join(told) + "".join(capfd.readouterr())
    assert pickle.loads(cloud_dumps(source))._settings.properties["sasl.password"] == PASSWORD


def test_what_the_program_gets_wrong_is_named(kafka: KafkaAccess) -> None:
    with pytest.raises(ConfigurationError, match=r"'auto.offset.reset' is 'somewhere'"):
        source_of(kafka, "t", auto_offset_reset="somewhere").build()
    with pytest.raises(ConfigurationError, match=r"'partition.discovery.interval.ms' is 'soon'"):
        source_of(kafka, "t", partition_discovery_interval_ms="soon").build()
    with pytest.raises(GraphError, match="needs set_group_id"):
        source_of(kafka, "t").set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build()
    with pytest.raises(GraphError, match="one of set_topics"):
        source_of(kafka, "t").set_topic_pattern("t.*")
    with pytest.raises(GraphError, match="call set_topics"):
        source_of(kafka).build()
    with pytest.raises(GraphError, match=r"needs the property 'bootstrap.servers'"):
        FlinkKafkaConsumer("t", source_of(kafka)._deserializer, {})


# -- records that are gone --------------------------------------------------------------------------------------------


@pytest.fixture
def shortened(kafka: KafkaAccess, topic: Topic) -> str:
    """A topic whose records 0 to 4 of 10 are deleted."""
    name = topic()
    fill(kafka, name, 0, range(10))
    admin = AdminClient(kafka.client() | QUIET)
    admin.delete_records([TopicPartition(name, 0, 5)])[TopicPartition(name, 0)].result(30)
    return name


def from_two(kafka: KafkaAccess, name: str, strategy: KafkaOffsetResetStrategy, **properties: str) -> Any:
    start = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(name, 0): 2}, strategy)
    return source_of(kafka, name, **properties).set_starting_offsets(start)


def test_an_offset_that_is_gone_fails_the_job_by_name(kafka: KafkaAccess, shortened: str) -> None:
    job = InProcessJob.of(stream_of(from_two(kafka, shortened, KafkaOffsetResetStrategy.NONE).build()))
    with pytest.raises(Exception) as failure:  # the operator's failure, with the sentence as its cause
        collect(job, 1)
    sentence = str(failure.value.__cause__)
    assert f"Kafka topic '{shortened}', partition 0, at {kafka.bootstrap_servers} has no offset 2" in sentence
    assert "it has 5 up to 10" in sentence
    job.kill()


def test_or_the_source_goes_on_from_the_earliest(
    kafka: KafkaAccess, shortened: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = from_two(kafka, shortened, KafkaOffsetResetStrategy.EARLIEST).set_bounded(LATEST).build()
    assert read(source) == ["5", "6", "7", "8", "9"]
    assert "has no offset 2: it has 5 up to 10; the source goes on from 5." in caplog.text


def test_or_from_the_latest_as_the_property_says(kafka: KafkaAccess, shortened: str) -> None:
    builder = from_two(kafka, shortened, KafkaOffsetResetStrategy.EARLIEST, auto_offset_reset="latest")
    job = InProcessJob.of(stream_of(builder.build()))
    began = time.monotonic()
    while not began + 30 < time.monotonic() and first_position(job) != 10:
        assert job.epoch() == []
    fill(kafka, shortened, 0, ["new"])
    assert collect(job, 1) == ["new"]
    job.kill()


def first_position(job: InProcessJob) -> int:
    return int(readers_of(job)[0].snapshot_state(0)[0].position[0])


# -- in the middle ----------------------------------------------------------------------------------------------------


def test_a_broker_that_dies_and_comes_back_loses_and_doubles_nothing(secured: KafkaBroker) -> None:
    name = secured.create_topic("outage", 2)
    for partition in range(2):
        fill(secured, name, partition, [f"{partition}:{n}" for n in range(100)])
    job = InProcessJob.of(stream_of(source_of(secured, name).build(), 2), max_records=30)
    records = job.epoch()
    secured.kill()
    for _ in range(200):
        records += job.epoch()
    secured.restart()
    for partition in range(2):
        fill(secured, name, partition, [f"{partition}:{n}" for n in range(100, 120)])

    records += collect(job, 240 - len(records))

    for partition in range(2):
        assert [each for each in records if each[0] == str(partition)] == [f"{partition}:{n}" for n in range(120)]
    job.kill()
