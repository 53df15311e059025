"""The committer of an exactly-once Kafka sink: commits open transactions, and sends lost ones again.

The order of a recovery must not be changed; each step was seen to double or lose records without the one before it:
fence the ids in the committables, with their own ids and no others; read the tokens; send what they do not cover.
"""

from __future__ import annotations

from typing import Any

from rekindle.datastream.connectors.kafka.message_file import read_messages
from rekindle.datastream.connectors.kafka.transaction_number import PreparedTransaction, transactional_ids
from rekindle.datastream.connectors.kafka.transaction_pool import TransactionPool
from rekindle.datastream.connectors.kafka.transactional_producer import TransactionalProducer
from rekindle.datastream.connectors.sink_api import CommitRequest, Committer


class TransactionCommitter(Committer[Any]):
    """Commits transactions in the order of their checkpoints."""

    def __init__(self, pool: TransactionPool) -> None:
        self._pool = pool

    def commit(self, requests: list[CommitRequest[Any]]) -> None:
        """Commit all requests. A failure fails the task, and the next attempt recovers."""
        lost: list[tuple[CommitRequest[Any], PreparedTransaction]] = []
        for request in requests:
            prepared = PreparedTransaction.of(request.get_committable())
            if self._pool.has_open(prepared.number):
                self._pool.commit(prepared.number)
            elif prepared.records or request.get_number_of_retries():
                lost.append((request, prepared))
        if lost:
            self._recover(lost)

    def _recover(self, lost: list[tuple[CommitRequest[Any], PreparedTransaction]]) -> None:
        producers = self._pool.fence(self._ids_to_fence([prepared for _, prepared in lost]))
        try:
            self._send_uncovered(lost, producers)
        except BaseException:
            for producer in producers.values():
                producer.close()
            raise
        self._pool.keep(producers)

    def _send_uncovered(
        self,
        lost: list[tuple[CommitRequest[Any], PreparedTransaction]],
        producers: dict[str, TransactionalProducer],
    ) -> None:
        tokens: dict[tuple[str, int], dict[str, tuple[int, int]]] = {}
        for request, prepared in lost:
            if not prepared.records:
                continue
            writer = (prepared.number.prefix, prepared.number.subtask)
            if writer not in tokens:
                tokens[writer] = self._pool.tokens(writer[0]).read(writer[1])
            if prepared.number.is_covered_by(tokens[writer]):
                request.signal_already_committed()
            else:
                self._send_again(producers[prepared.number.transactional_id], prepared)

    def _ids_to_fence(self, lost: list[PreparedTransaction]) -> list[str]:
        """The ids of all old subtasks whose committables come here: any of them may have an open transaction."""
        parallelism = max(each.parallelism for each in lost)
        owned = range(self._pool.subtask, parallelism, self._pool.parallelism)
        subtasks = dict.fromkeys([*owned, *(each.number.subtask for each in lost)])
        prefixes = dict.fromkeys(each.number.prefix for each in lost)
        pool_size = max(each.pool_size for each in lost)
        return [name for prefix in prefixes for each in subtasks for name in transactional_ids(prefix, each, pool_size)]

    def _send_again(self, producer: TransactionalProducer, prepared: PreparedTransaction) -> None:
        producer.begin()
        for message in read_messages(prepared.path):
            producer.send(message)
        producer.flush()
        producer.commit(self._pool.tokens(prepared.number.prefix).message(prepared.number))

    def close(self) -> None:
        """Abort open transactions and close the producers: the task ends, and its writer is closed already."""
        self._pool.close()
