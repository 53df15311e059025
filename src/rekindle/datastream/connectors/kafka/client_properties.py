"""Properties of Kafka clients: Java's names and librdkafka's both count, an unknown name is warned of.

Sources and sinks check the names where the program is built; librdkafka checks the values when the client is made.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from rekindle.datastream.connectors.kafka import java_properties as java
from rekindle.datastream.connectors.kafka.property_names import CALLBACKS, Client, java_names, librdkafka_names
from rekindle.errors import ConnectorError

_LOG = logging.getLogger("rekindle")
#: Where librdkafka's log goes.
KAFKA_LOG = logging.getLogger("rekindle.kafka")
KAFKA_LOG.addHandler(logging.NullHandler())  # where logging is not set up, Python would print warnings

_SECRET = re.compile(r"password|secret|passphrase|token|jaas|\.key\.pem$|keystore\.key$|private\.key")
_NAMES_NO_SECRET = frozenset({"sasl.oauthbearer.token.endpoint.url"})
_HIDDEN = "******"
#: Java's consumer and sink names that the other client knows under its own: a shared dict may hold both.
_JAVA_NAMES = frozenset(java.RENAMED) | java.WITHOUT_MEANING | frozenset(java.REFUSED) | frozenset(java.COMPUTED)

#: The environment variable with the brokers for programs that name others, such as PyFlink's examples.
BROKERS_VARIABLE = "REKINDLE_KAFKA_BROKERS"


def chosen_brokers(user: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties with the brokers of the environment variable, if it is set, in place of the program's.

    >>> chosen_brokers({"bootstrap.servers": "localhost:9092", "group.id": "readers"})
    {'bootstrap.servers': 'localhost:9092', 'group.id': 'readers'}
    """
    chosen = os.environ.get(BROKERS_VARIABLE)
    if not chosen:
        return dict(user)
    others = {key: value for key, value in user.items() if key != "metadata.broker.list"}
    return {**others, "bootstrap.servers": chosen}


def consumer_properties(user: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's properties of a consumer. Keys of Flink's source and of producers are left out.

    >>> consumer_properties({"bootstrap.servers": "localhost:9092", "fetch.max.wait.ms": 50})
    {'bootstrap.servers': 'localhost:9092', 'fetch.wait.max.ms': 50}
    >>> consumer_properties({"partition.discovery.interval.ms": "1000", "request.timeout.ms": 10000, "acks": "all"})
    {'socket.timeout.ms': 10000}
    """
    result = _client_properties(user, librdkafka_names(Client.CONSUMER))
    if "request.timeout.ms" in user:  # of producers only in librdkafka
        result.setdefault("socket.timeout.ms", user["request.timeout.ms"])
    return result


def producer_properties(user: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's properties of a producer. Keys of Flink's source and of consumers are left out.

    >>> producer_properties({"max.request.size": "2000000", "group.id": "readers", "key.serializer": "org.example.Any"})
    {'message.max.bytes': '2000000'}
    """
    return _client_properties(user, librdkafka_names(Client.PRODUCER))


def admin_properties(user: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's properties of an admin client: those that producers and consumers share.

    >>> admin_properties({"bootstrap.servers": "localhost:9092", "acks": "all", "group.id": "readers"})
    {'bootstrap.servers': 'localhost:9092'}
    """
    return _client_properties(user, librdkafka_names())


def warn_of_unknown_names(user: Mapping[str, Any]) -> None:
    """Log the names that no client of Kafka knows; as with Kafka's own clients, such a property has no effect.

    >>> warn_of_unknown_names({"linger": 5})  # did you mean 'linger.ms'?
    """
    known = _known_names()
    for name in user:
        if name in known:
            continue
        if name in java_names():
            _LOG.warning("Kafka's Java property '%s' has no effect here: Python's client does not have it.", name)
        else:
            near = difflib.get_close_matches(str(name), sorted(known), n=1, cutoff=0.6)
            hint = f"did you mean '{near[0]}'?" if near else "see librdkafka's CONFIGURATION.md for those that it has."
            _LOG.warning("Kafka has no property '%s', it has no effect: %s", name, hint)


@cache
def _known_names() -> frozenset[str]:
    """The names that mean something here, or nothing on purpose."""
    return librdkafka_names(*Client) | CALLBACKS | _JAVA_NAMES | java.FLINK_SOURCE_KEYS


def masked(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties for a log or a repr, with passwords, keys and tokens hidden.

    >>> masked({"bootstrap.servers": "localhost:9092", "sasl.password": "tiger"})
    {'bootstrap.servers': 'localhost:9092', 'sasl.password': '******'}
    """
    return {name: _HIDDEN if _is_secret(name) else value for name, value in properties.items()}


def with_log(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties with librdkafka's log sent to the logger `rekindle.kafka` instead of standard error."""
    return {"logger": KAFKA_LOG, **properties}


def confluent_kafka() -> Any:
    """Import the package confluent-kafka; where it is missing, say how to install it."""
    try:
        import confluent_kafka as package
        import confluent_kafka.admin
    except ImportError as error:
        raise ConnectorError(
            "Kafka sources and sinks need the package confluent-kafka: install it on the driver and on the workers "
            "with pip install 'rekindle[kafka]'."
        ) from error
    return package


def _is_secret(name: str) -> bool:
    return name not in _NAMES_NO_SECRET and _SECRET.search(name) is not None


def _client_properties(user: Mapping[str, Any], taken: frozenset[str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in user.items():
        for own, own_value in _spelled(name, value, user).items():
            if own in taken or own in CALLBACKS:
                result[own] = _text_of_bool(own_value)
    return result


def _spelled(name: str, value: Any, user: Mapping[str, Any]) -> dict[str, Any]:
    if name in java.FLINK_SOURCE_KEYS:
        return {}
    spelled = java.translated(name, value, user)
    if spelled is not None:
        return spelled
    return {name: value} if name in _known_names() else {}


def _text_of_bool(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
