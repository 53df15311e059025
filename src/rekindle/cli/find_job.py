"""Finds a running job: by name, id or directory of checkpoints among this user's drivers, or at an address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rekindle.cli.driver_client import DriverClient
from rekindle.cli.exit_codes import CommandError, ExitCode
from rekindle.cli.printed import print_sentence

_BEGINNING_OF_ID = re.compile(r"[0-9a-f]{4,32}")
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED", "SUSPENDED"})


@dataclass(frozen=True)
class FoundJob:
    """A job, and the driver that runs it."""

    driver: DriverClient
    #: Its entry in `/jobs/overview`.
    overview: dict[str, Any] = field(repr=False)
    #: The process of the driver, if it is on this machine.
    pid: int | None = None

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return str(self.overview["jid"])

    @property
    def name(self) -> str:
        """The name of the job."""
        return str(self.overview["name"])

    @property
    def state(self) -> str:
        """The state of the job."""
        return str(self.overview["state"])

    @property
    def is_over(self) -> bool:
        """Whether the job runs no more."""
        return self.state in _ENDED

    @property
    def path(self) -> str:
        """The path of the job in the API."""
        return f"/jobs/{self.job_id}"

    def document(self) -> dict[str, Any]:
        """The job for machines."""
        return {**self.overview, "address": self.driver.url, "pid": self.pid}

    def __str__(self) -> str:
        return f"'{self.name}' ({self.job_id} at {self.driver.url})"


def known_jobs(address: str | None = None, token: str | None = None) -> list[FoundJob]:
    """The jobs of the driver at an address, else of all drivers of this user on this machine; running ones first."""
    if address is not None:
        jobs = _jobs_of(DriverClient.at(address, token), None)
    else:
        jobs = [job for driver in _own_drivers(token) for job in driver]
    return sorted(jobs, key=lambda job: (job.is_over, -job.overview["start-time"]))


def _own_drivers(token: str | None) -> list[list[FoundJob]]:
    from rekindle.web.runtime_directory import running_drivers

    found = []
    for note in running_drivers():
        try:
            found.append(_jobs_of(DriverClient.at(note.url, note.token or token), note.pid))
        except CommandError as error:  # it is about to end, or hangs: the others count
            print_sentence(str(error))
    return found


def _jobs_of(driver: DriverClient, pid: int | None) -> list[FoundJob]:
    return [FoundJob(driver, job, pid) for job in driver.get("/jobs/overview")["jobs"]]


def find_job(wanted: str | None, address: str | None, token: str | None, *, may_be_over: bool = False) -> FoundJob:
    """The one job that a user means; CommandError lists what there is."""
    jobs = known_jobs(address, token)
    running = [job for job in jobs if not job.is_over]
    fitting = running if wanted is None else _fitting(running, wanted)
    if not fitting and (may_be_over or wanted is not None):
        over = jobs if wanted is None else _fitting(jobs, wanted)
        if over and may_be_over:
            return over[0]
        if over:
            raise CommandError(f"Job {over[0]} does not run any more: it is {over[0].state}.", ExitCode.NOT_FOUND)
    if not fitting:
        raise CommandError(_nothing(wanted, address, running), ExitCode.NOT_FOUND)
    if len(fitting) > 1:
        which = "Several jobs run" if wanted is None else f"Several jobs are meant by '{wanted}'"
        raise CommandError(f"{which}: give the id of one of {_list(fitting)}.", ExitCode.USAGE)
    return fitting[0]


def _fitting(jobs: Sequence[FoundJob], wanted: str) -> list[FoundJob]:
    """The jobs with this id; else with this name; else whose id begins so; else with their history there."""
    by_id = [job for job in jobs if job.job_id == wanted.lower()]
    by_name = [job for job in jobs if job.name == wanted]
    begins = _BEGINNING_OF_ID.fullmatch(wanted.lower()) is not None
    beginning = [job for job in jobs if begins and job.job_id.startswith(wanted.lower())]
    return by_id or by_name or beginning or _with_history_at(jobs, wanted)


def _with_history_at(jobs: Sequence[FoundJob], directory: str) -> list[FoundJob]:
    from rekindle.checkpoint.stored_places import is_missing
    from rekindle.clock import SystemClock

    if is_missing(directory):
        return []
    from rekindle.monitor.job_history import read_histories

    ids = {view.job_id for view in read_histories(directory, SystemClock().wall_ms())}
    return [job for job in jobs if job.job_id in ids]


def _nothing(wanted: str | None, address: str | None, running: Sequence[FoundJob]) -> str:
    where = f"at {address}" if address is not None else "of this user on this machine"
    if wanted is None or not running:
        which = "No job runs" if wanted is None else f"There is no running job '{wanted}', nor any other one,"
        return f"{which} {where}: start one with rekindle run, or name its driver with --address."
    return f"There is no running job '{wanted}' {where}: there is {_list(running)}."


def _list(jobs: Sequence[FoundJob]) -> str:
    return ", ".join(map(str, jobs))
