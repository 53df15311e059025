"""Errors of databases: their codes, and whether they pass."""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace
from typing import Any

import psycopg
import pymysql
import pytest
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError

from rekindle.datastream.connectors.jdbc.database_errors import (
    Fault,
    code_of,
    described,
    fault_of,
    is_refused_login,
    refuses_row,
)


def wrapped(kind: type[DBAPIError], origin: BaseException, *, lost: bool = False) -> DBAPIError:
    return kind(None, None, origin, connection_invalidated=lost)


def busy() -> BaseException:
    error: Any = sqlite3.OperationalError("database is locked")
    error.sqlite_errorname = "SQLITE_BUSY_SNAPSHOT"
    return error  # type: ignore[no-any-return]


ORACLE = SimpleNamespace(full_code="ORA-00060", code=60)


@pytest.mark.parametrize(
    ("error", "code", "fault"),
    [
        (wrapped(OperationalError, psycopg.errors.DeadlockDetected("deadlock")), "40P01", Fault.PASSING),
        (wrapped(OperationalError, psycopg.errors.DeadlockDetected("x"), lost=True), "40P01", Fault.LOST),
        (wrapped(OperationalError, psycopg.errors.AdminShutdown("x")), "57P01", Fault.LOST),
        (wrapped(OperationalError, psycopg.OperationalError("connection refused")), None, Fault.LOST),
        (wrapped(IntegrityError, psycopg.errors.UniqueViolation("x")), "23505", Fault.REFUSED),
        (wrapped(OperationalError, pymysql.err.OperationalError(1213, "Deadlock")), "1213", Fault.PASSING),
        (wrapped(OperationalError, pymysql.err.OperationalError(2003, "no answer")), "2003", Fault.LOST),
        (wrapped(InterfaceError, pymysql.err.InterfaceError(0, "")), None, Fault.LOST),
        (wrapped(OperationalError, pymysql.err.OperationalError(1054, "Unknown column")), "1054", Fault.REFUSED),
        (wrapped(OperationalError, busy()), "SQLITE_BUSY_SNAPSHOT", Fault.PASSING),
        (wrapped(DatabaseError, Exception(ORACLE)), "ORA-00060", Fault.PASSING),
        (wrapped(DBAPIError, Exception("40001", "[40001] [Microsoft] deadlock victim")), "40001", Fault.PASSING),
    ],
)
def test_the_code_says_what_an_error_means(error: DBAPIError, code: str | None, fault: Fault) -> None:
    assert (code_of(error), fault_of(error)) == (code, fault)


def test_rows_are_refused_by_the_class_or_by_the_code() -> None:
    check = wrapped(OperationalError, pymysql.err.OperationalError(4025, "CONSTRAINT `c` failed"))
    assert refuses_row(check)
    assert refuses_row(wrapped(DataError, OverflowError("Python int too large")))
    assert not refuses_row(wrapped(OperationalError, pymysql.err.OperationalError(1054, "Unknown column")))
    assert not refuses_row(ValueError("of our own"))
    assert described(check) == "CONSTRAINT `c` failed (4025); correct the records, or the table's constraints"


@pytest.mark.parametrize("words", ['password authentication failed for user "a"', 'database "d" does not exist'])
def test_a_refused_login_is_known_by_its_words(words: str) -> None:
    assert is_refused_login(wrapped(OperationalError, psycopg.OperationalError(words)))
