"""The port to a database: the operations that sink and source use; the client of each kind of database is behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from enum import Enum, auto
from typing import Any

from rekindle.datastream.connectors.jdbc.connection_options import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.jdbc_url import SQLITE
from rekindle.errors import ConnectorError

RowValues = tuple[Any, ...]


class Fault(Enum):
    """The kinds of errors of a client."""

    #: The same transaction may succeed now: a deadlock, a serialization failure, a lock that was held too long.
    PASSING = auto()
    #: The connection is gone, or the server is.
    LOST = auto()
    #: The database has understood and refuses: no repetition helps.
    REFUSED = auto()


class Database(ABC):
    """One database and its client."""

    def __init__(self, options: JdbcConnectionOptions) -> None:
        self.options = options

    @property
    @abstractmethod
    def shown(self) -> str:
        """The database for people, such as 'PostgreSQL at localhost:5432/shop'."""

    @property
    @abstractmethod
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions that the client raises."""

    @abstractmethod
    def connect(self, timeout_s: float) -> Any:
        """Open a connection, within a time if the client can be told one."""

    @abstractmethod
    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        """A transaction that is committed at the end of the block, and rolled back if the block raises."""

    @abstractmethod
    def savepoint(self, connection: Any) -> AbstractContextManager[Any]:
        """A part of a transaction: if the block raises, only the block is undone."""

    @abstractmethod
    def execute(self, connection: Any, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """Run a statement with `?` placeholders; returns the cursor."""

    @abstractmethod
    def execute_many(self, connection: Any, sql: str, rows: Sequence[RowValues]) -> None:
        """Run a statement for each row, in the client's fastest ordinary form."""

    @abstractmethod
    def check_statement(self, connection: Any, sql: str) -> None:
        """Let the database compile a statement without running it: missing tables and columns are told."""

    @abstractmethod
    def fault_of(self, error: Exception) -> Fault:
        """Say what an error means."""

    @abstractmethod
    def refuses_row(self, error: Exception) -> bool:
        """Say whether an error is about a row's values or about a constraint, and not about the statement."""

    @abstractmethod
    def is_missing_table(self, error: Exception) -> bool:
        """Say whether an error means that a table is not there."""

    @abstractmethod
    def described(self, error: Exception) -> str:
        """The error's words, its code and what to do: the end of a sentence."""

    def value_that_does_not_fit(self, connection: Any, sql: str, rows: Sequence[RowValues]) -> str:
        """Which value of these rows was refused, as the beginning of a clause; empty if it cannot be found."""
        return ""

    @abstractmethod
    def stream(
        self, connection: Any, sql: str, parameters: Sequence[Any], fetch_size: int
    ) -> Iterator[list[RowValues]]:
        """Run a query and yield its rows in pieces. Close the connection if they are not all taken."""

    @abstractmethod
    def ordered(self, query: str, column: str | None) -> str:
        """An ORDER BY clause over a query named `rekindle_rows` that leaves no two different rows in any order."""

    def told(self, error: Exception, doing: str, where: str = "") -> ConnectorError:
        """Return the sentence for an error; no password is in it."""
        sentence = f"{self.shown} failed to {doing}: {where}{self.described(error)}."
        for secret in self.options.secrets():
            sentence = sentence.replace(secret, "******")
        return ConnectorError(sentence)


def database_of(options: JdbcConnectionOptions) -> Database:
    """Return the database of a URL; a missing client is told with the command that installs it."""
    if options.address.kind == SQLITE:
        from rekindle.datastream.connectors.jdbc.sqlite_database import SqliteDatabase

        return SqliteDatabase(options)
    from rekindle.datastream.connectors.jdbc.postgres_database import PostgresDatabase

    return PostgresDatabase(options)
