"""A connection that comes back: transactions are tried again after deadlocks and lost connections."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from rekindle.datastream.connectors.jdbc.database import Database
from rekindle.datastream.connectors.jdbc.database_errors import Fault, fault_of, is_refused_login
from rekindle.errors import ConnectorError

_LOG = logging.getLogger("rekindle.jdbc")
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0

T = TypeVar("T")


class RollBack(Exception):
    """Ends a transaction of `DatabaseSession.transaction` without its effects, and without an error."""


class DatabaseSession:
    """One connection to a database, opened when it is needed and again when it was lost."""

    def __init__(self, database: Database, max_retries: int) -> None:
        self.database = database
        self._max_retries = max_retries
        self._limit_s = float(database.options.connection_check_timeout_seconds)
        self._connection: Connection | None = None
        self._pause = threading.Event()
        #: Called with every new connection.
        self.prepare: Callable[[Connection], None] | None = None
        #: The number of opened connections: a temporary table is gone when its connection is.
        self.connections = 0

    def transaction(
        self, work: Callable[[Connection], T], doing: str, where: Callable[[Connection], str] | None = None
    ) -> T | None:
        """Run `work(connection)` in a transaction, again if need be; `work` may raise RollBack, for None.

        `doing` says what is tried, as in "PostgreSQL at host failed to <doing>"; `where(connection)` looks for the
        value that a refused transaction was about.
        """
        return self._tried(work, doing, where, self.database.transaction)

    def read(self, work: Callable[[Connection], T], doing: str) -> T | None:
        """Run `work(connection)`, a query, as `transaction` does, but without a lock on a file."""
        return self._tried(work, doing, None, Connection.begin)

    def _tried(
        self,
        work: Callable[[Connection], T],
        doing: str,
        where: Callable[[Connection], str] | None,
        block: Callable[[Connection], AbstractContextManager[object]],
    ) -> T | None:
        tries = 0
        while True:
            connection = self.open()
            try:
                with block(connection):
                    return work(connection)
            except RollBack:
                return None
            except DBAPIError as error:
                fault = fault_of(error)
                if fault is Fault.LOST:
                    self.close()
                if fault is Fault.REFUSED or tries >= self._max_retries:
                    place = where(connection) if where is not None and fault is Fault.REFUSED else ""
                    raise self.database.told(error, doing, place) from error
                tries += 1
                _LOG.warning("%s (try %d)", self.database.told(error, doing), tries)
                self._pause.wait(min(_FIRST_PAUSE_S * 2**tries, _LONGEST_PAUSE_S))

    def open(self) -> Connection:
        """Return the connection; waits for a server that is away, as long as the options say."""
        if self._connection is not None and self._connection.invalidated:
            self.close()  # SQLAlchemy would open it again by itself, without what `prepare` makes
        if self._connection is None:
            self._connection = self._connected()
            self.connections += 1
        return self._connection

    def _connected(self) -> Connection:
        until = time.monotonic() + self._limit_s
        pause_s = _FIRST_PAUSE_S
        while True:
            left_s = until - time.monotonic()
            try:
                return self._prepared(self.database.connect(max(left_s, 1.0)))
            except DBAPIError as error:
                if is_refused_login(error) or fault_of(error) is Fault.REFUSED:
                    raise self._not_connected(error) from None
                if left_s <= pause_s:
                    raise self._not_connected(error) from None
            self._pause.wait(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _prepared(self, connection: Connection) -> Connection:
        try:
            if self.prepare is not None:
                self.prepare(connection)
        except BaseException:
            _close(connection)
            raise
        return connection

    def _not_connected(self, error: DBAPIError) -> ConnectorError:
        user = self.database.options.get_user_name()
        doing = f"let user '{user}' in" if is_refused_login(error) else f"answer within {self._limit_s:.0f} s"
        return self.database.told(error, doing)

    def close(self) -> None:
        """Close the connection; changes that were not committed are undone."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            _close(connection)


def _close(connection: Connection) -> None:
    """Close a connection for good, also in the middle of a transaction or of a query."""
    with suppress(DBAPIError):
        connection.invalidate()
        connection.close()
