"""Kafka as the job's output: a topic on the broker of the input, written exactly once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from benchmarks.connector_chaos.job import PARTITIONS
from benchmarks.connector_chaos.kill_plan import Victim
from benchmarks.connector_chaos.outputs import Written
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import QUIET

_MORE_S = 2.0
_decode = msgspec.json.Decoder(tuple[int, int, int]).decode


class KafkaOutput:
    """Topics of the same broker."""

    commits = True

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker

    def __enter__(self) -> KafkaOutput:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    @property
    def servers(self) -> Mapping[Victim, Any]:
        """None besides the broker of the input."""
        return {}

    def create(self, name: str) -> None:
        """Make the topic."""
        self._broker.create_topic(name, PARTITIONS)

    def arguments(self, name: str) -> dict[str, Any]:
        """The broker and the topic."""
        return {"kind": "kafka", "bootstrap": self._broker.bootstrap_servers, "topic": name}

    def read(self, name: str, records: int, deadline_s: float) -> Written:
        """Read committed messages, key by key: (how many, their sum) for each record."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {"group.id": f"reader-{name}", "isolation.level": "read_committed", "enable.auto.commit": False}
        consumer = Consumer({**self._broker.client(), **QUIET, **settings, "fetch.queue.backoff.ms": 10})
        consumer.assign([TopicPartition(name, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        steps: Written = {}
        count, until = 0, time.monotonic() + deadline_s
        try:
            while time.monotonic() < until:
                count += _read_what_has_come(consumer, steps)
                if count >= records:
                    until = min(until, time.monotonic() + _MORE_S)
                    records = count + 1  # once more messages than expected come, they are read too
        finally:
            consumer.close()
        return steps


def _read_what_has_come(consumer: Any, steps: Written) -> int:
    count = 0
    while messages := consumer.consume(10_000, 0.05):
        for message in messages:
            if message.error() is None:
                key, number, total = _decode(message.value())
                steps.setdefault(key, []).append((number, total))
                count += 1
    return count
