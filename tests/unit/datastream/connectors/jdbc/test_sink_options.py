"""The options of JDBC sinks, and programs that describe a sink that cannot be."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rekindle.common import Row, Types
from rekindle.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from rekindle.errors import ConfigurationError, ConnectorError, GraphError, TypeMismatchError

DATABASE = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:shop.db").build()
NAMED = Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()])
INSERT = "INSERT INTO orders (id, total) VALUES (?, ?)"


def test_flinks_defaults() -> None:
    options = JdbcExecutionOptions.defaults()
    assert (options.get_batch_size(), options.get_batch_interval_ms(), options.get_max_retries()) == (5000, 0, 3)
    own = JdbcExecutionOptions.builder().with_batch_size(7).with_batch_interval_ms(8).with_max_retries(0).build()
    assert (own.get_batch_size(), own.get_batch_interval_ms(), own.get_max_retries()) == (7, 8, 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: JdbcExecutionOptions.builder().with_batch_size(0), "1 or more"),
        (lambda: JdbcExecutionOptions.builder().with_batch_interval_ms(-1), "0 or more"),
        (lambda: JdbcExecutionOptions.builder().with_max_retries(1.5), "whole number"),  # type: ignore[arg-type]
        (lambda: JdbcExactlyOnceOptions.builder().with_ledger_table("a; DROP TABLE b"), "letters, digits"),
        (lambda: JdbcSink.sink("", NAMED, DATABASE), "needs a statement"),
        (lambda: JdbcSink.sink(INSERT, Types.LONG(), DATABASE), "needs a type"),  # type: ignore[arg-type]
        (lambda: JdbcSink.sink(INSERT, NAMED, "jdbc:sqlite:x"), "JdbcConnectionOptions"),  # type: ignore[arg-type]
        (lambda: JdbcSink.exactly_once_sink(INSERT, NAMED, DATABASE, None, 5), "JdbcExactlyOnceOptions"),  # type: ignore[arg-type]
        (
            lambda: JdbcSink.sink("INSERT INTO orders (id) VALUES (?)", NAMED, DATABASE),
            "The statement for table 'orders' has 1 placeholders",
        ),
        (
            lambda: JdbcSink.exactly_once_sink("INSERT INTO orders VALUES (?, ?, ?)", NAMED, DATABASE),
            "has 3 placeholders .*has 2 fields: give each field one placeholder",
        ),
    ],
)
def test_what_cannot_be_is_refused(call: Any, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        call()


def test_records_are_read_by_position_or_by_name() -> None:
    values = JdbcSink.sink(INSERT, NAMED, DATABASE)._settings.reader()
    for record in (Row(1, 2.0), Row(id=1, total=2.0), Row(total=2.0, id=1), (1, 2.0), [1, 2.0]):
        assert values(record) == (1, 2.0)
    with pytest.raises(TypeMismatchError, match="has 1 fields"):
        values((1,))
    with pytest.raises(TypeMismatchError, match="takes rows and tuples"):
        values(7)


def test_a_missing_client_is_told_where_the_program_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    database = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://localhost/shop").build()
    with pytest.raises(ConnectorError, match=r"pip install 'rekindle\[postgres\]'"):
        JdbcSink.sink(INSERT, NAMED, database)


def test_a_missing_sqlalchemy_is_told_in_one_sentence() -> None:
    program = "import sys; sys.modules['sqlalchemy'] = None; import rekindle.datastream.connectors.jdbc"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'rekindle[sql]'" in ended.stderr.splitlines()[-1]


def test_a_client_that_no_extra_has_is_named() -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    for url, words in (("firebird://h/shop", "dialect 'firebird'"), ("mssql+pymssql://h/shop", "package pymssql")):
        with pytest.raises(ConnectorError, match=words):
            JdbcSink.sink(INSERT, NAMED, builder.with_url(url).build())


def test_a_url_that_sqlalchemy_cannot_use_is_told_without_its_password() -> None:
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("sqlite://anna:tiger@/shop.db").build()
    with pytest.raises(ConfigurationError, match="SQLAlchemy cannot use the URL") as caught:
        JdbcSink.sink(INSERT, NAMED, options)
    assert "tiger" not in str(caught.value)


def test_a_file_has_no_users() -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:shop.db")
    JdbcSink.sink(INSERT, NAMED, builder.with_user_name("anna").with_password("tiger").build())
