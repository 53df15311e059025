"""`rekindle watch`: a live screen of a job in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from rekindle.cli.exit_codes import CommandError, ExitCode
from rekindle.cli.find_job import FoundJob, find_job
from rekindle.cli.printed import console, print_json, print_json_line, print_sentence
from rekindle.cli.shared_options import AddressOption, JobArgument, JsonOption, TokenOption

_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED"})


def watch(
    job: JobArgument = None,
    once: Annotated[bool, typer.Option("--once", help="Show the job as it is now, and return.")] = False,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch a job until it ends, or until Ctrl-C: throughput, watermarks, checkpoints, slots.

    With --json, one document per line whenever something has changed.
    """
    found = find_job(job, address, token, may_be_over=True)
    if once:
        _show_once(found, as_json)
        return
    try:
        last = _print_lines(found) if as_json else _show_live(found)
    except KeyboardInterrupt:  # how one leaves
        return
    if last == "FAILED":
        raise typer.Exit(ExitCode.FAILED)
    if last not in _ENDED:
        raise typer.Exit(ExitCode.UNREACHABLE)


def _show_once(job: FoundJob, as_json: bool) -> None:
    from rekindle.cli.watch_screen import Room, screen

    live = job.driver.get(f"{job.path}/live")
    if as_json:
        print_json(live)
    else:
        output = console()
        output.print(screen(live, job.driver.url, Room(output.width)))


def _changes(job: FoundJob) -> Iterator[dict[str, Any]]:
    """The job as it is, and again whenever it has changed, up to its end or that of its driver."""
    live = job.driver.get(f"{job.path}/live")
    yield live
    if live["state"] in _ENDED:
        return
    try:
        for name, document in job.driver.events(job.job_id):
            if name == "job":
                live = document
                yield live
                if live["state"] in _ENDED:
                    return
        yield job.driver.get(f"{job.path}/live")  # the stream has ended: has the job?
    except CommandError as error:
        if error.code != ExitCode.UNREACHABLE:
            raise
        left = live["checkpoints"]["directory"]
        look = f": rekindle history {left} shows what it has left" if left else ""
        print_sentence(f"The driver of job '{job.name}' is gone, and has not told how the job ended{look}.")


def _print_lines(job: FoundJob) -> str:
    state = job.state
    for live in _changes(job):
        state = live["state"]
        print_json_line(live)
    return state


def _show_live(job: FoundJob) -> str:
    from rich.live import Live

    from rekindle.cli.watch_screen import fitted, merged

    output, state = console(), job.state
    known: dict[str, Any] | None = None
    with Live(console=output, auto_refresh=False, screen=False, vertical_overflow="crop") as shown:
        for live in _changes(job):
            known, state = merged(known, live), live["state"]
            shown.update(fitted(known, job.driver.url, output), refresh=True)
    return state


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch")(watch)
