"""`rekindle list`: the jobs of this user's drivers, or of one."""

from __future__ import annotations

from typing import Annotated

import typer

from rekindle.cli.cells_for_people import duration, moment
from rekindle.cli.find_job import FoundJob, known_jobs
from rekindle.cli.printed import console, print_result, table
from rekindle.cli.shared_options import AddressOption, JsonOption, TokenOption

#: Below this width a row would not fit with the whole id; then it has this many of its digits.
_WIDE, _BEGINNING = 120, 8


def list_jobs(
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Show jobs that are over, too.")] = False,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List running jobs."""
    jobs = [job for job in known_jobs(address, token) if show_all or not job.is_over]
    is_wide = console().width >= _WIDE
    columns = ("ID", "Name", "State", *(("Since",) if is_wide else ()), "Duration", "Tasks", "Address")
    shown = table(columns, [_row(job, is_wide) for job in jobs], right=("Tasks",))
    print_result({"jobs": [job.document() for job in jobs]}, shown if jobs else "No job runs.", as_json=as_json)


def _row(job: FoundJob, is_wide: bool) -> tuple[object, ...]:
    """A job; in a narrow terminal with the beginning of its id, which commands take as well."""
    overview = job.overview
    tasks = f"{overview['tasks']['running']}/{overview['tasks']['total']}"
    since = (moment(overview["start-time"]),) if is_wide else ()
    job_id = job.job_id if is_wide else job.job_id[:_BEGINNING]
    return job_id, job.name, job.state, *since, duration(overview["duration"]), tasks, job.driver.url


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list")(list_jobs)
