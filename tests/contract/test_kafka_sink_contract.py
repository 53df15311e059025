"""The contract of exactly-once sinks, for the Kafka sink on a real broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rekindle.testing.sink_contract import SinkContract, SinkUnderTest
from tests.integration.kafka.kafka_reading import values
from tests.integration.kafka.sink_jobs import builder
from tools.servers.kafka_access import KafkaAccess


class TestKafkaSink(SinkContract):
    @pytest.fixture
    def sink(self, kafka: KafkaAccess, topic: Callable[..., str]) -> SinkUnderTest:
        name = topic(partitions=2)
        return SinkUnderTest(builder(kafka.bootstrap_servers, name).build, lambda: values(kafka, name))
