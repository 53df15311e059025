"""URLs of databases: JDBC's, in SQLAlchemy's form, and SQLAlchemy's own; the names of JDBC drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from rekindle.errors import ConfigurationError

_JDBC = "jdbc:"
_FORMS = "jdbc:postgresql://host:port/database and jdbc:sqlite:path"
_MORE_FORMS = "those of jdbc:mysql:, jdbc:mariadb: and jdbc:duckdb:, and SQLAlchemy's own"
#: The drivers that programs for Flink name, and the databases that they are for.
_DRIVERS = {
    "org.postgresql.Driver": "postgresql",
    "org.sqlite.JDBC": "sqlite",
    "com.mysql.cj.jdbc.Driver": "mysql",
    "com.mysql.jdbc.Driver": "mysql",
    "org.mariadb.jdbc.Driver": "mariadb",
    "com.microsoft.sqlserver.jdbc.SQLServerDriver": "mssql",
    "oracle.jdbc.OracleDriver": "oracle",
    "org.duckdb.DuckDBDriver": "duckdb",
}
#: SQLAlchemy's name of a database with the client that is used for it.
_CLIENTS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
_PORTS = {"postgresql": "5432", "mysql": "3306", "mariadb": "3306"}

#: PostgreSQL's JDBC parameters and their names in libpq.
_LIBPQ: Mapping[str, str] = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "kerberosServerName": "krbsrvname",
    "targetServerType": "target_session_attrs",
}
_OF_LIBPQ = frozenset(
    {"application_name", "channel_binding", "connect_timeout", "gssencmode", "hostaddr", "options", "passfile"}
    | {"sslcert", "sslcrl", "sslkey", "sslmode", "sslpassword", "sslrootcert", "target_session_attrs"}
    | {"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "service"}
)
_TARGETS = {"primary": "primary", "secondary": "standby", "preferSecondary": "prefer-standby", "any": "any"}
_OF_PYMYSQL = frozenset(
    {"charset", "compress", "connect_timeout", "init_command", "local_infile", "read_timeout", "sql_mode"}
    | {"ssl_ca", "ssl_capath", "ssl_cert", "ssl_check_hostname", "ssl_cipher", "ssl_key", "unix_socket"}
    | {"write_timeout"}
)
#: Settings of the Java drivers that have no meaning here.
_WITHOUT_MEANING: Mapping[str, frozenset[str]] = {
    "postgresql": frozenset(
        {"adaptiveFetch", "autosave", "binaryTransfer", "cleanupSavepoints", "defaultRowFetchSize", "loadBalanceHosts"}
        | {"logUnclosedConnections", "loggerFile", "loggerLevel", "preferQueryMode", "prepareThreshold", "readOnly"}
        | {"preparedStatementCacheQueries", "preparedStatementCacheSizeMiB", "reWriteBatchedInserts", "stringtype"}
        | {"tcpKeepAlive", "socketTimeout", "loginTimeout", "sslfactory", "unknownLength", "useServerPrepStmts"}
    ),
    "mysql": frozenset(
        {"allowPublicKeyRetrieval", "autoReconnect", "cachePrepStmts", "characterEncoding", "permitMysqlScheme"}
        | {"prepStmtCacheSize", "prepStmtCacheSqlLimit", "rewriteBatchedStatements", "serverTimezone", "tcpKeepAlive"}
        | {"useBulkStmts", "useCursorFetch", "useServerPrepStmts", "useUnicode", "zeroDateTimeBehavior"}
    ),
}
_SECRET_WORDS = ("password", "pwd", "secret", "token", "odbc_connect")
_NO_TLS = {"useSSL": "false", "sslMode": "disable"}


def parse_url(url: str) -> URL:
    """Read a URL.

    >>> parse_url("jdbc:postgresql://db.example.com/shop?user=anna&password=tiger")
    postgresql+psycopg://anna:***@db.example.com:5432/shop
    >>> parse_url("jdbc:sqlite:/data/shop.db").database
    '/data/shop.db'
    >>> parse_url("mssql+pyodbc://anna@db.example.com/shop?driver=ODBC+Driver+18+for+SQL+Server").database
    'shop'
    >>> parse_url("jdbc:h2://localhost/shop")
    Traceback (most recent call last):
        ...
    rekindle.errors.ConfigurationError: There is no database for 'jdbc:h2://...': the URLs are
    jdbc:postgresql://host:port/database and jdbc:sqlite:path, those of jdbc:mysql:, jdbc:mariadb: and jdbc:duckdb:, and
    SQLAlchemy's own.
    """
    if isinstance(url, str) and url.startswith(_JDBC):
        backend, _, rest = url.removeprefix(_JDBC).partition(":")
        if backend in _TRANSLATIONS:
            return _TRANSLATIONS[backend](backend, rest)
    elif isinstance(url, str) and "://" in url:
        try:
            return _checked(make_url(url))
        except (ArgumentError, ValueError):
            pass  # told below, without its words: they may hold a password
    scheme, colons, _ = str(url).partition("://")
    shown = f"'{scheme}://...'" if colons else "this text"  # what follows may hold a password
    raise ConfigurationError(f"There is no database for {shown}: the URLs are {_FORMS}, {_MORE_FORMS}.") from None


def check_driver(name: str, backend: str) -> None:
    """Refuse a driver that is not the one of this kind of database.

    >>> check_driver("org.postgresql.Driver", "postgresql")
    >>> check_driver("org.h2.Driver", "postgresql")
    Traceback (most recent call last):
        ...
    rekindle.errors.ConfigurationError: There is no driver 'org.h2.Driver': that of postgresql is org.postgresql.Driver.
    """
    if name not in _DRIVERS:
        known = " or ".join(driver for driver, of in _DRIVERS.items() if of == backend) or "none that is known"
        raise ConfigurationError(f"There is no driver '{name}': that of {backend} is {known}.")
    if _DRIVERS[name] != backend:
        raise ConfigurationError(f"The driver '{name}' is for jdbc:{_DRIVERS[name]}: but the URL is of {backend}.")


def place_of(url: URL) -> str:
    """A database for people: hosts, ports and its name, or the path.

    >>> place_of(parse_url("jdbc:postgresql://a:1,b/shop"))
    'a:1,b:5432/shop'
    """
    several = url.query.get("host")
    hosts = ",".join([several] if isinstance(several, str) else several or [])
    if url.host:
        hosts = f"{url.host}:{url.port}" if url.port else url.host
    return f"{hosts}/{url.database or ''}".rstrip("/") if hosts else url.database or url.get_backend_name()


def secrets_of(url: URL) -> list[str]:
    """The passwords of a URL.

    >>> secrets_of(parse_url("jdbc:postgresql://h/d?password=tiger&sslpassword=lion"))
    ['tiger', 'lion']
    """
    hidden = [value for name, value in url.query.items() if any(word in name.lower() for word in _SECRET_WORDS)]
    return [text for text in (url.password, *hidden) if isinstance(text, str) and text]


def is_file(url: URL) -> bool:
    """Whether a database is a file, without users."""
    return url.get_backend_name() in _FILES


def _checked(url: URL) -> URL:
    """SQLAlchemy's own URL of a file passes the same checks as JDBC's."""
    if is_file(url):
        _check_file(url.get_backend_name(), url.database or "")
    return url


def _file(backend: str, rest: str) -> URL:
    path, _, query = rest.partition("?")
    path = path.removeprefix("file:")
    _check_file(backend, path)
    if query:
        raise ConfigurationError(f"A {_FILES[backend]} URL has no parameters here: write jdbc:{backend}:path.")
    return URL.create(backend, database=path)


_FILES = {"sqlite": "SQLite", "duckdb": "DuckDB"}


def _check_file(backend: str, path: str) -> None:
    if path in ("", ":memory:"):
        raise ConfigurationError(
            f"A {_FILES[backend]} database in memory would be another one in every subtask: name a file, as in "
            f"jdbc:{backend}:path."
        )


def _server(backend: str, rest: str) -> URL:
    location, _, query = rest.partition("?")
    hosts, database = "localhost", location.strip("/")
    if location.startswith("//"):
        hosts, _, database = location[2:].partition("/")
    places = _hosts(hosts, backend)
    given: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        given.update(_parameter(backend, name, value))
    user, password = given.pop("user", None), given.pop("password", None)
    parameters: dict[str, str | list[str]] = {name: value for name, value in given.items() if value}
    if len(places) > 1:
        if backend != "postgresql":
            raise ConfigurationError(f"A {backend} URL names one host, not {len(places)}.")
        parameters["host"] = [f"{host}:{port}" for host, port in places]
    host, port = (places[0][0], int(places[0][1])) if len(places) == 1 else (None, None)
    return URL.create(
        _CLIENTS[backend], user or None, password or None, host, port, unquote(database) or None, parameters
    )


def _hosts(text: str, backend: str) -> list[tuple[str, str]]:
    """The hosts, which are separated by commas, with their ports."""
    places = []
    for each in (text or "localhost").split(","):
        host, colon, port = each.rpartition(":") if not each.endswith("]") else (each, "", "")
        if not colon:
            host, port = each, _PORTS[backend]
        if not port.isdigit():
            raise ConfigurationError(f"'{port}' is not a port: a URL is jdbc:{backend}://host:port/database.")
        places.append((host.strip("[]") or "localhost", port))
    return places


def _parameter(backend: str, name: str, value: str) -> dict[str, str]:
    if name in ("user", "password"):
        return {name: value}
    if backend == "postgresql":
        return _of_postgresql(name, value)
    return _of_mysql(name, value)


def _of_postgresql(name: str, value: str) -> dict[str, str]:
    if name in _WITHOUT_MEANING["postgresql"]:
        return {}
    if name == "ssl":
        return {"sslmode": "verify-full"} if value.lower() in ("true", "") else {}
    if name == "currentSchema":
        return {"options": f"-c search_path={value.replace(' ', '')}"}
    if name == "targetServerType":
        value = _TARGETS.get(value, value)
    if name in _LIBPQ or name in _OF_LIBPQ:
        return {_LIBPQ.get(name, name): value}
    raise ConfigurationError(
        f"A PostgreSQL URL has no parameter '{name}': those of PostgreSQL's JDBC driver and of libpq are known."
    )


def _of_mysql(name: str, value: str) -> dict[str, str]:
    if name in _WITHOUT_MEANING["mysql"] or value.lower().startswith(_NO_TLS.get(name, " ")):
        return {}
    if name == "connectTimeout" and value.isdigit():
        return {"connect_timeout": str(max(1, int(value) // 1000))}
    if name in _OF_PYMYSQL:
        return {name: value}
    raise ConfigurationError(
        f"A MySQL URL has no parameter '{name}' here: those of PyMySQL are known, such as ssl_ca, and the usual ones "
        "of the JDBC drivers."
    )


_TRANSLATIONS: Mapping[str, Callable[[str, str], URL]] = {
    **dict.fromkeys(_CLIENTS, _server),
    **dict.fromkeys(_FILES, _file),
}
