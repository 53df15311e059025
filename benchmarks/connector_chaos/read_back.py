"""Reads what a job has committed, and compares two outputs per key and in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.connector_chaos.job import PARTITIONS

Steps = dict[int, list[tuple[int, int]]]
_decode = msgspec.json.Decoder(tuple[int, int, int]).decode


class Committed:
    """Follows the committed records of a topic, key by key."""

    def __init__(self, client: dict[str, Any], topic: str) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {"group.id": f"reader-{topic}", "isolation.level": "read_committed", "enable.auto.commit": False}
        self._consumer = Consumer({**client, **settings, "fetch.queue.backoff.ms": 10})
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        self.steps: Steps = {}
        self.count = 0

    def read(self) -> None:
        """Read what has come."""
        while messages := self._consumer.consume(10_000, 0.05):
            for message in messages:
                if message.error() is None:
                    key, count, total = _decode(message.value())
                    self.steps.setdefault(key, []).append((count, total))
                    self.count += 1

    def read_until(self, expected: int, deadline_s: float, check: Callable[[], None]) -> None:
        """Read until there are `expected` records, and a little longer: more than expected is as wrong as less."""
        until = time.monotonic() + deadline_s
        while self.count < expected:
            check()
            self.read()
            if time.monotonic() > until:
                raise AssertionError(f"{self.count} of {expected} records were committed after {deadline_s:.0f} s.")
        time.sleep(2)
        self.read()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def difference(disturbed: Steps, undisturbed: Steps) -> str | None:
    """The first difference between two outputs, as a sentence; None if they are equal.

    >>> difference({1: [(1, 5)]}, {1: [(1, 5), (2, 9)]})
    'Key 1: 1 records with kills, 2 without; the first difference is at place 1.'
    """
    for key in sorted(disturbed.keys() | undisturbed.keys()):
        one, other = disturbed.get(key, []), undisturbed.get(key, [])
        if one != other:
            pairs = enumerate(zip(one, other, strict=False))
            place = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
            return (
                f"Key {key}: {len(one)} records with kills, {len(other)} without; "
                f"the first difference is at place {place}."
            )
    return None
