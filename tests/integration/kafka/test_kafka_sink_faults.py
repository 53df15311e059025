"""The Kafka sink when its broker is killed, and over listeners that ask for passwords and certificates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.kafka.kafka_reading import values
from tests.integration.kafka.sink_jobs import AT_LEAST_ONCE, EXACTLY_ONCE, NUMBERS, builder, job_of
from tests.support.certificates import make_files
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_listeners import sasl_plain, tls

PASSWORD = "open sesame"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="shop" password="{}";'


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaBroker, Any]]:
    """A broker with a listener for passwords and one for TLS, and the TLS files."""
    files = make_files(tmp_path_factory.mktemp("tls") / "files")
    listeners = [sasl_plain("shop", PASSWORD), tls(files.certificate, files.key, files.authority)]
    with KafkaBroker(listeners=listeners) as broker:
        yield broker, files


def test_a_broker_that_is_killed_between_barrier_and_commit_is_waited_for(
    own_broker: Callable[..., KafkaBroker],
) -> None:
    """Also between records; the same job goes on, and nothing is lost or doubled."""
    broker = own_broker()
    name = broker.create_topic("survives", partitions=2)
    at_least_once = broker.create_topic("again")
    jobs = [
        job_of(builder(broker.bootstrap_servers, name, EXACTLY_ONCE).build(), 1),
        job_of(builder(broker.bootstrap_servers, at_least_once, AT_LEAST_ONCE).build(), 1),
    ]
    waiting = []
    for job in jobs:
        job.checkpoint()
        waiting.append(job.checkpoint(complete=False))
        job.epoch()
    broker.kill()
    back = threading.Timer(3.0, broker.restart)
    back.start()

    for job, checkpoint in zip(jobs, waiting, strict=True):
        job.complete(checkpoint)
        job.run()

    back.join()
    assert values(broker, name) == NUMBERS
    assert values(broker, at_least_once) == NUMBERS


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_javas_names_for_a_login_work(secured: tuple[KafkaBroker, Any], guarantee: Any) -> None:
    broker, _ = secured
    name = broker.create_topic(f"login-{guarantee.name.lower()}")
    properties = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    sink = builder(broker.addresses["SASL_PLAINTEXT"], name, guarantee, **properties)
    sink.set_property("sasl.jaas.config", JAAS.format(PASSWORD))
    job_of(sink.build(), 1).run()
    assert values(broker, name) == NUMBERS


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_wrong_password_is_told_without_the_password(
    secured: tuple[KafkaBroker, Any], guarantee: Any, caplog: pytest.LogCaptureFixture
) -> None:
    broker, _ = secured
    properties = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "max_block_ms": 2000}
    sink = builder(broker.addresses["SASL_PLAINTEXT"], "any", guarantee, **properties)
    sink.set_property("sasl.jaas.config", JAAS.format("open barley"))
    with pytest.raises(Exception) as caught:
        job_of(sink.build(), 1)
    told = str(caught.value.__cause__)
    assert "the broker refused the login: check sasl.mechanism, sasl.username and sasl.password" in told
    assert "barley" not in told + caplog.text


def test_javas_names_for_certificates_work(secured: tuple[KafkaBroker, Any]) -> None:
    broker, files = secured
    name = broker.create_topic("encrypted")
    properties: dict[str, Any] = {"security_protocol": "SSL", "ssl_truststore_type": "PEM"}
    sink = builder(broker.addresses["SSL"], name, **properties)
    sink.set_property("ssl.truststore.location", str(files.authority))
    job_of(sink.build(), 1).run()
    assert values(broker, name) == NUMBERS
