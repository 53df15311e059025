"""PostgreSQL's errors: which ones pass, and what to do about the others."""

from __future__ import annotations

from collections.abc import Mapping

from rekindle.datastream.connectors.jdbc.database import Fault

UNDEFINED_TABLE = "42P01"

#: Serialization failure, deadlock, a lock that was not available, a catalogue row that two sessions made at once.
_PASSING = frozenset({"40001", "40P01", "55P03"})
#: The server ends, starts, or has no place now; and class 08: connections.
_AWAY = frozenset({"57P01", "57P02", "57P03", "57P05", "53300", "25P03"})
_LOGIN_CLASSES = ("28", "3D")
_ROW_CLASSES = ("22", "23")

#: The remedy, by the error's code or the code's class.
_ADVICE: Mapping[str, str] = {
    "08": "see that the server runs and that the URL names it",
    "22": "correct the records, or the column's type",
    "23": "correct the records, or the table's constraints",
    "28": "check the user name and the password, and the server's pg_hba.conf",
    "3D": "create the database, or correct its name in the URL",
    "3F": "create the schema, or correct its name",
    "42501": "give this user the right",
    "42601": "correct the statement",
    "42703": "correct the statement, or add the column",
    "42804": "declare the field with the column's type, or cast the placeholder in the statement",
    "42883": "cast the placeholder in the statement to the type that is meant",
    "42P10": "ON CONFLICT needs a unique index or a primary key over exactly these columns",
    UNDEFINED_TABLE: "create the table, or correct its name or the search path (currentSchema in the URL)",
    "53": "the server has too little of it",
    "57": "see that the server runs",
}


def fault_of(error: Exception) -> Fault:
    """Say what an error means; without a code it is the connection's."""
    state = getattr(error, "sqlstate", None)
    if state is None:
        return Fault.LOST if _is_of_the_connection(error) else Fault.REFUSED
    if state in _PASSING:
        return Fault.PASSING
    return Fault.LOST if state in _AWAY or state.startswith("08") else Fault.REFUSED


def refuses_row(error: Exception) -> bool:
    """Say whether an error is about values (class 22) or a constraint (class 23)."""
    return str(getattr(error, "sqlstate", None)).startswith(_ROW_CLASSES)


def described(error: Exception) -> str:
    """The server's words, its code and what to do: the end of a sentence."""
    state, diagnosis = getattr(error, "sqlstate", None), getattr(error, "diag", None)
    words = getattr(diagnosis, "message_primary", None) or _flat(str(error))
    detail = getattr(diagnosis, "message_detail", None)
    named = ", ".join(filter(None, (words.rstrip("."), detail and detail.rstrip("."))))
    state = state or _state_in(words)
    advice = _ADVICE.get(state) or _ADVICE.get(state[:2]) if state else None
    if advice is None and _is_of_the_connection(error):
        advice = _ADVICE["08"]
    return f"{named}{f' ({state})' if state else ''}{f'; {advice}' if advice else ''}"


def _state_in(words: str) -> str | None:
    """A failed connect has no code: the server's words say what it was."""
    if "password" in words or "pg_hba" in words or 'role "' in words:
        return "28000"
    return "3D000" if 'database "' in words and "does not exist" in words else None


def is_refused_login(error: Exception) -> bool:
    """Whether a connect failed because of who or what was asked for: waiting does not help."""
    state = getattr(error, "sqlstate", None) or _state_in(str(error))
    return state is not None and state.startswith(_LOGIN_CLASSES)


def _is_of_the_connection(error: Exception) -> bool:
    return type(error).__name__ in ("OperationalError", "ConnectionTimeout", "InterfaceError", "AdminShutdown")


def _flat(text: str) -> str:
    return " ".join(text.split())
