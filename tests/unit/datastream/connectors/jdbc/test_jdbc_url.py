"""JDBC URLs and driver names."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.engine import URL

from rekindle.datastream.connectors.jdbc import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.jdbc_url import parse_url, place_of, secrets_of
from rekindle.errors import ConfigurationError, GraphError


def client_arguments(url: URL) -> dict[str, Any]:
    """The parameters that the client gets."""
    arguments, parameters = url.get_dialect()().create_connect_args(url)
    assert arguments in ([], [""])
    return dict(parameters)


@pytest.mark.parametrize(
    ("url", "place", "parameters"),
    [
        ("jdbc:postgresql://h:1/d", "h:1/d", {"host": "h", "port": 1, "dbname": "d"}),
        ("jdbc:postgresql://h/d", "h:5432/d", {"host": "h", "port": 5432, "dbname": "d"}),
        ("jdbc:postgresql:d", "localhost:5432/d", {"host": "localhost", "port": 5432, "dbname": "d"}),
        ("jdbc:postgresql://a:1,b/d", "a:1,b:5432/d", {"host": "a,b", "port": "1,5432", "dbname": "d"}),
        ("jdbc:postgresql://[::1]:7/d", "::1:7/d", {"host": "::1", "port": 7, "dbname": "d"}),
        ("jdbc:postgresql://[::1]/d", "::1:5432/d", {"host": "::1", "port": 5432, "dbname": "d"}),
        ("jdbc:postgresql://h/my%20shop", "h:5432/my shop", {"host": "h", "port": 5432, "dbname": "my shop"}),
        ("postgresql+psycopg://h:1/d", "h:1/d", {"host": "h", "port": 1, "dbname": "d"}),
    ],
)
def test_places(url: str, place: str, parameters: dict[str, Any]) -> None:
    address = parse_url(url)
    assert (place_of(address), client_arguments(address)) == (place, parameters)


@pytest.mark.parametrize(
    ("url", "place", "name"),
    [
        ("jdbc:sqlite:file:a/b.db", "a/b.db", "sqlite"),
        ("jdbc:duckdb:/a/b.db", "/a/b.db", "duckdb"),
        ("jdbc:mysql://h/shop", "h:3306/shop", "mysql+pymysql"),
        ("jdbc:mariadb://h:1/shop", "h:1/shop", "mariadb+pymysql"),
        ("mssql+pyodbc://u:p@h/shop", "h/shop", "mssql+pyodbc"),
    ],
)
def test_places_of_others(url: str, place: str, name: str) -> None:
    address = parse_url(url)
    assert (place_of(address), address.drivername) == (place, name)


def test_parameters_are_translated_and_secrets_set_apart() -> None:
    query = "user=anna&password=t%26r&ssl=true&currentSchema=shop,public&connectTimeout=3&reWriteBatchedInserts=true"
    address = parse_url(f"jdbc:postgresql://h/d?{query}&targetServerType=preferSecondary")
    assert secrets_of(address) == ["t&r"]
    given = client_arguments(address)
    assert {name: given[name] for name in given.keys() - {"host", "port", "dbname", "password"}} == {
        "user": "anna",
        "sslmode": "verify-full",
        "options": "-c search_path=shop,public",
        "connect_timeout": "3",
        "target_session_attrs": "prefer-standby",
    }


def test_parameters_of_mysql_are_translated() -> None:
    query = "user=anna&password=tiger&useSSL=false&rewriteBatchedStatements=true&connectTimeout=3000&ssl_ca=ca.pem"
    given = client_arguments(parse_url(f"jdbc:mysql://h/d?{query}"))
    assert (given["user"], given["password"], given["connect_timeout"]) == ("anna", "tiger", 3)
    assert given["ssl"] == {"ca": "ca.pem"}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("jdbc:h2://u:secret@h/d", "'jdbc:h2://...'"),
        ("mysql://u:secret@h:port/d", "'mysql://...'"),
        ("jdbc:mysql://h/d?useSSL=true&password=secret", "no parameter 'useSSL'"),
        ("jdbc:mysql://a,b/d", "one host"),
        ("sqlite://", "another one in every subtask"),
        ("nonsense secret", "this text"),
        ("jdbc:postgresql://h:x/d", "'x' is not a port"),
        ("jdbc:postgresql://h/d?sslmod=require", "no parameter 'sslmod'"),
        ("jdbc:sqlite::memory:", "another one in every subtask"),
        ("jdbc:sqlite:a.db?mode=ro", "no parameters"),
    ],
)
def test_what_is_wrong_is_told_without_secrets(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_url(url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_options_have_pyflinks_getters() -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://h/d?user=u&password=p")
    options = builder.with_driver_name("org.postgresql.Driver").build()
    assert (options.get_user_name(), options.get_password()) == ("u", "p")
    assert options.get_db_url() == "jdbc:postgresql://h/d?user=u&password=p"
    assert options.get_driver_name() == "org.postgresql.Driver"
    assert client_arguments(options.address)["password"] == "p"
    own = builder.with_user_name("v").with_password("q").build()
    given = client_arguments(own.address)
    assert (own.get_user_name(), given["user"], given["password"]) == ("v", "v", "q")


def test_options_that_cannot_be() -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder
    with pytest.raises(GraphError, match=r"with_url\(\)"):
        builder().build()
    with pytest.raises(ConfigurationError, match="is for jdbc:sqlite:"):
        builder().with_url("jdbc:postgresql://h/d").with_driver_name("org.sqlite.JDBC").build()
    with pytest.raises(GraphError, match="1 second or more"):
        builder().with_connection_check_timeout_seconds(0)
