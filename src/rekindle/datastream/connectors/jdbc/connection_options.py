"""`JdbcConnectionOptions`: the database, under PyFlink's names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rekindle.datastream.connectors.jdbc.jdbc_url import DatabaseAddress, check_driver, parse_url
from rekindle.errors import GraphError

_HIDDEN = "******"


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
    address: DatabaseAddress = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", parse_url(self._url))
        if self._driver_name is not None:
            check_driver(self._driver_name, self.address.kind)

    def get_db_url(self) -> str:
        """Return the URL as it was given."""
        return self._url

    def get_driver_name(self) -> str | None:
        """Return the driver's name, or None."""
        return self._driver_name

    def get_user_name(self) -> str | None:
        """Return the user's name, or None."""
        return self._user_name or self.address.parameters.get("user")

    def get_password(self) -> str | None:
        """Return the password, or None."""
        return self._password or self.address.secrets.get("password")

    def client_parameters(self) -> dict[str, Any]:
        """Return the client's parameters, with user and password."""
        own = {"user": self._user_name, "password": self._password}
        given = {name: value for name, value in own.items() if value is not None}
        return {**self.address.parameters, **self.address.secrets, **given}

    def secrets(self) -> list[str]:
        """Return the secret texts, which no message may contain."""
        return [text for text in (self._password, *self.address.secrets.values()) if text]

    def __repr__(self) -> str:
        user, hidden = self.get_user_name(), _HIDDEN if self.secrets() else None
        return f"JdbcConnectionOptions({self.address.kind} {self.address.place}, user={user!r}, password={hidden!r})"

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
            """Set the URL: jdbc:postgresql://host:port/database or jdbc:sqlite:path."""
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
