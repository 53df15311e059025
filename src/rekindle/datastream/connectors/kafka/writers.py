"""The writers of a Kafka sink: at least once with one producer, exactly once with a transaction per checkpoint."""

from __future__ import annotations

import logging
import os
from itertools import count
from typing import Any

from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.interval_file import IntervalFile
from rekindle.datastream.connectors.kafka.client_properties import confluent_kafka
from rekindle.datastream.connectors.kafka.message_file import message_file
from rekindle.datastream.connectors.kafka.producer_client import ProducerClient
from rekindle.datastream.connectors.kafka.record_serializer import Message
from rekindle.datastream.connectors.kafka.sink_settings import KafkaSinkSettings
from rekindle.datastream.connectors.kafka.transaction_number import (
    PreparedTransaction,
    TransactionNumber,
    transactional_id,
)
from rekindle.datastream.connectors.kafka.transaction_pool import TransactionPool
from rekindle.datastream.connectors.kafka.transactional_producer import TransactionalProducer
from rekindle.datastream.connectors.sink_api import CommittableFile, CommittingSinkWriter, SinkWriter, WriterInitContext
from rekindle.errors import ConnectorError

_LOG = logging.getLogger("rekindle.kafka")
#: After so many messages the writer hears of failed deliveries, and the file gets a frame.
_SERVE_EVERY = 1000


class ProducerWriter(SinkWriter[Any]):
    """Writes with one producer. At a barrier it waits for the broker's confirmation, unless the guarantee is NONE."""

    def __init__(self, settings: KafkaSinkSettings, client: ProducerClient) -> None:
        self._client = client
        self._produce = client.produce
        self._message = settings.serializer.messages(client.partitions_of)
        self._waits = settings.guarantee is not DeliveryGuarantee.NONE
        self._log_only = settings.log_failures_only
        self._unserved = 0
        self._refusals = confluent_kafka().KafkaException

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        """Hand the record's message to the client, which sends it in the background."""
        message = self._message(element, context)
        try:
            self._produce(*message)
        except BufferError:
            self._client.wait_and_produce(message)
        except self._refusals as error:
            self._raise_or_log(self._client.refused(error, message), error)
        self._unserved += 1
        if self._unserved == _SERVE_EVERY:
            self._unserved = 0
            self._call(self._client.serve)

    def flush(self, end_of_input: bool) -> None:
        """Wait until every message is confirmed; with NONE only at the end of the input."""
        self._call(self._client.flush if self._waits or end_of_input else self._client.serve)

    def _call(self, call: Any) -> None:
        try:
            call()
        except ConnectorError as error:
            self._raise_or_log(error, None)

    def _raise_or_log(self, error: ConnectorError, cause: Exception | None) -> None:
        if not self._log_only:
            raise error from cause
        _LOG.error("%s", error)

    def close(self) -> None:
        """End the client."""
        self._client.close()


class TransactionWriter(CommittingSinkWriter[Any, CommittableFile]):
    """Writes each record into the open transaction, and into the file with which a lost transaction is sent again."""

    def __init__(self, settings: KafkaSinkSettings, pool: TransactionPool, context: WriterInitContext) -> None:
        self._settings = settings
        self._pool = pool
        self._context = context
        self._message: Any = None
        self._refusals = confluent_kafka().KafkaException
        self._numbers = count(1)
        self._producer: TransactionalProducer | None = None
        self._file: IntervalFile | None = None
        self._pending: list[Message] = []

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        """Hand the record's message to the open transaction."""
        producer = self._producer or self._begin()
        message = self._message(element, context)
        try:
            producer.produce(*message)
        except BufferError:
            producer.wait_and_produce(message)
        except self._refusals as error:
            raise producer.refused(error, message) from error
        pending = self._pending
        pending.append(message)
        if len(pending) == _SERVE_EVERY:
            self._keep_pending()
            producer.serve()

    def _begin(self) -> TransactionalProducer:
        self._number = next(self._numbers)
        self._producer = self._pool.begin()
        self._message = self._settings.serializer.messages(self._producer.partitions_of)
        self._file = message_file(os.path.join(self._context.directory, f"interval-{self._number}"))
        return self._producer

    def _keep_pending(self) -> None:
        assert self._file is not None
        self._file.append(self._pending)
        self._pending = []

    def flush(self, end_of_input: bool) -> None:
        """Wait until the broker has every message: one that it refuses fails here, before the checkpoint counts."""
        if self._producer is not None:
            self._producer.flush()

    def prepare_commit(self) -> list[CommittableFile]:
        """End the interval. An empty one has a committable too: a restore fences the ids that it names."""
        if self._producer is None:
            return [self._empty_interval().committable()]
        assert self._file is not None
        self._keep_pending()
        self._file.finish()
        prepared = self._prepared(self._producer.transactional_id, self._number, self._file)
        self._pool.prepared(prepared)
        self._producer = self._file = None
        return [prepared.committable()]

    def _empty_interval(self) -> PreparedTransaction:
        number = next(self._numbers)
        file = message_file(os.path.join(self._context.directory, f"interval-{number}"))
        file.finish()
        return self._prepared(transactional_id(self._settings.prefix, self._context.subtask, 0), number, file)

    def _prepared(self, name: str, number: int, file: IntervalFile) -> PreparedTransaction:
        context = self._context
        named = TransactionNumber(name, context.subtask, context.timeline, context.attempt, number)
        return PreparedTransaction(named, file.items, file.path, context.parallelism, self._settings.pool_size)

    def close(self) -> None:
        """Remove an unfinished file; the committer aborts the transaction."""
        if self._file is not None:
            self._file.discard()
