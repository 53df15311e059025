"""The producers of one subtask: from a barrier until its commit, the next interval goes into another transaction."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from rekindle.datastream.connectors.kafka.producer_client import ProducerClient
from rekindle.datastream.connectors.kafka.sink_settings import KafkaSinkSettings
from rekindle.datastream.connectors.kafka.token_topic import TokenTopic
from rekindle.datastream.connectors.kafka.transaction_number import (
    PreparedTransaction,
    TransactionNumber,
    transactional_ids,
)
from rekindle.datastream.connectors.kafka.transactional_producer import TransactionalProducer
from rekindle.errors import ConnectorError

#: So many producers stay open after all ids were fenced: one for the interval, one that waits for its commit.
_KEPT = 2


class TransactionPool:
    """Owns the producers with this subtask's transactional ids, which writer and committer share."""

    def __init__(self, settings: KafkaSinkSettings, subtask: int, parallelism: int) -> None:
        self.settings = settings
        self.subtask = subtask
        self.parallelism = parallelism
        self._tokens: dict[str, TokenTopic] = {}
        self._ids = transactional_ids(settings.prefix, subtask, settings.pool_size)
        self._ready: dict[str, TransactionalProducer] = {}  # fenced, without a transaction
        self._prepared: dict[TransactionNumber, TransactionalProducer] = {}
        self._written: TransactionalProducer | None = None
        self._done: set[str] = set()  # ids that this process has fenced

    def tokens(self, prefix: str) -> TokenTopic:
        """Return the token topic of a prefix."""
        return self._tokens.setdefault(prefix, TokenTopic(self.settings, prefix))

    # -- fencing ------------------------------------------------------------------------------------------------------

    def fence(self, ids: Iterable[str]) -> dict[str, TransactionalProducer]:
        """Return a fenced producer for each id; those of this subtask that are fenced already are taken as they are."""
        wanted = list(dict.fromkeys(ids))
        new = [each for each in wanted if each not in self._ready]
        with ThreadPoolExecutor(max_workers=max(1, len(new))) as threads:  # most of the time is waiting
            made = dict(zip(new, threads.map(self._fenced, new), strict=True))
        return {each: made.get(each) or self._ready[each] for each in wanted}

    def _fenced(self, name: str) -> TransactionalProducer:
        producer = TransactionalProducer(self.settings, name)
        producer.fence()
        self._done.add(name)
        return producer

    def keep(self, producers: dict[str, TransactionalProducer]) -> None:
        """Keep some producers of this subtask's ids for its writer, and close the others."""
        for name, producer in producers.items():
            if name in self._ids[:_KEPT] and not producer.worn:
                self._ready[name] = producer
            else:
                self._ready.pop(name, None)
                producer.close()

    def fence_own(self) -> ProducerClient:
        """Fence all ids of this subtask, also those that only an attempt without a checkpoint may have used.

        The ids of subtasks that an earlier run had and this one lacks are dealt out among the subtasks: such a run may
        have died before its first checkpoint, and its open transactions would hold up readers until they time out.
        Return a producer with which to ask the broker.
        """
        subtasks = self.tokens(self.settings.prefix).ensure(self.parallelism)
        for subtask in range(self.subtask, subtasks, self.parallelism):
            ids = transactional_ids(self.settings.prefix, subtask, self.settings.pool_size)
            self.keep(self.fence(each for each in ids if each not in self._done))
        return self._ready[self._ids[0]]

    # -- transactions -------------------------------------------------------------------------------------------------

    def begin(self) -> TransactionalProducer:
        """Begin a transaction with a free id."""
        busy = {producer.transactional_id for producer in self._prepared.values()}
        free = next((each for each in self._ids if each not in busy), None)
        if free is None:
            raise ConnectorError(
                f"All {len(self._ids)} transactions of the Kafka sink with prefix '{self.settings.prefix}' wait for a "
                "completed checkpoint: see why checkpoints fail, or allow more with KafkaSinkBuilder"
                ".set_producer_pool_size()."
            )
        producer = self._ready.pop(free, None) or self._fenced(free)
        producer.begin()
        self._written = producer
        return producer

    def prepared(self, prepared: PreparedTransaction) -> None:
        """The interval has ended: its transaction waits for its checkpoint."""
        assert self._written is not None
        self._prepared[prepared.number] = self._written
        self._written = None

    def has_open(self, number: TransactionNumber) -> bool:
        """Whether this process holds the transaction."""
        return number in self._prepared

    def commit(self, number: TransactionNumber) -> None:
        """Commit a transaction that this process holds, with its token."""
        producer = self._prepared[number]
        producer.commit(self.tokens(number.prefix).message(number))
        del self._prepared[number]
        if producer.worn:
            producer.close()
        else:
            self._ready[producer.transactional_id] = producer

    def close(self) -> None:
        """Abort open transactions, and close all producers. Prepared transactions are in the checkpoint's files."""
        producers = [*self._ready.values(), *self._prepared.values()]
        if self._written is not None:
            producers.append(self._written)
        self._ready, self._prepared, self._written = {}, {}, None
        for producer in producers:
            producer.close()
