"""The names of Kafka clients' properties, librdkafka's by the clients that take them, and Java's.

librdkafka has no call that lists them, and it only warns of a property that belongs to the other client. The tables are
made from librdkafka's CONFIGURATION.md and from the option classes of Kafka's Java clients (`tools/key_tables.py`).
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Final

from rekindle.common.name_tables import table_lines

#: Callables that confluent-kafka takes beside librdkafka's properties.
CALLBACKS: Final = frozenset({"error_cb", "oauth_cb", "stats_cb", "throttle_cb"})


class Client(StrEnum):
    """The clients that take a property, as librdkafka's table has them."""

    BOTH = "*"
    CONSUMER = "C"
    PRODUCER = "P"


@cache
def librdkafka_names(*clients: Client) -> frozenset[str]:
    """The properties of these clients, and those of both.

    >>> names = librdkafka_names(Client.CONSUMER)
    >>> "client.id" in names, "group.id" in names, "linger.ms" in names
    (True, True, False)
    """
    lines = (line.split() for line in table_lines("rekindle.datastream.connectors.kafka", "librdkafka_names.txt"))
    return frozenset(name for taken_by, name in lines if taken_by in (*clients, Client.BOTH))


@cache
def java_names() -> frozenset[str]:
    """The properties of Java's consumers and producers.

    >>> "key.deserializer" in java_names()
    True
    """
    return frozenset(table_lines("rekindle.datastream.connectors.kafka", "java_names.txt"))
