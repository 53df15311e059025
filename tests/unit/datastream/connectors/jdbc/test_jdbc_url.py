"""JDBC URLs and driver names."""

from __future__ import annotations

import pytest

from rekindle.datastream.connectors.jdbc import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.jdbc_url import parse_url
from rekindle.errors import ConfigurationError, GraphError


@pytest.mark.parametrize(
    ("url", "place", "parameters"),
    [
        ("jdbc:postgresql://h:1/d", "h:1/d", {"host": "h", "port": "1", "dbname": "d"}),
        ("jdbc:postgresql://h/d", "h:5432/d", {"host": "h", "port": "5432", "dbname": "d"}),
        ("jdbc:postgresql:d", "localhost:5432/d", {"host": "localhost", "port": "5432", "dbname": "d"}),
        ("jdbc:postgresql://a:1,b/d", "a:1,b:5432/d", {"host": "a,b", "port": "1,5432", "dbname": "d"}),
        ("jdbc:postgresql://[::1]:7/d", "::1:7/d", {"host": "::1", "port": "7", "dbname": "d"}),
        ("jdbc:postgresql://[::1]/d", "::1:5432/d", {"host": "::1", "port": "5432", "dbname": "d"}),
        ("jdbc:postgresql://h/my%20shop", "h:5432/my shop", {"host": "h", "port": "5432", "dbname": "my shop"}),
        ("jdbc:sqlite:file:a/b.db", "a/b.db", {"path": "a/b.db"}),
    ],
)
def test_places(url: str, place: str, parameters: dict[str, str]) -> None:
    address = parse_url(url)
    assert (address.place, dict(address.parameters)) == (place, parameters)


def test_parameters_are_translated_and_secrets_set_apart() -> None:
    query = "user=anna&password=t%26r&ssl=true&currentSchema=shop,public&connectTimeout=3&reWriteBatchedInserts=true"
    address = parse_url(f"jdbc:postgresql://h/d?{query}&targetServerType=preferSecondary")
    assert address.secrets == {"password": "t&r"}
    assert {name: value for name, value in address.parameters.items() if name not in ("host", "port", "dbname")} == {
        "user": "anna",
        "sslmode": "verify-full",
        "options": "-c search_path=shop,public",
        "connect_timeout": "3",
        "target_session_attrs": "prefer-standby",
    }


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("jdbc:mysql://u:secret@h/d", "'jdbc:mysql://...'"),
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
    assert options.client_parameters()["password"] == "p"
    own = builder.with_user_name("v").with_password("q").build()
    assert (own.get_user_name(), own.client_parameters()["user"], own.client_parameters()["password"]) == (
        "v",
        "v",
        "q",
    )


def test_options_that_cannot_be() -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder
    with pytest.raises(GraphError, match=r"with_url\(\)"):
        builder().build()
    with pytest.raises(ConfigurationError, match="is for jdbc:sqlite:"):
        builder().with_url("jdbc:postgresql://h/d").with_driver_name("org.sqlite.JDBC").build()
    with pytest.raises(GraphError, match="1 second or more"):
        builder().with_connection_check_timeout_seconds(0)
