"""The stream of a job's events, and the port of those who hear them: progress line, read model, benchmarks, tests."""

from __future__ import annotations

import logging
from typing import Protocol

from rekindle.coordinator.job_events import JobEvent

_LOG = logging.getLogger("rekindle.job")


class JobObserver(Protocol):
    """Hears of a job's life."""

    def on_event(self, event: JobEvent) -> None:
        """Take an event, on one of the driver's threads; must return at once."""


class JobEvents:
    """Gives each event of a job to its observers, trusted ones first, in the order in which they came.

    An error of one that is not trusted is logged, and it hears no more: the job goes on.
    """

    def __init__(self) -> None:
        self._trusted: list[JobObserver] = []
        self._others: list[JobObserver] = []

    def subscribe(self, observer: JobObserver, *, trusted: bool = False) -> None:
        """Give all further events to an observer, too; before the job starts."""
        (self._trusted if trusted else self._others).append(observer)

    def emit(self, event: JobEvent) -> None:
        """Give an event to all observers; safe from any thread."""
        for each in self._trusted:
            each.on_event(event)
        for each in list(self._others):
            try:
                each.on_event(event)
            except Exception:
                self._others.remove(each)
                _LOG.exception("%s failed and watches the job no more.", type(each).__name__)
