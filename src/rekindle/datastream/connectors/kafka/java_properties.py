"""Kafka's Java properties, as PyFlink programs set them, in the spelling of librdkafka.

Most names are the same. This module has the others: renamed ones, those that need a computation, and those that name a
Java class and have no meaning here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rekindle.errors import ConfigurationError

#: Java names whose values librdkafka takes unchanged under another name.
RENAMED: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}

#: Java names that change nothing here: Rekindle's schemas turn values into bytes, and Python's client has its own way.
WITHOUT_MEANING = frozenset(
    [
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "flink.disable-metrics",
        "flink.poll-timeout",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "register.consumer.metrics",
        "register.producer.metrics",
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.trustmanager.algorithm",
        "value.deserializer",
        "value.serializer",
    ]
)

#: Keys of Flink's Kafka source, which its builder reads by itself; they are no properties of a client.
FLINK_SOURCE_KEYS = frozenset(
    [
        "client.id.prefix",
        "commit.offsets.on.checkpoint",
        "flink.partition-discovery.interval-millis",
        "partition.discovery.interval.ms",
        "register.consumer.metrics",
    ]
)

#: Java names that cannot be obeyed, with what to set instead.
REFUSED: Mapping[str, str] = {
    "partitioner.class": "choose the partition with set_partitioner(...) of the record serializer, or one of "
    "librdkafka's with the property 'partitioner'",
    "sasl.client.callback.handler.class": "it names a Java class: use librdkafka's sasl.oauthbearer.* properties",
    "sasl.login.callback.handler.class": "it names a Java class: use librdkafka's sasl.oauthbearer.* properties",
    "sasl.login.class": "it names a Java class: use librdkafka's sasl.* properties",
    "security.providers": "it names Java classes: use librdkafka's ssl.* properties",
}

_LOGIN_MODULE = re.compile(r"\s*[\w.]*\.(\w+)LoginModule\s+\w+\s+(.*?);?\s*\Z", re.DOTALL)
_OPTION = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;]+))")
_PEM_SUFFIXES = (".pem", ".crt", ".cer")
_PKCS12_SUFFIXES = (".p12", ".pfx")


def translated(name: str, value: Any, properties: Mapping[str, Any]) -> dict[str, Any] | None:
    """librdkafka's properties for one of Java's, or None when the name needs no translation.

    >>> translated("buffer.memory", "33554432", {})
    {'queue.buffering.max.kbytes': 32768}
    """
    if name in REFUSED:
        raise ConfigurationError(f"The Kafka property '{name}' cannot be used from Python: {REFUSED[name]}.")
    if name in WITHOUT_MEANING:
        return {}
    if name in RENAMED:
        return {RENAMED[name]: value}
    special = COMPUTED.get(name)
    return special(value, properties) if special is not None else None


def _buffer_memory(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"queue.buffering.max.kbytes": max(1, int(value) // 1024)}
    except ValueError:
        raise ConfigurationError(f"The Kafka property 'buffer.memory' is {value!r}: give a number of bytes.") from None


def _offset_reset(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"auto.offset.reset": "error" if value == "none" else value}


def _endpoint_identification(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"ssl.endpoint.identification.algorithm": value or "none"}


def _isolation(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"isolation.level": str(value).lower()}


def _assignment(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Java names classes; Rekindle assigns partitions itself, so that they change nothing."""
    return {} if "." in str(value) else {"partition.assignment.strategy": value}


# -- passwords and certificates ---------------------------------------------------------------------------------------


def _login(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    """User and password of a JAAS line for PLAIN or SCRAM."""
    found = _LOGIN_MODULE.match(str(value))
    if found is None or found[1] not in ("Plain", "Scram"):
        raise ConfigurationError(
            "The Kafka property 'sasl.jaas.config' is read for PlainLoginModule and ScramLoginModule only: for other "
            "mechanisms set librdkafka's sasl.* properties, such as sasl.kerberos.principal or sasl.oauthbearer.method."
        )
    options = {match[1]: _unquoted(match) for match in _OPTION.finditer(found[2])}
    if "username" not in options or "password" not in options:
        raise ConfigurationError('The Kafka property \'sasl.jaas.config\' lacks username="..." or password="...".')
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _unquoted(match: re.Match[str]) -> str:
    quoted = match[2] if match[2] is not None else match[3]
    return match[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)


def _truststore(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    if _is_pem(value, properties.get("ssl.truststore.type")):
        return {"ssl.ca.location": value}
    raise ConfigurationError(
        f"The truststore '{value}' is not a PEM file, which Python's Kafka client needs: export its certificates with "
        "'keytool -exportcert -rfc -keystore ... -alias ... -file ca.pem' and set ssl.ca.location to that file."
    )


def _keystore(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    kind = properties.get("ssl.keystore.type")
    if _is_pem(value, kind):
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    if str(kind or "PKCS12").upper() == "PKCS12" and (kind or str(value).lower().endswith(_PKCS12_SUFFIXES)):
        return {"ssl.keystore.location": value}
    raise ConfigurationError(
        f"The keystore '{value}' is not a PKCS12 or PEM file, which Python's Kafka client needs: convert it with "
        "'keytool -importkeystore -srckeystore ... -destkeystore client.p12 -deststoretype PKCS12' and set "
        "ssl.keystore.location to that file."
    )


def _is_pem(path: Any, kind: Any) -> bool:
    return str(kind).upper() == "PEM" if kind else str(path).lower().endswith(_PEM_SUFFIXES)


def _dropped(value: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {}


#: Java names whose values librdkafka takes in another form.
COMPUTED: Mapping[str, Callable[[Any, Mapping[str, Any]], dict[str, Any]]] = {
    "auto.offset.reset": _offset_reset,
    "buffer.memory": _buffer_memory,
    "isolation.level": _isolation,
    "partition.assignment.strategy": _assignment,
    "sasl.jaas.config": _login,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
    "ssl.keystore.location": _keystore,
    "ssl.keystore.type": _dropped,
    "ssl.truststore.location": _truststore,
    "ssl.truststore.password": _dropped,
    "ssl.truststore.type": _dropped,
}
