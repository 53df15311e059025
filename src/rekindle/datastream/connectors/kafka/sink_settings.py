"""The settings of a Kafka sink, and the properties of its producers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.kafka.client_properties import admin_properties, masked, producer_properties
from rekindle.datastream.connectors.kafka.record_serializer import KafkaRecordSerializationSchema
from rekindle.errors import ConfigurationError

#: The broker's own maximum unless it is changed: an open transaction may last an interval and a checkpoint.
_TRANSACTION_TIMEOUT_MS = 900_000
#: Java's default of delivery.timeout.ms.
_DELIVERY_TIMEOUT_MS = 120_000
#: Java's default of max.block.ms: how long a call waits for a broker that does not answer.
_MAX_BLOCK_MS = 60_000
_DEFAULTS: Mapping[str, Any] = {
    "enable.idempotence": "true",
    "partitioner": "murmur2_random",  # Java's: the same key goes to the same partition from either client
    "linger.ms": 5,
    "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
    "queue.buffering.max.messages": 500_000,
}
_OTHER_NAMES = {"delivery.timeout.ms": "message.timeout.ms", "linger.ms": "queue.buffering.max.ms"}


@dataclass(frozen=True)
class KafkaSinkSettings:
    """The settings of a Kafka sink, as its builder collects them."""

    bootstrap_servers: str
    serializer: KafkaRecordSerializationSchema
    guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    prefix: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)
    pool_size: int = 5
    #: Whether failed deliveries are logged instead of raised, as FlinkKafkaProducer allows.
    log_failures_only: bool = False

    def __repr__(self) -> str:
        return (
            f"KafkaSinkSettings({self.bootstrap_servers!r}, topic={self.serializer.topic!r}, {self.guarantee.name}, "
            f"prefix={self.prefix!r}, properties={masked(self.properties)!r})"
        )

    def prefix_in(self, job_name: str) -> str:
        """The transactional id prefix; a `FlinkKafkaProducer` may have none of its own."""
        return self.prefix or f"{job_name}-{self.serializer.topic}"

    @property
    def user_properties(self) -> dict[str, Any]:
        """The user's properties with the address."""
        return {**self.properties, "bootstrap.servers": self.bootstrap_servers}

    def producer(self) -> dict[str, Any]:
        """The properties of a producer without transactions."""
        own = producer_properties(self.user_properties)
        defaults = {name: value for name, value in _DEFAULTS.items() if _OTHER_NAMES.get(name) not in own}
        if str(own.get("acks", own.get("request.required.acks", "all"))) not in ("all", "-1"):
            defaults["enable.idempotence"] = "false"  # idempotence needs the confirmation of all replicas
        return {**defaults, **own}

    def transactional(self, transactional_id: str) -> dict[str, Any]:
        """The properties of a producer with transactions."""
        return {
            "transaction.timeout.ms": self.transaction_timeout_ms,
            **self.producer(),
            "transactional.id": transactional_id,
        }

    def admin(self) -> dict[str, Any]:
        """The properties of an admin client, or of a consumer that reads tokens."""
        return admin_properties(self.user_properties)

    @property
    def transaction_timeout_ms(self) -> int:
        """How long the broker keeps an open transaction."""
        return _milliseconds("transaction.timeout.ms", self.properties, _TRANSACTION_TIMEOUT_MS)

    @property
    def limit_s(self) -> float:
        """How long a call waits for a broker that does not answer (Java's max.block.ms)."""
        return _milliseconds("max.block.ms", self.properties, _MAX_BLOCK_MS) / 1000


def _milliseconds(name: str, properties: Mapping[str, Any], default: int) -> int:
    try:
        return int(properties.get(name, default))
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"The Kafka property '{name}' is {properties[name]!r}: give a number of milliseconds."
        ) from None
