"""Errors of HBase and of its Thrift server as sentences: the address, what was tried, and what to do.

The Thrift server answers with the text of a Java exception and its stack. Of that only the telling words are shown.
"""

from __future__ import annotations

import re
from typing import Any

from rekindle.errors import ConnectorError

_FAMILY = re.compile(r"Column family (\S+) does not exist")
_EXCEPTION = re.compile(r"(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error)\b)")
_LONGEST = 200


def happybase() -> Any:
    """Import the package happybase; where it is missing, say how to install it."""
    try:
        import happybase as package
    except ImportError as error:
        raise ConnectorError(
            "HBase sources, sinks and lookups need the package happybase: install it on the driver and on the workers "
            "with pip install 'rekindle[hbase]'."
        ) from error
    return package


def client_errors() -> tuple[type[BaseException], ...]:
    """Return the errors that calls of a client may raise: those of the socket, and those of Thrift and HBase."""
    happybase()
    from thriftpy2.thrift import TException

    return (OSError, EOFError, TException)


def java_text(error: BaseException) -> str:
    """Return the text of the Java exception in an answer of the Thrift server; empty for other errors."""
    message = getattr(error, "message", None)
    if isinstance(message, bytes):
        return message.decode("utf-8", "replace")
    return ""


def described(error: BaseException) -> str:
    """The first line of an error, without Java's packages and stack.

    >>> described(TimeoutError("timed out"))
    'timed out (TimeoutError)'
    """
    text = java_text(error)
    if text:
        return _EXCEPTION.sub(r"\1", text.splitlines()[0])[:_LONGEST].rstrip(" .:")
    words = str(getattr(error, "message", None) or error).rstrip(".") or "no answer"
    return f"{words[:_LONGEST]} ({type(error).__name__})"


def refusal(error: BaseException, table: str) -> str | None:
    """The reason why HBase will refuse this again, and the remedy: the end of a sentence; None if a retry may help."""
    text = java_text(error)
    if "TableNotFoundException" in text:
        return f"there is no table '{table}': create it with its column families, or correct its name"
    if "NoSuchColumnFamilyException" in text:
        found = _FAMILY.search(text)
        name = f"'{found[1]}'" if found else "with the name that a column has"
        return f"table '{table}' has no column family {name}: add it, or correct the columns"
    if "TableNotEnabledException" in text or "is disabled" in text:
        return f"table '{table}' is disabled: enable it"
    if "AccessDeniedException" in text:
        return f"the Thrift server's user may not use table '{table}' in this way: grant the right"
    if "Internal error processing scannerOpen" in text:
        return f"the Thrift server does not understand the scan of table '{table}': correct set_filter()"
    if "KeyValue size too large" in text:
        return (
            f"a cell for table '{table}' is larger than hbase.client.keyvalue.maxsize of the Thrift server (10 MB "
            "unless set): raise it there, or write less into one cell"
        )
    return None
