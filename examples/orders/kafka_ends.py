"""Kafka as source and sink of the job: orders come from a topic as JSON, each stream of results goes to its own topic.

Order n is in partition n mod `Feed.splits`, with all its events: so a partition has its events in the order in which
they arrived, and its watermark holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from examples.orders.feed import OrderLives
from examples.orders.records import OrderEvent
from examples.orders.settings import Feed, Settings, millis
from rekindle.datastream.connectors import DeliveryGuarantee, Sink
from rekindle.datastream.connectors.base import Source
from rekindle.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)

#: The field that is the key of a stream's messages: all results of a key are in one partition, in their order.
KEYS = {
    "dropped": "order_id",
    "statuses": "order_id",
    "rejected": "order_id",
    "purchases": "user_id",
    "late-purchases": "user_id",
    "stock": "product_id",
    "low-stock": "product_id",
    "back-orders": "product_id",
}
#: Small fetches: partitions are read in turn, so that a job that catches up does not run ahead in one of them. Events
#: that are ahead of the watermark, which is that of the last partition, would wait in state.
_FETCH_BYTES = 32_768
_DECODER = msgspec.json.Decoder(OrderEvent)


def decode_event(message: bytes) -> OrderEvent:
    """The event of a message; one that does not fit is an error that names the field.

    >>> decode_event(b'{"order_id": 7}')
    Traceback (most recent call last):
        ...
    msgspec.ValidationError: Expected `str`, got `int` - at `$.order_id`
    """
    return _DECODER.decode(message)


def partition_of(order_id: str, partitions: int) -> int:
    """The partition of an order, the same split in which the generator has it.

    >>> partition_of("order-00000014", 12)
    2
    """
    return int(order_id.removeprefix("order-")) % partitions


def kafka_source(settings: Settings, feed: Feed) -> Source[OrderEvent]:
    """The source of a topic of orders. It ends after the feed's last event, if the feed has a number of orders."""
    builder = (
        KafkaSource.builder()
        .set_bootstrap_servers(settings.bootstrap)
        .set_topics(settings.source_topic)
        .set_group_id(settings.job_name)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(decode_event)
        .set_property("max.partition.fetch.bytes", _FETCH_BYTES)
    )
    if feed.orders is not None:
        counts = events_per_partition(feed, millis(settings.out_of_orderness_s))
        stops = {KafkaTopicPartition(settings.source_topic, number): count for number, count in counts.items()}
        builder.set_bounded(KafkaOffsetsInitializer.offsets(stops))
    return builder.build()


def events_per_partition(feed: Feed, out_of_orderness_ms: int) -> dict[int, int]:
    """How many events of a bounded feed each partition gets: its end, known before the first one is sent.

    >>> events_per_partition(Feed(orders=3, splits=2, duplicates=0, cancellations=0, misfits=0), 5000)
    {0: 8, 1: 4}
    """
    assert feed.orders is not None, "a feed without end has no last event"
    lives, counts = OrderLives(feed, out_of_orderness_ms), Counter(dict.fromkeys(range(feed.splits), 0))
    for order in range(feed.orders):
        counts[order % feed.splits] += len(lives.arrivals(order))
    return dict(counts)


def kafka_sink(settings: Settings, stream: str) -> Sink[Any]:
    """A sink that writes a stream's results as JSON to the stream's topic, each exactly once."""
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(result_topic(settings, stream))
        .set_value_serialization_schema(msgspec.json.encode)
    )
    if stream in KEYS:
        serializer.set_key_serialization_schema(_key(KEYS[stream]))
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(settings.bootstrap)
        .set_record_serializer(serializer.build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"{settings.job_name}-{stream}")
        .build()
    )


def result_topic(settings: Settings, stream: str) -> str:
    """The topic of a stream of results.

    >>> result_topic(Settings(), "low-stock")
    'orders-low-stock'
    """
    return f"{settings.sink_topics}{stream}"


def _key(field: str) -> Callable[[Any], bytes]:
    return lambda result: str(getattr(result, field)).encode()
