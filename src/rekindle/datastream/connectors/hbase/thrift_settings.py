"""Where HBase's Thrift servers are, how long to wait for them, and the options of their clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from rekindle.datastream.connectors.hbase.thrift_errors import happybase
from rekindle.errors import GraphError

DEFAULT_PORT = 9090
#: Options of `happybase.Connection` that are passed through.
PASSED_OPTIONS = frozenset({"compat", "protocol", "table_prefix", "table_prefix_separator", "transport"})


@dataclass(frozen=True)
class ThriftSettings:
    """The addresses of the Thrift servers, with the options and timeouts of their connections."""

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
    """The options that the builders of sink, source and lookup share: the Thrift servers, and the table."""

    def __init__(self) -> None:
        """Begin without settings."""
        self._addresses: tuple[tuple[str, int], ...] = ()
        self._options: dict[str, Any] = {}
        self._times: dict[str, int] = {}
        self._table = ""

    def set_thrift_servers(self, servers: str) -> Self:
        """Set the addresses of Thrift servers, separated by commas; each new connection goes to the next one."""
        self._addresses = parsed_addresses(servers)
        return self

    def set_table(self, table: str) -> Self:
        """Set the table. It must be there when the job starts."""
        if not isinstance(table, str) or not table:
            raise GraphError(f"set_table() takes the name of a table, not {table!r}.")
        self._table = table
        return self

    def set_call_timeout_ms(self, milliseconds: int) -> Self:
        """Set how long one call may take before it is tried again on another connection (30 seconds)."""
        return self._set_time("set_call_timeout_ms", "call_timeout_ms", milliseconds)

    def set_start_timeout_ms(self, milliseconds: int) -> Self:
        """Set how long a start waits for a server that does not answer (30 seconds)."""
        return self._set_time("set_start_timeout_ms", "start_timeout_ms", milliseconds)

    def set_retry_timeout_ms(self, milliseconds: int) -> Self:
        """Set how long a call is tried again while a server is away, before the job fails (2 minutes)."""
        return self._set_time("set_retry_timeout_ms", "retry_timeout_ms", milliseconds)

    def set_connection_option(self, name: str, value: Any) -> Self:
        """Set an option of `happybase.Connection`: transport, protocol, compat, table_prefix."""
        if name not in PASSED_OPTIONS:
            raise GraphError(
                f"set_connection_option() takes {', '.join(sorted(PASSED_OPTIONS))} of happybase.Connection, not "
                f"{name!r}."
            )
        self._options[name] = value
        return self

    def _set_time(self, method: str, name: str, milliseconds: int) -> Self:
        self._times[name] = whole_number(method, milliseconds, 1)
        return self

    def _thrift_settings(self, what: str) -> ThriftSettings:
        """The settings of a sink, a source or a lookup that is complete as far as they go."""
        if not self._addresses:
            raise GraphError(f"An HBase {what} needs Thrift servers: call set_thrift_servers().")
        if not self._table:
            raise GraphError(f"An HBase {what} needs a table: call set_table().")
        happybase()
        return ThriftSettings(self._addresses, dict(self._options), **self._times)


def whole_number(method: str, value: Any, lowest: int) -> int:
    """Return the argument of a builder's method, which must be a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise GraphError(f"{method}() takes a whole number of {lowest} or more, not {value!r}.")
    return value


def column_names(columns: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the argument of `set_columns`."""
    wanted = tuple(columns)
    if not wanted or not all(isinstance(each, bytes) and each for each in wanted):
        raise GraphError(f"set_columns() takes columns such as [b'f:name'], not {columns!r}.")
    return wanted
