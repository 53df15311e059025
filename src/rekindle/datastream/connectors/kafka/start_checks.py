"""Checks of a Kafka sink when a subtask starts: a mistake is reported before the first record."""

from __future__ import annotations

import logging

from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.kafka.client_errors import new_client
from rekindle.datastream.connectors.kafka.client_properties import confluent_kafka
from rekindle.datastream.connectors.kafka.producer_client import ProducerClient
from rekindle.datastream.connectors.kafka.sink_settings import KafkaSinkSettings
from rekindle.datastream.connectors.sink_api import InitContext, WriterInitContext
from rekindle.errors import ConfigurationError

_LOG = logging.getLogger("rekindle.kafka")
_CONFIG_LIMIT_S = 10.0
#: The most producers of a subtask that the user has not asked for: each is fenced at every start.
_MOST_PRODUCERS = 32


def check_times(settings: KafkaSinkSettings, context: WriterInitContext) -> None:
    """Refuse a transaction timeout that no checkpoint interval fits into; warn if there are no checkpoints at all."""
    interval_ms, timeout_ms = context.checkpoint_interval_ms, settings.transaction_timeout_ms
    if settings.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        return
    if interval_ms is None:
        if context.subtask == 0:
            _LOG.warning(
                "The exactly-once Kafka sink of %s commits at the end of the job only, because the job takes no "
                "checkpoints: a job that runs longer than transaction.timeout.ms (%d ms) fails.",
                context.task_name,
                timeout_ms,
            )
    elif timeout_ms <= interval_ms:
        raise ConfigurationError(
            f"Kafka would end the transactions of {context.task_name} before their checkpoint: transaction.timeout.ms "
            f"is {timeout_ms}, the checkpoint interval {interval_ms} ms. Raise the one (the broker's "
            "transaction.max.timeout.ms is its limit) or lower the other."
        )


def enough_producers(pool_size: int, context: InitContext) -> int:
    """Return how many producers a subtask has: enough for all checkpoints that may be incomplete at a time.

    Each of these has a transaction that waits; one more is written, and one may wait for a savepoint's successor.

    >>> enough_producers(5, InitContext()), enough_producers(5, InitContext(incomplete_checkpoints=11))
    (5, 13)
    """
    needed = context.incomplete_checkpoints + 2
    if needed > _MOST_PRODUCERS and context.subtask == 0:
        _LOG.warning(
            "%s may have %d incomplete checkpoints (execution.checkpointing.tolerable-failed-checkpoints), but its "
            "Kafka sink has producers for %d: if more fail in a row, the job goes on from its last checkpoint.",
            context.task_name,
            context.incomplete_checkpoints,
            max(pool_size, _MOST_PRODUCERS) - 2,
        )
    return max(pool_size, min(needed, _MOST_PRODUCERS))


def check_topic(settings: KafkaSinkSettings, client: ProducerClient) -> None:
    """See that the fixed topic is there and takes messages as large as the client's."""
    topic = settings.serializer.topic
    if topic is None:
        return
    client.check_topic(topic)
    own = client.properties.get("message.max.bytes")
    if own is None:
        return
    allowed = _max_message_bytes(settings, topic)
    if allowed is not None and int(own) > allowed:
        _LOG.warning(
            "The Kafka sink may send messages of up to %s bytes (max.request.size), but topic '%s' takes at most %d "
            "(max.message.bytes): larger ones will fail the job.",
            own,
            topic,
            allowed,
        )


def _max_message_bytes(settings: KafkaSinkSettings, topic: str) -> int | None:
    """The topic's limit, or None if this user may not read it."""
    package = confluent_kafka()
    admin = new_client("AdminClient", settings.admin())
    resource = package.admin.ConfigResource(package.admin.ConfigResource.Type.TOPIC, topic)
    try:
        found = admin.describe_configs([resource], request_timeout=_CONFIG_LIMIT_S)[resource].result()
    except package.KafkaException:
        return None
    return int(found["max.message.bytes"].value)
