"""`rekindle savepoint`: make a savepoint of a running job."""

from __future__ import annotations

from typing import Annotated

import typer

from rekindle.cli.find_job import find_job
from rekindle.cli.operation_outcome import savepoint_of
from rekindle.cli.printed import print_result
from rekindle.cli.shared_options import AddressOption, JobArgument, JsonOption, TimeoutOption, TokenOption


def savepoint(
    job: JobArgument = None,
    directory: Annotated[
        str | None, typer.Argument(metavar="[DIRECTORY]", help="Where to put it; by default where the job says.")
    ] = None,
    address: AddressOption = None,
    token: TokenOption = None,
    timeout: TimeoutOption = 600.0,
    as_json: JsonOption = False,
) -> None:
    """Make a savepoint, and print where it is. The job goes on."""
    found = find_job(job, address, token)
    body = {"cancel-job": False, **({} if directory is None else {"target-directory": as_url(directory)})}
    location = savepoint_of(found, "savepoints", body, timeout)
    print_result({"job-id": found.job_id, "name": found.name, "savepoint": location}, location, as_json=as_json)


def as_url(directory: str) -> str:
    """A directory as the driver understands it, which may work in another folder.

    >>> as_url("s3://bucket/savepoints")
    's3://bucket/savepoints'
    """
    from rekindle.checkpoint.store.open_store import absolute

    return absolute(directory)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("savepoint")(savepoint)
