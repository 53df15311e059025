"""Listeners of a Kafka broker: what the broker's properties say about one, and what its clients must be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Listener:
    """A port of the broker with a security protocol; `properties` are the broker's, `client` is for confluent-kafka."""

    name: str
    protocol: str
    properties: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)

    def broker_properties(self) -> dict[str, str]:
        """The broker's properties of this listener, under the listener's own prefix."""
        prefix = f"listener.name.{self.name.lower()}."
        return {prefix + key: value for key, value in self.properties.items()}


PLAINTEXT = Listener("PLAINTEXT", "PLAINTEXT")
CONTROLLER = Listener("CONTROLLER", "PLAINTEXT")


def sasl_plain(user: str, password: str) -> Listener:
    """The listener `SASL_PLAINTEXT`: clients log in with this user and password."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return Listener(
        "SASL_PLAINTEXT",
        "SASL_PLAINTEXT",
        {
            "sasl.enabled.mechanisms": "PLAIN",
            "plain.sasl.jaas.config": f'{module} user_{user}="{password}";',
        },
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        },
    )


def tls(
    certificate: Path | str, key: Path | str, authority: Path | str, *, client_certificates: bool = False
) -> Listener:
    """The listener `SSL`, from PEM files; with `client_certificates`, clients must show one of the same authority."""
    broker = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": Path(certificate).read_text(),
        "ssl.keystore.key": Path(key).read_text(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": Path(authority).read_text(),
        "ssl.client.auth": "required" if client_certificates else "none",
    }
    client = {"security.protocol": "SSL", "ssl.ca.location": str(authority)}
    own = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    return Listener("SSL", "SSL", broker, client | own if client_certificates else client)


def listener_properties(listeners: Sequence[tuple[Listener, int]], host: str) -> dict[str, str]:
    """The broker's properties for its listeners and their ports; the controller's is not advertised to clients."""
    address = {each.name: f"{each.name}://{host}:{port}" for each, port in listeners}
    properties = {
        "listeners": ",".join(address.values()),
        "advertised.listeners": ",".join(text for name, text in address.items() if name != CONTROLLER.name),
        "listener.security.protocol.map": ",".join(f"{each.name}:{each.protocol}" for each, _ in listeners),
    }
    for each, _ in listeners:
        properties |= each.broker_properties()
    return properties
