"""A Kafka producer that loses no error: the broker's refusal is raised by the next write or flush.

A callback per message would cost more than the message itself. One callback of the producer hears of failed deliveries
only, and it runs inside `poll` and `flush`, on the task's own thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rekindle.datastream.connectors.kafka.client_errors import (
    ClientErrors,
    connector_error,
    described,
    new_client,
)
from rekindle.datastream.connectors.kafka.client_properties import confluent_kafka
from rekindle.datastream.connectors.kafka.record_serializer import Message
from rekindle.errors import ConnectorError

#: How long one call waits inside librdkafka, so that signals are seen in between.
_SLICE_S = 0.5
#: How long the partitions of a topic are believed, for partitioners.
_PARTITIONS_AGE_S = 60.0
#: Error names of records that `close` throws away.
_PURGED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")


class ProducerClient:
    """A producer, its delivery errors and its back-pressure."""

    def __init__(self, properties: Mapping[str, Any], limit_s: float) -> None:
        """Make the client; it connects in the background. `limit_s` bounds calls that wait for the broker."""
        self.properties = properties
        self.limit_s = limit_s
        self.reports = ClientErrors()
        self._failed: list[tuple[Any, str]] = []
        self._lost = 0
        own = {"on_delivery": self._delivered, "delivery.report.only.error": True}
        self.client = new_client("Producer", {**properties, **own}, self.reports)
        #: librdkafka's own call, for loops that are hot; a BufferError is answered with `wait_and_produce`.
        self.produce = self.client.produce
        self._partitions: dict[str, tuple[float, list[int]]] = {}

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None or error.name() in _PURGED:
            return
        self._lost += 1
        if not self._failed:
            self._failed.append((error, message.topic()))

    # -- writing ------------------------------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """Produce a message, and wait while the queue is full."""
        try:
            self.produce(*message)
        except BufferError:
            self.wait_and_produce(message)
        except confluent_kafka().KafkaException as error:
            raise self.refused(error, message) from error

    def wait_and_produce(self, message: Message) -> None:
        """Wait until the full queue has room: this is the back-pressure."""
        while True:
            self._serve(self.client.poll, _SLICE_S)
            self.raise_failures()
            try:
                self.produce(*message)
                return
            except BufferError:
                continue

    def serve(self) -> None:
        """Hear of failed deliveries without waiting, and raise them."""
        self._serve(self.client.poll, 0)
        self.raise_failures()

    def flush(self) -> None:
        """Wait until the broker has confirmed every message, or has refused one: then raise."""
        while self._serve(self.client.flush, _SLICE_S) > 0:
            self.raise_failures()
        self.raise_failures()

    def _serve(self, call: Callable[[float], int], wait_s: float) -> int:
        """Call `poll` or `flush`. A fatal error, such as a fence, comes out of them, also while callbacks run."""
        try:
            return call(wait_s)
        except (confluent_kafka().KafkaException, SystemError) as error:
            fatal = error.__cause__ or error.__context__ if isinstance(error, SystemError) else error
            raise connector_error(fatal, "go on with this producer", self.properties, self.reports) from error

    def raise_failures(self) -> None:
        """Raise the first failed delivery since the last call."""
        if not self._failed:
            return
        (error, topic), lost = self._failed[0], self._lost
        self._failed, self._lost = [], 0
        messages = "a message" if lost == 1 else f"{lost} messages"
        raise connector_error(error, f"take {messages} for topic '{topic}'", self.properties, self.reports)

    def refused(self, error: Exception, message: Message) -> ConnectorError:
        """Return the error for a message that the client itself refuses, such as one that is too large."""
        found = next((each for each in error.args if hasattr(each, "txn_requires_abort")), None)
        words = described(found) if found is not None else f"{error}."
        size = len(message[1] or b"") + len((message[2] if len(message) > 2 else None) or b"")
        return ConnectorError(f"Kafka's client refuses a message of {size} bytes for topic '{message[0]}': {words}")

    # -- asking -------------------------------------------------------------------------------------------------------

    def partitions_of(self, topic: str) -> list[int]:
        """Return the partitions of a topic, from the broker every minute."""
        known = self._partitions.get(topic)
        if known is None or time.monotonic() - known[0] > _PARTITIONS_AGE_S:
            known = (time.monotonic(), self.check_topic(topic))
            self._partitions[topic] = known
        return known[1]

    def check_topic(self, topic: str) -> list[int]:
        """Return the partitions of a topic; a missing one, or a broker that is away, is told in a sentence.

        Where the broker makes topics by itself, the question makes it, so a missing one is asked for again.
        """
        package = confluent_kafka()
        until = time.monotonic() + min(self.limit_s, 2.0)
        while True:
            try:
                found = self.client.list_topics(topic, timeout=self.limit_s).topics[topic]
            except package.KafkaException as error:
                self.client.poll(0)
                raise connector_error(error, f"describe topic '{topic}'", self.properties, self.reports) from error
            if found.error is None and found.partitions:
                return sorted(found.partitions)
            if time.monotonic() > until:
                missing = found.error or package.KafkaError(package.KafkaError.UNKNOWN_TOPIC_OR_PART)
                raise connector_error(missing, f"find topic '{topic}'", self.properties, self.reports)
            self.client.poll(0.1)

    def close(self) -> None:
        """Throw away what is not sent yet, and end the client's threads without waiting for the broker."""
        self.client.purge()
        self.client.poll(0)
