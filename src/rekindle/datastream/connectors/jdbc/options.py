"""The options of sinks and sources under PyFlink's names: the database, the batches, the ledger."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sqlalchemy.engine import URL

from rekindle.datastream.connectors.jdbc.jdbc_url import check_driver, is_file, parse_url, place_of, secrets_of
from rekindle.errors import GraphError

_HIDDEN = "******"
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """Where a database is, and who connects. Make one with `JdbcConnectionOptionsBuilder`.

    >>> options = (
    ...     JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    ...     .with_url("jdbc:postgresql://localhost:5432/shop")
    ...     .with_driver_name("org.postgresql.Driver")
    ...     .with_user_name("anna")
    ...     .with_password("tiger")
    ...     .build()
    ... )
    >>> options
    JdbcConnectionOptions(postgresql localhost:5432/shop, user='anna', password='******')
    """

    _url: str = field(repr=False)
    _driver_name: str | None
    _user_name: str | None
    _password: str | None = field(repr=False)
    #: How long a start, or a reconnect, waits for a server that does not answer.
    connection_check_timeout_seconds: int = 60
    #: The URL of SQLAlchemy, with the user and the password.
    address: URL = field(init=False, repr=False)

    def __post_init__(self) -> None:
        address = parse_url(self._url)
        if not is_file(address):
            address = address.set(username=self._user_name, password=self._password)
        object.__setattr__(self, "address", address)
        if self._driver_name is not None:
            check_driver(self._driver_name, address.get_backend_name())

    def get_db_url(self) -> str:
        """Return the URL as it was given."""
        return self._url

    def get_driver_name(self) -> str | None:
        """Return the driver's name, or None."""
        return self._driver_name

    def get_user_name(self) -> str | None:
        """Return the user's name, or None."""
        return self.address.username or self._user_name

    def get_password(self) -> str | None:
        """Return the password, or None."""
        return self.address.password or self._password

    @property
    def place(self) -> str:
        """The database for people: host, port and database, or the path."""
        return place_of(self.address)

    def secrets(self) -> list[str]:
        """Return the secret texts, which no message may contain."""
        return [*secrets_of(self.address), *filter(None, [self._password])]

    def __repr__(self) -> str:
        user, hidden = self.get_user_name(), _HIDDEN if self.secrets() else None
        backend = self.address.get_backend_name()
        return f"JdbcConnectionOptions({backend} {self.place}, user={user!r}, password={hidden!r})"

    class JdbcConnectionOptionsBuilder:
        """Builds `JdbcConnectionOptions`; the URL is required."""

        def __init__(self) -> None:
            """Begin without settings."""
            self._url: str | None = None
            self._driver_name: str | None = None
            self._user_name: str | None = None
            self._password: str | None = None
            self._timeout_s = JdbcConnectionOptions.connection_check_timeout_seconds

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the URL, such as jdbc:postgresql://host:port/database or jdbc:sqlite:path, or one of SQLAlchemy's."""
            parse_url(url)
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the driver's class, as Flink programs do; it must be the one of the URL."""
            self._driver_name = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the user."""
            self._user_name = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password. No log, plan, error or checkpoint shows it."""
            self._password = password
            return self

        def with_connection_check_timeout_seconds(
            self, connection_check_timeout_seconds: int
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set how long a start, or a reconnect, waits for a server that does not answer (60)."""
            if not isinstance(connection_check_timeout_seconds, int) or connection_check_timeout_seconds < 1:
                raise GraphError(
                    "with_connection_check_timeout_seconds() takes 1 second or more, not "
                    f"{connection_check_timeout_seconds!r}."
                )
            self._timeout_s = connection_check_timeout_seconds
            return self

        def build(self) -> JdbcConnectionOptions:
            """Return the options."""
            if self._url is None:
                raise GraphError("JdbcConnectionOptions need a database: call with_url().")
            return JdbcConnectionOptions(self._url, self._driver_name, self._user_name, self._password, self._timeout_s)


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """The size and interval of batches, and the number of retries of a failed write.

    >>> JdbcExecutionOptions.defaults()
    JdbcExecutionOptions(batch_interval_ms=0, batch_size=5000, max_retries=3)
    >>> JdbcExecutionOptions.builder().with_batch_size(200).with_batch_interval_ms(1000).build().get_batch_size()
    200
    """

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def get_batch_interval_ms(self) -> int:
        """Return the longest time that a row waits, in milliseconds; 0 is without a limit."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """Return the number of rows of a batch."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """Return how often a failed write is tried again."""
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Return Flink's defaults."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Return a builder with Flink's defaults."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Builds `JdbcExecutionOptions`."""

        def __init__(self) -> None:
            """Begin with Flink's defaults."""
            self._batch_interval_ms = JdbcExecutionOptions.batch_interval_ms
            self._batch_size = JdbcExecutionOptions.batch_size
            self._max_retries = JdbcExecutionOptions.max_retries

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Set the number of rows of a batch (5000)."""
            self._batch_size = _whole("with_batch_size", size, 1)
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set the longest time that a row waits for its batch, in milliseconds (0: for a checkpoint)."""
            self._batch_interval_ms = _whole("with_batch_interval_ms", interval_ms, 0)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set how often a write is tried again after a deadlock or a lost connection (3)."""
            self._max_retries = _whole("with_max_retries", max_retries, 0)
            return self

        def build(self) -> JdbcExecutionOptions:
            """Return the options."""
            return JdbcExecutionOptions(self._batch_interval_ms, self._batch_size, self._max_retries)


@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """The ledger of an exactly-once sink: a table with one row per subtask, in the database that the sink writes.

    >>> JdbcExactlyOnceOptions.builder().with_ledger_table("shop.commits").build()
    JdbcExactlyOnceOptions(ledger_table='shop.commits', refused_rows='fail')
    """

    ledger_table: str = "rekindle_ledger"
    refused_rows: str = "fail"

    @staticmethod
    def defaults() -> JdbcExactlyOnceOptions:
        """Return the options with the table `rekindle_ledger`."""
        return JdbcExactlyOnceOptions()

    @staticmethod
    def builder() -> JdbcExactlyOnceOptions.Builder:
        """Return a builder with the defaults."""
        return JdbcExactlyOnceOptions.Builder()

    class Builder:
        """Builds `JdbcExactlyOnceOptions`."""

        def __init__(self) -> None:
            """Begin with the defaults."""
            self._ledger_table = JdbcExactlyOnceOptions.ledger_table
            self._refused_rows = JdbcExactlyOnceOptions.refused_rows

        def with_ledger_table(self, ledger_table: str) -> JdbcExactlyOnceOptions.Builder:
            """Set the table's name, with or without a schema. It is made at the start if it is missing."""
            if not isinstance(ledger_table, str) or _TABLE.fullmatch(ledger_table) is None:
                raise GraphError(
                    "with_ledger_table() takes a name of letters, digits and '_', perhaps with a schema before it as "
                    f"in shop.commits, not {ledger_table!r}."
                )
            self._ledger_table = ledger_table
            return self

        def with_refused_rows(self, refused_rows: str) -> JdbcExactlyOnceOptions.Builder:
            """Set what a commit does with a row that the database refuses then: "fail" the job, or "drop" the row.

            A dropped row is logged as an error; the other rows of the checkpoint are written.
            """
            if refused_rows not in ("fail", "drop"):
                raise GraphError(f"with_refused_rows() takes 'fail' or 'drop', not {refused_rows!r}.")
            self._refused_rows = refused_rows
            return self

        def build(self) -> JdbcExactlyOnceOptions:
            """Return the options."""
            return JdbcExactlyOnceOptions(self._ledger_table, self._refused_rows)


def _whole(method: str, value: int, least: int) -> int:
    if not isinstance(value, int) or value < least:
        raise GraphError(f"{method}() takes a whole number of {least} or more, not {value!r}.")
    return value
