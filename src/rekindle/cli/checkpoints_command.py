"""`rekindle checkpoints`: list, show, verify, copy, mend and delete checkpoints and savepoints, without a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rekindle.cli.cells_for_people import duration, moment, size
from rekindle.cli.exit_codes import CommandError, ExitCode
from rekindle.cli.printed import console, fields, print_json, print_result, print_sentence, table
from rekindle.cli.settings_sources import store_options_of
from rekindle.cli.shared_options import ConfigOption, JsonOption, SettingsOption

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rekindle.checkpoint.checkpoint_listing import CheckpointEntry

DirectoryArgument = Annotated[str, typer.Argument(metavar="DIRECTORY", help="The directory of a job, or of many.")]
PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="The checkpoint or savepoint.")]
#: Wider than any terminal.
_UNLIMITED = 10_000
app = typer.Typer(help="Look after checkpoints and savepoints.", no_args_is_help=True)


@app.command("list")
def list_all(
    directory: DirectoryArgument,
    job: Annotated[str | None, typer.Option("--job", help="Only those of the job with this name.")] = None,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the checkpoints and savepoints below a directory."""
    from rekindle.checkpoint import list_checkpoints
    from rekindle.web.live_answers import catalogue

    _check_directory(directory)
    entries = list_checkpoints(directory, store_options_of(config, settings))
    entries = [entry for entry in entries if job in (None, entry.job_name)]
    shown = _as_table(entries)
    if not _fits(shown):
        shown = _as_lines(entries)
    nothing = f"There is no checkpoint below {directory}."
    print_result(catalogue(directory, entries), shown if entries else nothing, as_json=as_json)


def _check_directory(directory: str) -> None:
    from rekindle.checkpoint.stored_places import is_missing

    if is_missing(directory):
        raise CommandError(f"There is no directory '{directory}'.", ExitCode.NOT_FOUND)


def _fits(shown: RenderableType) -> bool:
    """Whether the lines are no longer than those of the terminal, so that every path is in one piece."""
    current = console()
    return current.measure(shown, options=current.options.update(max_width=_UNLIMITED)).maximum <= current.width


def _as_table(entries: list[CheckpointEntry]) -> RenderableType:
    columns = ("Job", "Timeline", "ID", "Kind", "Taken", "Duration", "State", "New", "", "Path")
    return table(columns, [_row(entry) for entry in entries], right=("ID", "Duration", "State", "New"))


def _as_lines(entries: list[CheckpointEntry]) -> RenderableType:
    """Two lines for each, the second one with the path in one piece: a column would cut it up."""
    from rich.console import Group
    from rich.text import Text

    lines = []
    for entry in entries:
        job, _, number, kind, taken, took, full, new, mark, url = _row(entry)
        lines.append(Text(f"{job}, {kind} {number}, {taken}, {took}, {full} ({new} new){mark and f', {mark}'}"))
        lines.append(Text(f"  {url}", no_wrap=True, overflow="ignore"))
    return Group(*lines)


def _row(entry: CheckpointEntry) -> tuple[object, ...]:
    marks = "damaged" if not entry.whole else "latest" if entry.is_latest else ""
    sizes = size(entry.full_bytes), size(entry.new_bytes)
    times = moment(entry.taken_ms), duration(entry.duration_ms)
    return entry.job_name, entry.timeline, entry.checkpoint_id, str(entry.kind), *times, *sizes, marks, entry.url


@app.command("show")
def show(
    path: PathArgument, settings: SettingsOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Show what a checkpoint is, and the operators whose state it has."""
    from rich.console import Group

    from rekindle.checkpoint.store.open_store import absolute
    from rekindle.cli.state_tables import overview
    from rekindle.snapshots.find_snapshot import find_snapshot

    snapshot = find_snapshot(absolute(path), None, store_options_of(config, settings))
    metadata, operators = overview(snapshot)
    shown = Group(
        fields(_metadata_shown(metadata)),
        "",
        table(
            ("Operator", "ID", "Parallelism", "Of at most", "State", "New"),
            [_operator_row(each) for each in operators],
            right=("Parallelism", "Of at most", "State", "New"),
        ),
    )
    print_result({**metadata, "operators": operators}, shown, as_json=as_json)


def _metadata_shown(metadata: dict[str, Any]) -> dict[str, object]:
    return {
        "Path": metadata["path"],
        "Kind": f"{metadata['kind']} {metadata['checkpoint_id']}",
        "Job": f"{metadata['job_name']} ({metadata['job_id']})",
        "Timeline": f"{metadata['timeline']}, attempt {metadata['attempt']}",
        "Taken": f"{moment(round(metadata['taken'].timestamp() * 1000))}, in {duration(metadata['duration_ms'])}",
        "State": f"{size(metadata['full_bytes'])}, of which new {size(metadata['new_bytes'])}",
        "Format": metadata["format_version"],
    }


def _operator_row(each: dict[str, Any]) -> tuple[object, ...]:
    sizes = size(each["full_bytes"]), size(each["new_bytes"])
    return each["name"], each["operator_id"], each["parallelism"], each["max_parallelism"], *sizes


@app.command("verify")
def verify(
    path: PathArgument, settings: SettingsOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Read every byte of a checkpoint and compare the checksums; exit code 1 if something is damaged."""
    from rekindle.checkpoint import verify_checkpoint

    damages = verify_checkpoint(path, store_options_of(config, settings))
    if as_json:
        print_json({"path": path, "whole": not damages, "damages": damages})
    for damage in damages:
        where = f"Operator {damage.operator}, subtask {damage.subtask + 1}: " if damage.operator else ""
        print_sentence(f"{where}{damage.problem}")
    if damages:
        raise typer.Exit(ExitCode.FAILED)
    if not as_json:
        print_result(None, f"{path} is whole.", as_json=False)


@app.command("copy")
def copy(
    path: PathArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A new folder.")],
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy a checkpoint into a new folder that needs nothing else: a savepoint, to be kept or moved."""
    from rekindle.checkpoint import copy_checkpoint

    savepoint = copy_checkpoint(path, target, store_options_of(config, settings))
    print_result({"savepoint": savepoint}, savepoint, as_json=as_json)


@app.command("take-out")
def take_out(
    path: PathArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A new folder for the savepoint without them.")],
    into: Annotated[str, typer.Option("--into", help="A new folder on this machine for the committables.")],
    operator: Annotated[str, typer.Option("--operator", help="The sink: its uid, ID or name.")],
    subtask: Annotated[int | None, typer.Option("--subtask", min=1, help="Only those of this subtask.")] = None,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take the committables of a sink out of a checkpoint: a job that cannot commit them goes on without them."""
    from rekindle.checkpoint import take_out_committables

    savepoint = take_out_committables(
        path,
        target,
        into,
        operator=operator,
        subtask=None if subtask is None else subtask - 1,
        options=store_options_of(config, settings),
    )
    shown = f"{savepoint}\nThe committables are in {into}."
    print_result({"savepoint": savepoint, "committables": into}, shown, as_json=as_json)


@app.command("delete")
def delete(
    path: PathArgument,
    directory: Annotated[
        str | None,
        typer.Option("--directory", help="The directory of the job's checkpoints, if a savepoint lies elsewhere."),
    ] = None,
    job_is_over: Annotated[
        bool, typer.Option("--job-is-over", help="You know that the job does not run: delete also of its last run.")
    ] = False,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a checkpoint with the files that no other one needs. One that a job may need is refused."""
    from rekindle.checkpoint import delete_checkpoint
    from rekindle.errors import CheckpointError

    options = store_options_of(config, settings)
    try:
        deleted = delete_checkpoint(path, options, directory=directory, job_runs=not job_is_over)
    except CheckpointError as error:
        # The same sentence, with this command's word for it.
        error.args = (str(error).replace("say job_runs=False", "add --job-is-over"),)
        raise
    files = f"{len(deleted.paths)} files" if len(deleted.paths) != 1 else "1 file"
    shown = f"Deleted {path}: {files}, {size(deleted.size_bytes)}."
    print_result({"path": path, "files": deleted.paths, "bytes": deleted.size_bytes}, shown, as_json=as_json)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="checkpoints")
