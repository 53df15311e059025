"""Waits for what a request has started: a savepoint, or a stop with one."""

from __future__ import annotations

import time
from typing import Any

from rekindle.cli.exit_codes import CommandError, ExitCode
from rekindle.cli.find_job import FoundJob

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0


def savepoint_of(job: FoundJob, what: str, body: dict[str, Any], timeout_s: float) -> str:
    """Ask for a savepoint (`what`: savepoints, stop), and return where it is; CommandError: it failed."""
    request = job.driver.post(f"{job.path}/{what}", body)["request-id"]
    until, pause_s = time.monotonic() + timeout_s, _FIRST_PAUSE_S
    while True:
        answer = job.driver.get(f"{job.path}/savepoints/{request}")
        if answer["status"]["id"] == "COMPLETED":
            return _location(job, answer["operation"])
        if time.monotonic() >= until:
            raise CommandError(
                f"The savepoint of job '{job.name}' was not complete within {timeout_s:g} s, and is still being made: "
                f"rekindle watch {job.job_id} shows it."
            )
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)


def wait_until_over(job: FoundJob, timeout_s: float) -> str:
    """Wait for the end of a job, and return its last state."""
    until, pause_s = time.monotonic() + timeout_s, _FIRST_PAUSE_S
    while True:
        try:
            state = str(job.driver.get(f"{job.path}/status")["status"])
        except CommandError as error:
            if error.code != ExitCode.UNREACHABLE:
                raise
            return "CANCELED"  # the driver has ended with its job
        if state in ("CANCELED", "FINISHED", "FAILED"):
            return state
        if time.monotonic() >= until:
            raise CommandError(f"Job '{job.name}' has not ended within {timeout_s:g} s: it is {state}.")
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)


def _location(job: FoundJob, outcome: dict[str, Any]) -> str:
    failure = outcome.get("failure-cause")
    if failure is None:
        return str(outcome["location"])
    name, text = failure["class"], str(failure["stack-trace"])
    raise CommandError(f"The savepoint of job '{job.name}' failed: {text.removeprefix(f'{name}: ').strip()}")
