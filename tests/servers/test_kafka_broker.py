"""The Kafka broker of the tests: real, fast to start, killable, and never left behind."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.servers.kafka_clients import receive, send
from tests.support.certificates import make_files
from tools.servers import kafka_format
from tools.servers.fetch import fetch_jars
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import JARS, QUIET, KafkaAccess
from tools.servers.kafka_listeners import sasl_plain, tls
from tools.servers.ports import LOOPBACK
from tools.servers.waiting import accepts_connections

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
SECURED = ("SASL_PLAINTEXT", "SSL")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker with a listener for passwords and one for TLS, which demands certificates of its clients."""
    files = make_files(tmp_path_factory.mktemp("tls") / "files")
    listeners = [
        sasl_plain("shop", "open sesame"),
        tls(files.certificate, files.key, files.authority, client_certificates=True),
    ]
    with KafkaBroker(listeners=listeners) as broker:
        yield broker


def test_messages_go_out_and_come_back(kafka: KafkaAccess, topic: Callable[..., str]) -> None:
    name = topic(partitions=3)

    send(kafka.client(), name, range(1_000))

    assert receive(kafka.client(), name, 1_000) == list(range(1_000))


def test_a_cluster_id_may_begin_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dashed = base64.urlsafe_b64encode(b"\xf8" * 16).decode().rstrip("=")
    monkeypatch.setattr(kafka_format, "new_cluster_id", lambda: dashed)
    jars = tmp_path / "jars"
    jars.symlink_to(fetch_jars(JARS))  # beside this link lies no data folder that was formatted before

    KafkaBroker(tmp_path / "broker")._prepare(jars)

    assert f"cluster.id={dashed}" in (tmp_path / "broker" / "data" / "meta.properties").read_text()


def test_topics_of_one_test_have_different_names_and_take_settings(
    kafka: KafkaAccess, topic: Callable[..., str]
) -> None:
    compacted, other = topic(cleanup_policy="compact"), topic(partitions=2)

    described = AdminClient(kafka.client()).list_topics(timeout=10).topics
    assert compacted != other
    assert (len(described[compacted].partitions), len(described[other].partitions)) == (1, 2)


def test_kafkas_own_tool_shows_the_lag_of_a_group(kafka: KafkaAccess, topic: Callable[..., str]) -> None:
    name = topic()
    send(kafka.client(), name, range(30))
    receive(kafka.client(), name, 30, group="slow")
    send(kafka.client(), name, range(12))

    described = kafka.consumer_groups_describe("slow")

    current, end, lag = re.search(rf"{name}\s+0\s+(\d+)\s+(\d+)\s+(\d+)", described).groups()  # type: ignore[union-attr]
    assert (current, end, lag) == ("30", "42", "12")


@pytest.mark.parametrize("listener", SECURED)
def test_secured_listeners_serve_clients_that_show_what_they_ask_for(secured: KafkaBroker, listener: str) -> None:
    name = secured.create_topic(f"over-{listener}")

    send(secured.client(listener), name, range(10))

    assert receive(secured.client(listener), name, 10, group=listener) == list(range(10))


@pytest.mark.parametrize(
    ("listener", "settings"),
    [
        ("SASL_PLAINTEXT", {"sasl.password": "open barley"}),
        ("SSL", {"ssl.certificate.location": "", "ssl.key.location": ""}),
    ],
)
def test_secured_listeners_refuse_others(secured: KafkaBroker, listener: str, settings: dict[str, Any]) -> None:
    with pytest.raises(KafkaException):
        AdminClient(secured.client(listener) | QUIET | settings).list_topics(timeout=1)


@pytest.mark.long
def test_a_killed_broker_comes_back_on_its_ports_with_all_messages(own_broker: Callable[..., KafkaBroker]) -> None:
    broker = own_broker(properties={"num.partitions": "2"})
    name = broker.create_topic("survives", partitions=2)
    address, pid = broker.bootstrap_servers, broker.pid
    send(broker.client(), name, range(1_000))

    broker.kill()
    assert not accepts_connections(LOOPBACK, int(address.split(":")[1]))
    broker.restart()

    assert broker.bootstrap_servers == address
    assert broker.pid != pid
    assert receive(broker.client(), name, 1_000) == list(range(1_000))
