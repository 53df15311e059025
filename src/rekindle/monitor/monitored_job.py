"""The monitored job, as the launcher hands it to servers and reporters, which it finds by their entry points."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points

from rekindle.common.configuration import Configuration
from rekindle.common.job_client import JobHandle
from rekindle.coordinator.observer import JobObserver
from rekindle.monitor.job_recorder import JobRecorder

#: The group of the entry points.
GROUP = "rekindle.monitor"
_LOG = logging.getLogger("rekindle.monitor")


@dataclass(frozen=True)
class MonitoredJob:
    """A job to show: its read model, and its handle for those who act on it."""

    recorder: JobRecorder
    handle: JobHandle
    configuration: Configuration
    #: Options of object stores, by kind; with secrets.
    store_options: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Attached:
    """A server or reporter that shows a job: its link, if that is worth a line, and its observer of the job."""

    link: str | None = None
    observers: Sequence[JobObserver] = ()


#: The form of the functions behind the entry points.
Attach = Callable[[MonitoredJob], Attached]


def attach_all(job: MonitoredJob) -> list[Attached]:
    """Let everybody who is installed show the job. A ConfigurationError of the user's reaches the user."""
    return [attach(job) for attach in _found()]


def _found() -> list[Attach]:
    return [entry.load() for entry in entry_points(group=GROUP)]
