"""`rekindle list`: the jobs of this user's drivers, or of one."""

from __future__ import annotations

from typing import Annotated

import typer

from rekindle.cli.cells_for_people import duration, moment
from rekindle.cli.find_job import FoundJob, known_jobs
from rekindle.cli.printed import print_result, table
from rekindle.cli.shared_options import AddressOption, JsonOption, TokenOption


def list_jobs(
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Show jobs that are over, too.")] = False,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List running jobs."""
    jobs = [job for job in known_jobs(address, token) if show_all or not job.is_over]
    shown = table(
        ("ID", "Name", "State", "Since", "Duration", "Tasks", "Address"), [_row(job) for job in jobs], right=("Tasks",)
    )
    print_result({"jobs": [job.document() for job in jobs]}, shown if jobs else "No job runs.", as_json=as_json)


def _row(job: FoundJob) -> tuple[object, ...]:
    overview = job.overview
    tasks = f"{overview['tasks']['running']}/{overview['tasks']['total']}"
    started, lasted = moment(overview["start-time"]), duration(overview["duration"])
    return job.job_id, job.name, job.state, started, lasted, tasks, job.driver.url


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list")(list_jobs)
