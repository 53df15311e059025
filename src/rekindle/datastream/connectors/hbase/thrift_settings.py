"""Where HBase's Thrift servers are, how long to wait for them, and the options of their clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rekindle.errors import GraphError

DEFAULT_PORT = 9090
#: Options of `happybase.Connection` that are passed through.
PASSED_OPTIONS = frozenset({"compat", "protocol", "table_prefix", "table_prefix_separator", "transport"})


@dataclass(frozen=True)
class ThriftSettings:
    """What a builder was told about the Thrift servers."""

    addresses: tuple[tuple[str, int], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    #: How long one call may take. HBase may still carry out a call that took longer.
    call_timeout_ms: int = 30_000
    #: How long a start waits for a server that does not answer.
    start_timeout_ms: int = 30_000
    #: How long calls are tried again while a server is away.
    retry_timeout_ms: int = 120_000

    @property
    def place(self) -> str:
        """The addresses, for sentences."""
        return ", ".join(f"{host}:{port}" for host, port in self.addresses)


def parsed_addresses(servers: str) -> tuple[tuple[str, int], ...]:
    """Return hosts and ports of a text such as 'a:9090, b'.

    >>> parsed_addresses("localhost:9999, other, [::1]:9091")
    (('localhost', 9999), ('other', 9090), ('::1', 9091))
    >>> parsed_addresses("host:no")
    Traceback (most recent call last):
        ...
    rekindle.errors.GraphError: set_thrift_servers() takes addresses such as 'host:9090, other:9090', not 'host:no'.
    """
    parts = [part.strip() for part in servers.split(",")] if isinstance(servers, str) else []
    try:
        found = tuple(_address(part) for part in parts if part)
    except ValueError:
        found = ()
    if not found:
        raise GraphError(f"set_thrift_servers() takes addresses such as 'host:9090, other:9090', not {servers!r}.")
    return found


def _address(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    number = int(port) if port else DEFAULT_PORT
    if not host or not 0 < number < 65_536:
        raise ValueError(text)
    return host, number


class ThriftOptions:
    """The methods of builders that set `ThriftSettings`. Each builder extends this class."""

    def __init__(self) -> None:
        self._addresses: tuple[tuple[str, int], ...] = ()
        self._options: dict[str, Any] = {}
        self._times: dict[str, int] = {}

    def _set_servers(self, servers: str) -> None:
        self._addresses = parsed_addresses(servers)

    def _set_option(self, name: str, value: Any) -> None:
        if name not in PASSED_OPTIONS:
            raise GraphError(
                f"set_connection_option() takes {', '.join(sorted(PASSED_OPTIONS))} of happybase.Connection, not "
                f"{name!r}."
            )
        self._options[name] = value

    def _set_time(self, method: str, name: str, milliseconds: int) -> None:
        if isinstance(milliseconds, bool) or not isinstance(milliseconds, int) or milliseconds < 1:
            raise GraphError(f"{method}() takes a number of milliseconds of 1 or more, not {milliseconds!r}.")
        self._times[name] = milliseconds

    def _thrift_settings(self, what: str) -> ThriftSettings:
        if not self._addresses:
            raise GraphError(f"An HBase {what} needs Thrift servers: call set_thrift_servers().")
        return ThriftSettings(self._addresses, dict(self._options), **self._times)
