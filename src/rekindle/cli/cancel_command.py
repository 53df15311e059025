"""`rekindle cancel`: end a job without a savepoint."""

from __future__ import annotations

import typer

from rekindle.cli.exit_codes import CommandError
from rekindle.cli.find_job import find_job
from rekindle.cli.operation_outcome import wait_until_over
from rekindle.cli.printed import print_result
from rekindle.cli.shared_options import AddressOption, JobArgument, JsonOption, TimeoutOption, TokenOption


def cancel_job(
    job: JobArgument = None,
    address: AddressOption = None,
    token: TokenOption = None,
    timeout: TimeoutOption = 600.0,
    as_json: JsonOption = False,
) -> None:
    """Cancel a job without a savepoint, and wait for its end."""
    found = find_job(job, address, token)
    found.driver.patch(found.path)
    state = wait_until_over(found, timeout)
    if state != "CANCELED":
        raise CommandError(f"Job '{found.name}' was not cancelled: it is {state}.")
    document = {"job-id": found.job_id, "name": found.name, "state": state}
    print_result(document, f"Job '{found.name}' is cancelled.", as_json=as_json)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cancel")(cancel_job)
