"""Calls to HBase through a pool of connections, tried again with back-off while a server is away.

A connection is thrown away after any error: its call may still be under way, and its answer would be taken for that of
the next call. HBase may carry out a call whose answer never came, so callers must be able to repeat their calls.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from rekindle.datastream.connectors.hbase.thrift_errors import client_errors, described, happybase, refusal
from rekindle.datastream.connectors.hbase.thrift_settings import ThriftSettings
from rekindle.errors import ConnectorError

T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


class ThriftCalls:
    """Makes calls, each on a connection of its own while it lasts. Several threads may call at once."""

    def __init__(self, settings: ThriftSettings) -> None:
        self.settings = settings
        self._errors = client_errors()
        self._idle: list[Any] = []
        self._busy: set[Any] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._next_address = 0

    def call(self, work: Callable[[Any], T], doing: str, table: str, *, starting: bool = False) -> T:
        """Call `work` with a connection until it succeeds; raise a `ConnectorError` if it cannot, or after the limit.

        `doing` says what was tried, as in "HBase at localhost:9090 failed to <doing>".
        """
        settings = self.settings
        limit_ms = settings.start_timeout_ms if starting else settings.retry_timeout_ms
        until = time.monotonic() + limit_ms / 1000
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return self._once_at_start(work) if starting else self._once(work)
            except self._errors as error:
                refused = refusal(error, table)
                if refused is not None:
                    raise self._failed(doing, refused) from None
                if time.monotonic() >= until:
                    raise self._failed(
                        doing,
                        f"{described(error)}, for {limit_ms / 1000:g} s; see that HBase and its Thrift servers run and "
                        "that set_thrift_servers() names them",
                    ) from None
            left_s = max(0.0, until - time.monotonic())
            if self._closed.wait(min(pause_s, left_s)):
                raise self._failed(doing, "the task ends")
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def families(self, table: str, *, starting: bool = False) -> frozenset[bytes]:
        """Return the column families of a table, which must be there."""
        found = self.call(
            lambda connection: connection.table(table).families(), f"find table '{table}'", table, starting=starting
        )
        if not found:
            # The Thrift server of some versions answers so instead of with an error.
            raise self._failed(f"find table '{table}'", f"there is no table '{table}': create it, or correct its name")
        return frozenset(name.rstrip(b":") for name in found)

    def close(self) -> None:
        """Close all connections. Calls that are under way in other threads fail."""
        self._closed.set()
        with self._lock:
            connections = [*self._idle, *self._busy]
            self._idle = []
        for connection in connections:
            _close(connection)

    def _once(self, work: Callable[[Any], T]) -> T:
        connection = self._taken()
        try:
            result = work(connection)
        except BaseException:
            self._drop(connection)
            raise
        with self._lock:
            self._busy.discard(connection)
            self._idle.append(connection)
        return result

    def _once_at_start(self, work: Callable[[Any], T]) -> T:
        """Call on a connection of its own, which waits no longer than a start may."""
        connection = self._connected(min(self.settings.call_timeout_ms, self.settings.start_timeout_ms))
        try:
            return work(connection)
        finally:
            _close(connection)

    def _taken(self) -> Any:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
            if connection is not None:
                self._busy.add(connection)
                return connection
        connection = self._connected(self.settings.call_timeout_ms)
        with self._lock:
            self._busy.add(connection)
        return connection

    def _connected(self, timeout_ms: int) -> Any:
        """A connection to the next address, so that a server that is away does not stop the others' use."""
        settings = self.settings
        with self._lock:
            host, port = settings.addresses[self._next_address % len(settings.addresses)]
            self._next_address += 1
        return happybase().Connection(host, port, timeout=timeout_ms, **settings.options)

    def _drop(self, connection: Any) -> None:
        with self._lock:
            self._busy.discard(connection)
            stale, self._idle = self._idle, []  # made before the error: the same server may have gone
        for each in (connection, *stale):
            _close(each)

    def _failed(self, doing: str, why: str) -> ConnectorError:
        return ConnectorError(f"HBase at {self.settings.place} failed to {doing}: {why}.")


def _close(connection: Any) -> None:
    with contextlib.suppress(Exception):
        connection.close()
