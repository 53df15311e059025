"""Looks at Kafka's group and at HBase from outside, as any other program could, and checks the pipeline's rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

from examples.kafka_to_hbase.job import Place, row_of

_BATCH = 1000


class RuleBroken(AssertionError):
    """An offset is committed whose row is not in HBase."""


class Observer:
    """Reads the group's offsets first, then HBase: every committed offset must have its row by then."""

    def __init__(self, place: Place, partitions: int) -> None:
        from confluent_kafka import Consumer

        settings = {"bootstrap.servers": place.bootstrap_servers, "group.id": place.group, "log_level": 0}
        self._consumer = Consumer({**settings, "enable.auto.commit": False})
        self._place = place
        self._partitions = range(partitions)
        self._table: Any = None
        #: The offsets below this one have their rows.
        self.seen: Counter[int] = Counter()
        self.looks = 0

    def look(self) -> int:
        """Check the offsets that were committed since the last look; return how many.

        RuleBroken names the first row that is not there. An error of Kafka's or HBase's client says nothing about the
        rule: it is raised as it is, and the next look checks the same offsets again.
        """
        committed = self._committed()
        checked = 0
        for partition, offset in committed.items():
            for begin in range(self.seen[partition], offset, _BATCH):
                offsets = range(begin, min(begin + _BATCH, offset))
                self._check(partition, offsets)
                self.seen[partition] = offsets.stop
                checked += len(offsets)
        self.looks += 1
        return checked

    def _committed(self) -> dict[int, int]:
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(self._place.topic, partition) for partition in self._partitions]
        answer = self._consumer.committed(asked, timeout=5)
        return {each.partition: each.offset for each in answer if each.error is None and each.offset > 0}

    def _check(self, partition: int, offsets: range) -> None:
        rows = [row_of(partition, offset) for offset in offsets]
        try:
            found = dict(self._opened().rows(rows))
        except Exception:
            self._table = None  # a connection is not used again after an error
            raise
        for row in rows:
            if row not in found:
                raise RuleBroken(f"The group '{self._place.group}' has committed {row!r}, which is not in HBase.")

    def _opened(self) -> Any:
        if self._table is None:
            import happybase

            host, _, port = self._place.thrift_servers.partition(":")
            self._table = happybase.Connection(host, int(port), timeout=10_000).table(self._place.table)
        return self._table

    def close(self) -> None:
        """Close the clients."""
        self._consumer.close()
