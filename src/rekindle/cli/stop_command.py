"""`rekindle stop`: end a job with a savepoint."""

from __future__ import annotations

from typing import Annotated

import typer

from rekindle.cli.find_job import find_job
from rekindle.cli.operation_outcome import savepoint_of
from rekindle.cli.printed import print_result
from rekindle.cli.savepoint_command import as_url
from rekindle.cli.shared_options import AddressOption, JobArgument, JsonOption, TimeoutOption, TokenOption


def stop(
    job: JobArgument = None,
    drain: Annotated[
        bool,
        typer.Option("--drain", help="End the sources first: every timer and window fires, and nothing is left to do."),
    ] = False,
    savepoint_path: Annotated[
        str | None,
        typer.Option("--savepoint-path", "-p", metavar="DIRECTORY", help="Where to put the savepoint."),
    ] = None,
    address: AddressOption = None,
    token: TokenOption = None,
    timeout: TimeoutOption = 600.0,
    as_json: JsonOption = False,
) -> None:
    """Stop a job with a savepoint, and print where that is. Output up to it is committed."""
    found = find_job(job, address, token)
    body = {"drain": drain, **({} if savepoint_path is None else {"targetDirectory": as_url(savepoint_path)})}
    location = savepoint_of(found, "stop", body, timeout)
    print_result({"job-id": found.job_id, "name": found.name, "savepoint": location}, location, as_json=as_json)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stop")(stop)
