"""Sends numbered messages to a topic and reads them back with confluent-kafka, quietly and with deadlines."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from tools.servers.kafka_access import QUIET

DEADLINE_S = 60.0


def send(client: dict[str, Any], topic: str, numbers: Iterable[int]) -> None:
    """Send the numbers, and return when the broker has acknowledged all of them."""
    failed: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error:
            failed.append(error)

    producer = Producer(client | QUIET | {"enable.idempotence": True})
    for number in numbers:
        producer.produce(topic, str(number).encode(), on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    assert not failed


def receive(client: dict[str, Any], topic: str, count: int, group: str = "readers") -> list[int]:
    """Read this many messages of the topic from its beginning, commit their offsets, and return them sorted."""
    consumer = Consumer(client | QUIET | {"group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    received: list[int] = []
    until = time.monotonic() + DEADLINE_S
    try:
        while len(received) < count:
            assert time.monotonic() < until, f"{len(received)} of {count} messages came"
            received += [int(_value(message)) for message in consumer.consume(count - len(received), timeout=0.2)]
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return sorted(received)


def _value(message: Any) -> bytes:
    if message.error():
        raise KafkaException(message.error())
    return bytes(message.value())
