"""A producer with a transactional id: fence, begin, commit with a token, abort.

librdkafka does not know KIP-890: after a call that timed out, its late answer may reach the next transaction. Such a
producer is `worn`, and the pool replaces it by a new one with the same id. A fenced producer is never replaced:
somebody else has taken over, so the task fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rekindle.datastream.connectors.kafka.client_errors import connector_error, error_name
from rekindle.datastream.connectors.kafka.client_properties import confluent_kafka
from rekindle.datastream.connectors.kafka.producer_client import ProducerClient
from rekindle.datastream.connectors.kafka.record_serializer import Message
from rekindle.datastream.connectors.kafka.sink_settings import KafkaSinkSettings

#: How long one call waits before it is called again, until the limit.
_CALL_S = 5.0
_CLOSE_S = 5.0


class TransactionalProducer(ProducerClient):
    """A producer of one transactional id."""

    def __init__(self, settings: KafkaSinkSettings, transactional_id: str) -> None:
        super().__init__(settings.transactional(transactional_id), settings.limit_s)
        self.transactional_id = transactional_id
        #: Whether a commit timed out: no further transaction may begin here.
        self.worn = False
        self._open = False

    def fence(self) -> None:
        """End every transaction of this id that somebody else has open, and keep its owners from committing any."""
        self._until_done(self.client.init_transactions, f"begin with transactional id '{self.transactional_id}'")

    def begin(self) -> None:
        """Begin a transaction; this does not ask the broker."""
        self._until_done(lambda _: self.client.begin_transaction(), self._doing("begin"))
        self._open = True

    def commit(self, token: Message) -> None:
        """Commit the transaction together with its token."""
        self.send(token)
        self._until_done(self.client.commit_transaction, self._doing("commit"))
        self._open = False
        self.raise_failures()

    def close(self) -> None:
        """Abort an open transaction, so that it does not hold up readers, and end the client."""
        package = confluent_kafka()
        if self._open:
            self._open = False
            with suppress(package.KafkaException):  # the next attempt fences the id
                self.client.abort_transaction(_CLOSE_S)
        super().close()

    def _doing(self, verb: str) -> str:
        return f"{verb} a transaction of '{self.transactional_id}'"

    def _until_done(self, call: Callable[[float], Any], doing: str) -> None:
        """Call, and call again while the error is retriable, within the limit: a call that timed out goes on."""
        package = confluent_kafka()
        until = time.monotonic() + self.limit_s
        while True:
            left_s = until - time.monotonic()
            try:
                call(max(0.1, min(left_s, _CALL_S)))
                return
            except package.KafkaException as error:
                self.worn = self._open
                if not error.args[0].retriable() or left_s <= 0 or error_name(error) == "_FENCED":
                    self.raise_failures()
                    raise connector_error(error, doing, self.properties, self.reports) from error
                time.sleep(min(0.1, max(left_s, 0)))
