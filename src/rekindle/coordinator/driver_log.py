"""The log of a driver that `rekindle run` started: time, level, logger and job on each line, as text or as JSON.

It stands in for Python's handler of last resort: a program that configures logging itself keeps its own handlers.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, TextIO

from rekindle.coordinator import closed_output

#: The name of the job whose thread this is; the driver's other threads serve all its jobs.
JOB_OF_THREAD: Final[ContextVar[str | None]] = ContextVar("JOB_OF_THREAD", default=None)
_NOISY: Final = ("py4j",)


class DriverLog(logging.StreamHandler[TextIO]):
    """Writes records to stderr, in one of two forms."""

    def __init__(self, form: str = "text", stream: TextIO | None = None) -> None:
        super().__init__(stream or sys.stderr)
        #: The jobs that the driver has started, by name: a line without a job of its own is of the only one.
        self.jobs: list[str] = []
        self.setFormatter(_JsonLines(self) if form == "json" else _TextLines(self))
        self._last_traceback = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, and remember the last traceback."""
        if "\n" in (message := record.getMessage()):
            self._last_traceback = message
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Tell the jobs that nobody reads the log any more; report other errors as Python does."""
        error = sys.exc_info()[1]
        if isinstance(error, Exception) and closed_output.is_closed(error):
            closed_output.tell("stderr", error)
        else:
            super().handleError(record)

    def has_shown(self, traceback: str) -> bool:
        """Whether the last traceback in the log is this one: whoever reads on needs it no second time."""
        return bool(traceback) and traceback in self._last_traceback

    def job_of(self, record: logging.LogRecord) -> str | None:
        """The name of the job that a record is about; None: of none, or of several."""
        known = getattr(record, "job", None) or JOB_OF_THREAD.get()
        return known or (self.jobs[0] if len(self.jobs) == 1 else None)

    def line(self, level: int, logger: str, text: str, job: str) -> None:
        """Write a line that is shown whatever the level."""
        record = logging.LogRecord(logger, level, "", 0, text, None, None)
        record.job = job
        self.handle(record)


@contextmanager
def driver_logging(level: str = "warning", form: str = "text") -> Iterator[DriverLog]:
    """Inside the block the driver logs so; the level is that of all loggers that have none of their own."""
    root, before = logging.getLogger(), logging.lastResort
    levels = {logger: logger.level for logger in (root, *map(logging.getLogger, _NOISY))}
    logging.lastResort = log = DriverLog(form)
    for logger in levels:  # the noisy ones have a line for each connection of each thread
        logger.setLevel(level.upper() if logger is root else max(logging.WARNING, root.level))
    try:
        yield log
    finally:
        logging.lastResort = before
        for logger, earlier in levels.items():
            logger.setLevel(earlier)


def driver_log() -> DriverLog | None:
    """The driver's log, if `rekindle run` has begun one."""
    return logging.lastResort if isinstance(logging.lastResort, DriverLog) else None


class _TextLines(logging.Formatter):
    """`2026-01-02 03:04:05,678 WARNING rekindle.job [orders] message`, for each line of a message."""

    def __init__(self, log: DriverLog) -> None:
        super().__init__("%(message)s")
        self._log = log

    def format(self, record: logging.LogRecord) -> str:
        """The lines of a record."""
        job = self._log.job_of(record)
        before = f"{self.formatTime(record)} {record.levelname} {record.name} [{job or '-'}] "
        return "\n".join(before + line for line in super().format(record).split("\n"))


class _JsonLines(logging.Formatter):
    """An object per record, on one line."""

    def __init__(self, log: DriverLog) -> None:
        super().__init__("%(message)s")
        self._log = log

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "job": self._log.job_of(record),
            "message": super().format(record),
        }
        return json.dumps(told, ensure_ascii=False)
