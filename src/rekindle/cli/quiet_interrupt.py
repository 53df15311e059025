"""Ctrl-C or SIGTERM while Python waits for Spark's JVM: py4j logs the interrupted call, twice, with tracebacks. The
user knows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

#: py4j logs to the root logger, too.
_LOGGERS = ("", "py4j.clientserver", "py4j.java_gateway")


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return False
        error = error.__context__
    return True


@contextmanager
def without_interrupted_calls() -> Iterator[None]:
    """Inside the block nothing is logged about calls that Ctrl-C or SIGTERM interrupted."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for each in loggers:
        each.addFilter(_is_no_interrupt)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(_is_no_interrupt)
