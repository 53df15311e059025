"""The settings of a Kafka source: Flink's own keys, and the properties of Kafka's client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rekindle.datastream.connectors.kafka.client_properties import admin_properties, consumer_properties
from rekindle.datastream.connectors.kafka.offsets_initializers import KafkaOffsetResetStrategy
from rekindle.errors import ConfigurationError

#: Kafka's own default of `request.timeout.ms`.
_DEFAULT_TIMEOUT_MS = 30_000
#: The first of these that is set says how long the driver waits for an answer.
_TIMEOUTS = ("default.api.timeout.ms", "request.timeout.ms", "socket.timeout.ms")
#: Kafka's client wants a group also where it never uses one.
_NO_GROUP = "rekindle-without-group"
_RESETS = {
    "earliest": KafkaOffsetResetStrategy.EARLIEST,
    "smallest": KafkaOffsetResetStrategy.EARLIEST,
    "beginning": KafkaOffsetResetStrategy.EARLIEST,
    "latest": KafkaOffsetResetStrategy.LATEST,
    "largest": KafkaOffsetResetStrategy.LATEST,
    "end": KafkaOffsetResetStrategy.LATEST,
    "none": KafkaOffsetResetStrategy.NONE,
    "error": KafkaOffsetResetStrategy.NONE,
}


@dataclass(frozen=True)
class SourceSettings:
    """The checked settings of a Kafka source. The properties may hold passwords: no repr shows them."""

    properties: Mapping[str, Any] = field(repr=False)
    reset: KafkaOffsetResetStrategy
    discovery_interval_ms: int | None
    commit_on_checkpoints: bool
    auto_commit: bool
    #: Whether the source stops at given offsets: then its reader must hear of the end of a partition.
    stops: bool
    timeout_s: float

    @property
    def servers(self) -> str:
        """The address of the cluster."""
        return str(self.properties.get("bootstrap.servers") or self.properties.get("metadata.broker.list"))

    @property
    def group_id(self) -> str | None:
        """The consumer group, to which offsets are committed."""
        return self.properties.get("group.id")

    @property
    def reads_committed(self) -> bool:
        """Whether only records of committed transactions are read."""
        return str(self.properties.get("isolation.level", "read_committed")).lower() == "read_committed"

    def admin(self) -> dict[str, Any]:
        """Return the properties of the driver's client."""
        return {"client.id": self._client_id("driver"), **admin_properties(self._without_client_id())}

    def consumer_of_group(self) -> dict[str, Any]:
        """Return the properties of a client that asks for the group's offsets and reads nothing."""
        ruled = {"client.id": self._client_id("driver"), "enable.auto.commit": False}
        return consumer_properties(self._without_client_id()) | ruled

    def consumer(self, subtask: int, periodic_commits: bool) -> dict[str, Any]:
        """Return the properties of a reader's client."""
        chosen = {
            "fetch.queue.backoff.ms": 10,  # librdkafka's second is far too long for a reader that keeps up
            "queued.max.messages.kbytes": 16_384,
            "group.id": _NO_GROUP,
            "client.id": self._client_id(str(subtask)),
        }
        ruled = {
            "enable.auto.commit": periodic_commits,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",  # the reader itself decides about offsets that are out of range
            "enable.partition.eof": self.stops,  # a partition may end with offsets that hold no record
        }
        return chosen | consumer_properties(self._without_client_id()) | ruled

    def _without_client_id(self) -> dict[str, Any]:
        return {name: value for name, value in self.properties.items() if name != "client.id"}

    def _client_id(self, part: str) -> str:
        properties = self.properties
        prefix = properties.get("client.id.prefix") or properties.get("client.id") or self.group_id or "rekindle-source"
        return f"{prefix}-{part}"


def timeout_s(properties: Mapping[str, Any]) -> float:
    """Return how long the driver waits for an answer of the cluster.

    >>> timeout_s({"request.timeout.ms": "5000"})
    5.0
    """
    name = next((each for each in _TIMEOUTS if each in properties), None)
    return (_DEFAULT_TIMEOUT_MS if name is None else number_of(properties, name, 0)) / 1000


def number_of(properties: Mapping[str, Any], name: str, default: int) -> int:
    """Return a property that is a whole number."""
    value = properties.get(name, default)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ConfigurationError(f"The Kafka property '{name}' is {value!r}: give a whole number.") from None


def flag_of(properties: Mapping[str, Any], name: str, default: bool) -> bool:
    """Return a property that is true or false.

    >>> flag_of({"enable.auto.commit": "True"}, "enable.auto.commit", False)
    True
    """
    text = str(properties.get(name, default)).lower()
    if text not in ("true", "false"):
        raise ConfigurationError(f"The Kafka property '{name}' is {properties[name]!r}: give 'true' or 'false'.")
    return text == "true"


def reset_of(properties: Mapping[str, Any], default: KafkaOffsetResetStrategy) -> KafkaOffsetResetStrategy:
    """Return the strategy of `auto.offset.reset`.

    >>> reset_of({"auto.offset.reset": "none"}, KafkaOffsetResetStrategy.EARLIEST).name
    'NONE'
    """
    value = properties.get("auto.offset.reset")
    if value is None:
        return default
    if str(value).lower() not in _RESETS:
        raise ConfigurationError(
            f"The Kafka property 'auto.offset.reset' is {value!r}: give 'earliest', 'latest' or 'none'."
        )
    return _RESETS[str(value).lower()]
