"""Sends the generated orders to a Kafka topic, as a shop would: a program beside the job, or a thread of one.

    python -m examples.orders.produce --bootstrap localhost:9092 --orders 2000 --rate 500

It makes the topics that are missing, for orders and for results, and ends when the broker has every event. The job
must have the same feed: with `--orders` it knows from it where each partition ends.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

import msgspec
from confluent_kafka import KafkaException, Producer

from examples.orders.kafka_ends import partition_of
from examples.orders.kafka_topics import create_topics
from examples.orders.options import add_options, chosen
from examples.orders.records import OrderEvent
from examples.orders.settings import Feed, Settings, millis
from examples.orders.source import whole_feed
from rekindle.datastream.connectors.datagen import RateLimiterStrategy

_PAUSE_S = 0.05
_AT_ONCE = 2000
_FLUSH_S = 120.0
#: Of a feed whose total is known, the last events come at a tenth of the rate until `hurry`.
_SLOW_SHARE = 0.1


class OrderProducer:
    """Sends a feed's events to the topic of orders, on a thread: each once, and in order within its partition."""

    def __init__(self, client: dict[str, Any], settings: Settings, feed: Feed) -> None:
        # The broker drops what a retry sends again, and retries have no end: nothing is lost, twice or swapped.
        reliable = {"enable.idempotence": True, "delivery.timeout.ms": 0, "linger.ms": 5}
        self._producer = Producer({**client, **reliable})
        self._topic = settings.source_topic
        self._feed = feed
        self._reader = whole_feed(feed, millis(settings.out_of_orderness_s))
        self.sent = 0
        self._slow_after: float | None = None
        self._hurry, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders producer", daemon=True)

    def start(self, total: int | None = None) -> OrderProducer:
        """Begin. If the total of events is given, the last tenth is sent slowly, so that `hurry` ends the feed."""
        self._slow_after = None if total is None else total * (1 - _SLOW_SHARE)
        self._thread.start()
        return self

    def send(self, count: int) -> None:
        """Instead of `start`: send the next events now, and wait until the broker has them."""
        self._send(self._reader.poll(count) or [])
        self.wait()

    def hurry(self) -> None:
        """Send the rest as fast as it goes."""
        self._hurry.set()

    def wait(self) -> None:
        """Wait until the broker has every event."""
        while self._thread.is_alive():  # in steps, so that Ctrl-C is heard
            self._thread.join(_PAUSE_S)
        if left := self._producer.flush(_FLUSH_S):
            raise TimeoutError(f"The broker did not take the last {left} events within {_FLUSH_S:.0f} s.")

    def close(self) -> None:
        """End the thread; events that the broker does not have yet are dropped."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._producer.purge()
        self._producer.flush(0)

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        limiter = RateLimiterStrategy(self._feed.rate).create_rate_limiter(1)
        while not self._over.is_set():
            free = _AT_ONCE if limiter is None or self._hurry.is_set() else min(_AT_ONCE, limiter.available())
            share = 10 if self._is_slow() else 1
            events = self._reader.poll(free // share)
            if events is None:
                return
            self._send(events)
            if limiter is not None and not self._hurry.is_set():
                limiter.take(len(events) * share)
                self._hurry.wait(_PAUSE_S)

    def _is_slow(self) -> bool:
        return self._slow_after is not None and self.sent > self._slow_after and not self._hurry.is_set()

    def _send(self, events: list[OrderEvent]) -> None:
        for event in events:
            message, key = msgspec.json.encode(event), event.order_id.encode()
            partition = partition_of(event.order_id, self._feed.splits)
            while not self._over.is_set():
                try:
                    self._producer.produce(self._topic, message, key, partition)
                    break
                except BufferError:
                    self._producer.poll(_PAUSE_S)
        self._producer.poll(0)
        self.sent += len(events)


def main(words: Sequence[str] | None = None) -> int:
    """Make missing topics, send the feed, and wait until the broker has it."""
    arguments = parse_arguments(words)
    settings, feed = chosen(Settings, arguments), chosen(Feed, arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    client = {"bootstrap.servers": settings.bootstrap, "log_level": 0}
    try:
        create_topics(client, settings, feed)
    except KafkaException as error:
        print(f"The topics could not be made at Kafka {settings.bootstrap}: {error.args[0].str()}", file=sys.stderr)
        return 1
    producer = OrderProducer(client, settings, feed).start()
    try:
        producer.wait()
    except KeyboardInterrupt:
        producer.close()
        print(f"Interrupted after {producer.sent:,} events.", flush=True)
        return 128 + signal.SIGINT
    print(f"Sent {producer.sent:,} events to '{settings.source_topic}'.", flush=True)
    return 0


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The program's options, which are those of the job: it uses the topics, the lateness and the feed."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.orders.produce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser, Settings, "the job")
    add_options(parser, Feed, "the generated orders")
    return parser.parse_args(words)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
