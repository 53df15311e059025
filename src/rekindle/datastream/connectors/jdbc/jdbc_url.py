"""JDBC URLs of PostgreSQL and SQLite, and the driver names that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from rekindle.errors import ConfigurationError

POSTGRESQL = "postgresql"
SQLITE = "sqlite"
_PREFIXES = {f"jdbc:{POSTGRESQL}:": POSTGRESQL, f"jdbc:{SQLITE}:": SQLITE}
_DRIVERS = {"org.postgresql.Driver": POSTGRESQL, "org.sqlite.JDBC": SQLITE}
_FORMS = "jdbc:postgresql://host:port/database and jdbc:sqlite:path"
_POSTGRESQL_PORT = "5432"

#: PostgreSQL's JDBC parameters and their names in libpq.
_RENAMED: Mapping[str, str] = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "kerberosServerName": "krbsrvname",
    "targetServerType": "target_session_attrs",
    "user": "user",
    "password": "password",
}
#: Parameters that both have under one name.
_SAME = frozenset(
    {"application_name", "channel_binding", "connect_timeout", "gssencmode", "hostaddr", "options", "passfile"}
    | {"sslcert", "sslcrl", "sslkey", "sslmode", "sslpassword", "sslrootcert", "target_session_attrs"}
    | {"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "service"}
)
#: Settings of the Java driver that have no meaning here.
_WITHOUT_MEANING = frozenset(
    {"adaptiveFetch", "autosave", "binaryTransfer", "cleanupSavepoints", "defaultRowFetchSize", "loadBalanceHosts"}
    | {"logUnclosedConnections", "loggerFile", "loggerLevel", "preferQueryMode", "prepareThreshold", "readOnly"}
    | {"preparedStatementCacheQueries", "preparedStatementCacheSizeMiB", "reWriteBatchedInserts", "stringtype"}
    | {"tcpKeepAlive", "socketTimeout", "loginTimeout", "sslfactory", "unknownLength", "useServerPrepStmts"}
)
_SECRET = frozenset({"password", "sslpassword"})
_TARGETS = {"primary": "primary", "secondary": "standby", "preferSecondary": "prefer-standby", "any": "any"}


@dataclass(frozen=True)
class DatabaseAddress:
    """Where a database is. Passwords are in `secrets` only, which no text shows."""

    kind: str
    #: For people: host, port and database, or the path.
    place: str
    #: For the client: libpq's names, or `path`.
    parameters: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_url(url: str) -> DatabaseAddress:
    """Read a JDBC URL.

    >>> parse_url("jdbc:postgresql://db.example.com/shop?user=anna&password=tiger")
    DatabaseAddress(kind='postgresql', place='db.example.com:5432/shop', parameters={'host': 'db.example.com',
    'port': '5432', 'dbname': 'shop', 'user': 'anna'})
    >>> parse_url("jdbc:sqlite:/data/shop.db").parameters
    {'path': '/data/shop.db'}
    >>> parse_url("jdbc:mysql://localhost/shop")
    Traceback (most recent call last):
        ...
    rekindle.errors.ConfigurationError: There is no database for 'jdbc:mysql://...': the URLs are
    jdbc:postgresql://host:port/database and jdbc:sqlite:path.
    """
    for prefix, kind in _PREFIXES.items():
        if isinstance(url, str) and url.startswith(prefix):
            rest = url[len(prefix) :]
            return _postgresql(rest) if kind == POSTGRESQL else _sqlite(rest)
    scheme, colons, _ = str(url).partition("://")
    shown = f"'{scheme}://...'" if colons else "this text"  # what follows may hold a password
    raise ConfigurationError(f"There is no database for {shown}: the URLs are {_FORMS}.")


def check_driver(name: str, kind: str) -> None:
    """Refuse a driver that is not the one of this kind of database.

    >>> check_driver("org.postgresql.Driver", "postgresql")
    >>> check_driver("com.mysql.cj.jdbc.Driver", "postgresql")
    Traceback (most recent call last):
        ...
    rekindle.errors.ConfigurationError: There is no driver 'com.mysql.cj.jdbc.Driver': the drivers are
    org.postgresql.Driver and org.sqlite.JDBC.
    """
    if name not in _DRIVERS:
        raise ConfigurationError(f"There is no driver '{name}': the drivers are {' and '.join(_DRIVERS)}.")
    if _DRIVERS[name] != kind:
        raise ConfigurationError(f"The driver '{name}' is for jdbc:{_DRIVERS[name]}: but the URL is of {kind}.")


def _postgresql(rest: str) -> DatabaseAddress:
    location, _, query = rest.partition("?")
    hosts, database = "localhost", location.strip("/")
    if location.startswith("//"):
        hosts, _, database = location[2:].partition("/")
    names, ports = _hosts(hosts)
    parameters = {"host": names, "port": ports, "dbname": unquote(database)}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters.update(_parameter(name, value))
    parameters = {name: value for name, value in parameters.items() if value}
    secrets = {name: parameters.pop(name) for name in sorted(_SECRET & parameters.keys())}
    shown = ",".join(f"{h}:{p}" for h, p in zip(names.split(","), ports.split(","), strict=True))
    return DatabaseAddress(POSTGRESQL, f"{shown}/{unquote(database)}".rstrip("/"), parameters, secrets)


def _hosts(text: str) -> tuple[str, str]:
    """The hosts and the ports, each separated by commas."""
    names, ports = [], []
    for each in (text or "localhost").split(","):
        host, colon, port = each.rpartition(":") if not each.endswith("]") else (each, "", "")
        if not colon:
            host, port = each, _POSTGRESQL_PORT
        if not port.isdigit():
            raise ConfigurationError(f"'{port}' is not a port: a URL is jdbc:postgresql://host:port/database.")
        names.append(host.strip("[]") or "localhost")
        ports.append(port)
    return ",".join(names), ",".join(ports)


def _parameter(name: str, value: str) -> dict[str, str]:
    if name in _WITHOUT_MEANING:
        return {}
    if name == "ssl":
        return {"sslmode": "verify-full"} if value.lower() in ("true", "") else {}
    if name == "currentSchema":
        return {"options": f"-c search_path={value.replace(' ', '')}"}
    if name == "targetServerType":
        value = _TARGETS.get(value, value)
    if name in _RENAMED:
        return {_RENAMED[name]: value}
    if name in _SAME:
        return {name: value}
    raise ConfigurationError(
        f"A PostgreSQL URL has no parameter '{name}': those of PostgreSQL's JDBC driver and of libpq are known."
    )


def _sqlite(rest: str) -> DatabaseAddress:
    path, _, query = rest.partition("?")
    path = path.removeprefix("file:")
    if path in ("", ":memory:"):
        raise ConfigurationError(
            "A SQLite database in memory would be another one in every subtask: name a file, as in jdbc:sqlite:path."
        )
    if query:
        raise ConfigurationError("A SQLite URL has no parameters here: write jdbc:sqlite:path.")
    return DatabaseAddress(SQLITE, path, {"path": path})
