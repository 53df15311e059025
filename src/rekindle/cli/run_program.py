"""Runs a user's program for `rekindle run` and `rekindle info`: with settings from outside, and its jobs in sight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rekindle.cli.exit_codes import CommandError, ExitCode

if TYPE_CHECKING:
    from rekindle.cli.launchers import StartedJob
    from rekindle.common.configuration import Configuration
    from rekindle.datastream.find_launcher import Launcher
    from rekindle.datastream.main_program import MainProgram

#: The longest time that an interrupted program waits for the end of its jobs.
_CANCELLATION_S = 60.0


def refuse_missing(program: MainProgram) -> None:
    """CommandError: there is no such file."""
    if program.is_missing:
        raise CommandError(f"There is no program '{program}'.", ExitCode.NOT_FOUND)


def run_program(program: MainProgram, configuration: Configuration, launcher: Launcher) -> None:
    """Run a program; its environments begin with these settings, and its jobs start by this launcher.

    Its exceptions go through: its own errors, `SystemExit`, `KeyboardInterrupt`.
    """
    from rekindle.datastream.find_launcher import launching_with
    from rekindle.datastream.submitted_settings import submitted_with

    refuse_missing(program)
    with submitted_with(configuration), launching_with(launcher):
        program.run()


def wait_for(jobs: Sequence[StartedJob]) -> None:
    """Wait for jobs that the program has started and not waited for; raises the first error."""
    from rekindle.common.completable_future import waited_for

    for job in jobs:
        if not job.handle.result().done():
            waited_for(job.handle.result())


def cancel(jobs: Sequence[StartedJob]) -> None:
    """Cancel the jobs that still run, and wait for their end."""
    cancelled = [job.handle.cancel() for job in jobs if not job.handle.result().done()]
    for each in cancelled:
        try:
            each.result(_CANCELLATION_S)
        except TimeoutError:
            return
