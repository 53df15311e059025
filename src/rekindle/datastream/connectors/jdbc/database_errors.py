"""Errors of databases: which ones pass, which refuse a row, and what to do about the others.

SQLAlchemy sorts the errors of all drivers into the classes of PEP 249; the database's own code says the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError

#: Serialization failure, deadlock, a lock that was not available: in SQLSTATE, and as SQLite, MySQL and Oracle have it.
_PASSING = ("40001", "40P01", "55P03", "SQLITE_BUSY", "SQLITE_LOCKED", "1205", "1213", "ORA-00060", "ORA-08177")
#: The server ends, starts, or has no place now; class 08 is connections.
_AWAY = ("08", "57P01", "57P02", "57P03", "57P05", "53300", "25P03", "1040", "1053", "2002", "2003", "2006", "2013")
#: Who connects, or what to.
_LOGIN = ("28", "3D", "1044", "1045", "1049", "1698", "ORA-01017")
#: Constraints that a client takes for faults of its own: CHECK of MySQL and of MariaDB.
_CHECKS = frozenset({"3819", "4025"})

_SERVER_RUNS = "see that the server runs and that the URL names it"
_CORRECT_LOGIN = "check the user name and the password, and that the server lets this user in from here"
_CORRECT_TABLE = "create the table, or correct its name"
_CORRECT_RECORDS = "correct the records, or the table's constraints"
_GIVE_RIGHT = "give this user the right"
#: The remedy, by the error's code or the beginning of it.
_ADVICE: Mapping[str, str] = {
    "08": _SERVER_RUNS,
    "22": "correct the records, or the column's type",
    "23": _CORRECT_RECORDS,
    "28": "check the user name and the password, and the server's pg_hba.conf",
    "3D": "create the database, or correct its name in the URL",
    "3F": "create the schema, or correct its name",
    "42501": _GIVE_RIGHT,
    "42601": "correct the statement",
    "42703": "correct the statement, or add the column",
    "42804": "declare the field with the column's type, or cast the placeholder in the statement",
    "42883": "cast the placeholder in the statement to the type that is meant",
    "42P10": "ON CONFLICT needs a unique index or a primary key over exactly these columns",
    "42P01": f"{_CORRECT_TABLE} or the search path (currentSchema in the URL)",
    "53": "the server has too little of it",
    "57": "see that the server runs",
    "SQLITE_BUSY": "another program has it locked",
    "SQLITE_CANTOPEN": "see that its folder exists and that this user may write there",
    "SQLITE_CONSTRAINT": _CORRECT_RECORDS,
    "SQLITE_FULL": "make room on its disk",
    "SQLITE_NOTADB": "the file is not a SQLite database: correct the path",
    "SQLITE_READONLY": "give this user the right to write the file",
    "1044": _GIVE_RIGHT,
    "1045": _CORRECT_LOGIN,
    "1049": "create the database, or correct its name in the URL",
    "1054": "correct the statement, or add the column",
    "1064": "correct the statement",
    "1142": _GIVE_RIGHT,
    "1146": _CORRECT_TABLE,
    "1698": _CORRECT_LOGIN,
    "2002": _SERVER_RUNS,
    "2003": _SERVER_RUNS,
    "3819": _CORRECT_RECORDS,
    "4025": _CORRECT_RECORDS,
    "ORA-00942": _CORRECT_TABLE,
    "ORA-01017": _CORRECT_LOGIN,
}


class Fault(Enum):
    """The kinds of errors of a client."""

    #: The same transaction may succeed now: a deadlock, a serialization failure, a lock that was held too long.
    PASSING = auto()
    #: The connection is gone, or the server is.
    LOST = auto()
    #: The database has understood and refuses: no repetition helps.
    REFUSED = auto()


@contextmanager
def driver_errors(connection: Connection) -> Iterator[None]:
    """Raise what the driver raises inside the block as SQLAlchemy does, which sees its own calls only."""
    dialect = connection.dialect
    kinds: Any = dialect.loaded_dbapi.Error
    try:
        yield
    except OverflowError as error:  # of sqlite3, for a number of more than 64 bits
        raise DataError(None, None, error, hide_parameters=True) from error
    except kinds as error:
        raw = connection.connection.dbapi_connection
        lost = bool(dialect.is_disconnect(error, raw, None))
        if lost:
            connection.invalidate(error)
        told: Any = DBAPIError.instance(
            None, None, error, kinds, hide_parameters=True, connection_invalidated=lost, dialect=dialect
        )
        raise told from error


def fault_of(error: DBAPIError) -> Fault:
    """Say what an error means; without a code it is the connection's."""
    code = code_of(error)
    if error.connection_invalidated or (code is None and _is_of_the_connection(error)):
        return Fault.LOST
    if code is None:
        return Fault.REFUSED
    return Fault.PASSING if code.startswith(_PASSING) else Fault.LOST if code.startswith(_AWAY) else Fault.REFUSED


def refuses_row(error: BaseException | None) -> bool:
    """Say whether an error is about a row's values or about a constraint, and not about the statement."""
    if isinstance(error, DataError | IntegrityError):
        return True
    return isinstance(error, DBAPIError) and code_of(error) in _CHECKS


def is_refused_login(error: DBAPIError) -> bool:
    """Whether a connect failed because of who or what was asked for: waiting does not help."""
    code = code_of(error)
    return code is not None and code.startswith(_LOGIN)


def described(error: DBAPIError) -> str:
    """The database's words, its code and what to do: the end of a sentence."""
    code, words = code_of(error), _words(error)
    beginnings = [code[:end] for end in range(len(code), 1, -1)] if code else []
    advice = next((_ADVICE[each] for each in beginnings if each in _ADVICE), None)
    if advice is None and code is None and _is_of_the_connection(error):
        advice = _SERVER_RUNS
    if advice is None and refuses_row(error):
        advice = _ADVICE["22"] if isinstance(error, DataError) else _CORRECT_RECORDS
    if "no such table" in words:
        advice = _CORRECT_TABLE
    return f"{words}{f' ({code})' if code else ''}{f'; {advice}' if advice else ''}"


def code_of(error: DBAPIError) -> str | None:
    """The database's own code: an SQLSTATE, a name of SQLite, a number of MySQL, an ORA-number; None without one."""
    origin: Any = error.orig
    first = origin.args[0] if origin is not None and origin.args else None
    if isinstance(first, int) and first:
        return str(first)
    for holder, name in ((origin, "sqlstate"), (origin, "sqlite_errorname"), (first, "full_code")):
        if code := getattr(holder, name, None):
            return str(code)
    if isinstance(first, str) and len(first) == 5 and first.isalnum() and len(origin.args) > 1:
        return first  # pyodbc's SQLSTATE
    return _code_in(str(origin))


def _code_in(words: str) -> str | None:
    """A failed connect to PostgreSQL has no code: the server's words say what it was."""
    if "password" in words or "pg_hba" in words or 'role "' in words:
        return "28000"
    return "3D000" if 'database "' in words and "does not exist" in words else None


def _words(error: DBAPIError) -> str:
    """The words of the error, on one line and without its code."""
    origin: Any = error.orig
    diagnosis = getattr(origin, "diag", None)
    words = getattr(diagnosis, "message_primary", None)
    if words is None:
        texts = [each for each in getattr(origin, "args", ()) if isinstance(each, str)]
        words = " ".join((texts[-1] if texts else str(origin)).split())
    detail = getattr(diagnosis, "message_detail", None)
    return ", ".join(filter(None, (words.rstrip("."), detail and detail.rstrip("."))))


def _is_of_the_connection(error: DBAPIError) -> bool:
    return isinstance(error, OperationalError | InterfaceError)
