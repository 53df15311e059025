"""Errors of Kafka clients as sentences: the address, what was tried, and what to do.

A client's background threads report failed connections and logins through `error_cb` only, while the call that waits
for them just times out. `ClientErrors` keeps these reports, so that the sentence can name the cause.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from rekindle.datastream.connectors.kafka.client_properties import KAFKA_LOG, confluent_kafka, with_log
from rekindle.errors import ConfigurationError, ConnectorError

#: The remedy, by the name of the error's code.
_ADVICE: Mapping[str, str] = {
    "_ALL_BROKERS_DOWN": "see that the brokers run and that bootstrap.servers names them",
    "_AUTHENTICATION": "the broker refused the login: check sasl.mechanism, sasl.username and sasl.password",
    "_FENCED": "another producer with the same transactional id has taken over, or the transaction timed out: a "
    "restart of the job goes on from its checkpoint; see that no other running job has the same transactional id "
    "prefix",
    "_MSG_TIMED_OUT": "the broker did not confirm it in time: see that the brokers run, or raise delivery.timeout.ms",
    "_PARTITION_EOF": "this is the end of the partition",
    "_RESOLVE": "the host name in bootstrap.servers is not known here",
    "_SSL": "the TLS handshake failed: check security.protocol, ssl.ca.location and the broker's certificate",
    "_TIMED_OUT": "see that the brokers run, that bootstrap.servers names them, and that security.protocol is theirs",
    "_TRANSPORT": "see that the brokers run and that bootstrap.servers names them",
    "_UNKNOWN_PARTITION": "the topic has fewer partitions: check the partitioner, or add partitions",
    "_UNKNOWN_TOPIC": "create the topic, or correct its name",
    "CLUSTER_AUTHORIZATION_FAILED": "give this user the right IDEMPOTENT_WRITE on the cluster",
    "GROUP_AUTHORIZATION_FAILED": "give this user the right READ on the consumer group",
    "INVALID_PRODUCER_EPOCH": "another producer with the same transactional id has taken over: see that no other "
    "running job has the same transactional id prefix",
    "INVALID_TRANSACTION_TIMEOUT": "lower transaction.timeout.ms, or raise the broker's transaction.max.timeout.ms "
    "(15 minutes unless set)",
    "MSG_SIZE_TOO_LARGE": "raise max.request.size here, and max.message.bytes of the topic or message.max.bytes of the "
    "broker",
    "NOT_ENOUGH_REPLICAS": "the topic has fewer replicas in sync than its min.insync.replicas",
    "SASL_AUTHENTICATION_FAILED": "the broker refused the login: check sasl.mechanism, sasl.username and sasl.password",
    "TOPIC_AUTHORIZATION_FAILED": "give this user the right to use the topic",
    "TOPIC_EXCEPTION": "a topic's name has letters, digits, '.', '_' and '-' only",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "give this user the right WRITE on the transactional ids of this prefix",
    "UNKNOWN_TOPIC_OR_PART": "create the topic, or correct its name",
}
#: Reports that explain why a call waited in vain, the most telling first.
_CAUSES = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL", "_RESOLVE", "_TRANSPORT", "_ALL_BROKERS_DOWN")


class ClientErrors:
    """Keeps the last error of each kind that a client reported through `error_cb`, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, Any] = {}

    def __call__(self, error: Any) -> None:
        """Keep an error; this is the client's `error_cb`."""
        KAFKA_LOG.debug("%s: %s", error.name(), error.str())
        with self._lock:
            self._by_name[error.name()] = error

    def cause(self) -> Any:
        """Return the error that best explains a call that waited in vain, or None."""
        with self._lock:
            return next((self._by_name[name] for name in _CAUSES if name in self._by_name), None)

    def clear(self) -> None:
        """Forget all errors: the client has reached its broker again."""
        with self._lock:
            self._by_name.clear()


def connector_error(
    error: Any, doing: str, properties: Mapping[str, Any], reports: ClientErrors | None = None
) -> ConnectorError:
    """Return a `ConnectorError` for a KafkaException or KafkaError.

    `doing` says what was tried, as in "Kafka at localhost:9092 failed to <doing>"; `properties` name the address.
    """
    first = _kafka_error(error)
    named = first
    if first is not None and first.name() in ("_TIMED_OUT", "_MSG_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN"):
        named = (reports.cause() if reports is not None else None) or first
    servers = properties.get("bootstrap.servers", properties.get("metadata.broker.list", "no address"))
    if named is None:
        return ConnectorError(f"Kafka at {servers} failed to {doing}: {error}.")
    return ConnectorError(f"Kafka at {servers} failed to {doing}: {described(named)}")


def described(error: Any) -> str:
    """The client's own words for a KafkaError, its code, and what to do: the end of a sentence."""
    advice = _ADVICE.get(error.name())
    words = error.str().rstrip(".")
    return f"{words} ({error.name()}){f'; {advice}' if advice else ''}."


def error_name(error: Any) -> str:
    """The name of the code of a KafkaException or KafkaError, such as '_FENCED'; empty for other errors."""
    found = _kafka_error(error)
    return str(found.name()) if found is not None else ""


def new_client(kind: str, properties: Mapping[str, Any], reports: ClientErrors | None = None) -> Any:
    """Make a `Producer`, a `Consumer` or an `AdminClient` (its name is `kind`); a wrong value is told in a sentence."""
    package = confluent_kafka()
    maker = package.admin.AdminClient if kind == "AdminClient" else getattr(package, kind)
    settings = with_log(properties)
    if reports is not None:
        settings.setdefault("error_cb", reports)
    try:
        return maker(settings)
    except package.KafkaException as error:
        found = _kafka_error(error)
        words = found.str().rstrip(".") if found is not None else str(error)
        raise ConfigurationError(f"Kafka's client refuses its properties: {words}.") from error
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"Kafka's client refuses its properties: {str(error).rstrip('.')}.") from error


def _kafka_error(error: Any) -> Any:
    """The KafkaError of a KafkaException, or the error itself if it is one."""
    package = confluent_kafka()
    candidates = [error, *getattr(error, "args", ())]
    return next((each for each in candidates if isinstance(each, package.KafkaError)), None)
