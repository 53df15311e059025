"""Produces the job's input while kills happen: at a rate that outlasts them, never idle, and no record twice."""

from __future__ import annotations

import threading
import time
from typing import Any

import msgspec

from benchmarks.connector_chaos.job import partition_of

KEYS = 1000
_PAUSE_S = 0.05
#: The records that remain are spread over at least so many seconds: when a kill takes longer than expected, they come
#: slower and slower instead of ending.
_LEAST_SPREAD_S = 60.0
#: How long after its last record the feed counts as flowing.
_FLOWING_S = 1.0
_encode = msgspec.json.Encoder().encode


def record(number: int) -> tuple[int, int]:
    """The record with this number: (key, amount)."""
    return number % KEYS, (number * 7919) % 1009


class Feed:
    """Produces records 0 … total - 1 on a thread; `outlast` says how long they must last at least."""

    def __init__(self, client: dict[str, Any], topic: str, total: int) -> None:
        from confluent_kafka import Producer

        # One request at a time per partition and endless retries: the order within a partition stays.
        settings = {**client, "enable.idempotence": True, "delivery.timeout.ms": 300_000, "linger.ms": 5}
        self._producer = Producer(settings)
        self._topic = topic
        self.total = total
        self.sent = 0
        self._produced_at = 0.0
        self._until = time.monotonic() + 60
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> Feed:
        """Begin to produce."""
        self._thread.start()
        return self

    def outlast(self, seconds: float) -> None:
        """Make the remaining records last for so many seconds from now."""
        self._until = time.monotonic() + seconds

    def finish(self) -> None:
        """Produce the rest as quickly as possible, and wait until the broker has everything."""
        self._hurry.set()
        self._thread.join()
        assert self._producer.flush(120) == 0, "the broker did not take all records"

    @property
    def is_flowing(self) -> bool:
        """Whether records came a moment ago, and more will come."""
        return self.sent < self.total and time.monotonic() - self._produced_at < _FLOWING_S

    def _run(self) -> None:
        while self.sent < self.total:
            if self._hurry.is_set():
                self._produce(min(5000, self.total - self.sent))
            else:
                self._produce(max(1, round(self._rate() * _PAUSE_S)))
                self._hurry.wait(_PAUSE_S)

    def _rate(self) -> float:
        """Records per second."""
        return (self.total - self.sent) / max(_LEAST_SPREAD_S, self._until - time.monotonic())

    def _produce(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            key, amount = record(number)
            while True:
                try:
                    self._producer.produce(self._topic, _encode((key, amount)), partition=partition_of(key))
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)
        self.sent += count
        self._produced_at = time.monotonic()
