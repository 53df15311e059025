"""The settings of the REST API and of the reporters of metrics, read from a configuration."""

from __future__ import annotations

import ipaddress
import logging
import re
from dataclasses import dataclass, field

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.config_parsers import parse_bool
from rekindle.errors import ConfigurationError

_LOG = logging.getLogger("rekindle.web")
#: Drivers on one machine take the next free port, as Spark's pages do.
_DEFAULT_PORTS = tuple(range(config.REST_PORT.default, config.REST_PORT.default + 100))
_PROMETHEUS_PORTS = (9249,)
_HIGHEST_PORT = 65535
_SHORTEST_TOKEN = 16
_PROMETHEUS = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
_REPORTER = "metrics.reporter."


@dataclass(frozen=True)
class ReporterOptions:
    """The settings of a reporter."""

    #: Replace what is neither letter, digit, colon nor underscore in the values of labels, as Flink does by default.
    filter_label_values: bool = True
    #: Labels that are left out.
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RestSettings:
    """How the REST API is served."""

    ports: tuple[int, ...]
    #: Whether the user chose the ports: then one of them has to be free.
    ports_are_chosen: bool
    bind_address: str
    address: str | None
    #: The token, `auto` for a new one, or None.
    token: str | None = field(repr=False)
    #: Whether the printed link has the token: not one that a file or the environment keeps out of logs.
    token_is_shown: bool
    refresh_ms: int
    may_cancel: bool
    kept_s: float

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.bind_address)

    @staticmethod
    def of(configuration: Configuration) -> RestSettings:
        """Read the settings; ConfigurationError says which one cannot be used."""
        chosen = configuration.contains(config.REST_PORT) or configuration.contains(config.REST_BIND_PORT)
        bound = configuration.get(config.REST_BIND_PORT)
        ports = parse_ports(bound, config.REST_BIND_PORT.key) if bound else (configuration.get(config.REST_PORT),)
        bind_address = configuration.get(config.REST_BIND_ADDRESS)
        return RestSettings(
            ports=ports if chosen else _DEFAULT_PORTS,
            ports_are_chosen=chosen,
            bind_address=bind_address,
            address=configuration.get(config.REST_ADDRESS),
            token=_token(configuration.get(config.REST_TOKEN), is_loopback(bind_address)),
            token_is_shown=not configuration.refers_to_secret(config.REST_TOKEN),
            refresh_ms=configuration.get_millis(config.WEB_REFRESH_INTERVAL),
            may_cancel=configuration.get(config.WEB_CANCEL),
            kept_s=configuration.get_millis(config.REST_STORE_DURATION) / 1000,
        )


@dataclass(frozen=True)
class MetricsPort:
    """A reporter that serves metrics on a port of its own."""

    name: str
    ports: tuple[int, ...]
    options: ReporterOptions


def _token(given: str | None, is_local: bool) -> str | None:
    if given is None:
        return None if is_local else "auto"
    if given != "auto" and (len(given) < _SHORTEST_TOKEN or not re.fullmatch(r"[\w.~+/=-]+", given, re.ASCII)):
        raise ConfigurationError(
            f"The value of '{config.REST_TOKEN.key}' cannot be used: a token has at least {_SHORTEST_TOKEN} letters, "
            "digits and signs out of -._~+/=; or write auto for a new one."
        )
    return given


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("driver.example")
    (True, True, False, False)
    """
    if address.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def parse_ports(text: str, key: str) -> tuple[int, ...]:
    """The ports of a list with ranges, in its order.

    >>> parse_ports("8081, 8090-8092", "rest.bind-port")
    (8081, 8090, 8091, 8092)
    """
    ports: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.strip().isdecimal()):
            raise ConfigurationError(
                f"The value of {key!r} cannot be used: {text!r} is no list such as 8081,8090-8099."
            )
        low, high = int(first), int(last) if dash else int(first)
        if not low <= high <= _HIGHEST_PORT:
            raise ConfigurationError(f"The value of {key!r} cannot be used: {part.strip()!r} is no range of ports.")
        ports += range(low, high + 1)
    return tuple(ports)


def prometheus_ports(configuration: Configuration) -> list[MetricsPort]:
    """The reporters for Prometheus; others of Flink's are named in a warning."""
    settings = configuration.with_prefix(_REPORTER)
    wanted = configuration.get(config.METRIC_REPORTERS)
    found = []
    for key, factory in settings.items():
        name, _, rest = key.partition(".")
        if rest not in ("factory.class", "class") or (wanted is not None and name not in wanted):
            continue
        if factory.replace("ReporterFactory", "Reporter") != _PROMETHEUS.replace("ReporterFactory", "Reporter"):
            _LOG.warning("The reporter of metrics '%s' is ignored: Rekindle has no %s.", name, factory)
            continue
        found.append(_metrics_port(name, settings))
    return found


def _metrics_port(name: str, settings: dict[str, str]) -> MetricsPort:
    given = settings.get(f"{name}.port")
    key = f"{_REPORTER}{name}.port"
    excluded = settings.get(f"{name}.scope.variables.excludes", "")
    filtered = settings.get(f"{name}.filterLabelValueCharacters", "true")
    return MetricsPort(
        name,
        parse_ports(given, key) if given else _PROMETHEUS_PORTS,
        ReporterOptions(parse_bool(filtered), frozenset(part for part in re.split(r"[;,]", excluded) if part)),
    )
