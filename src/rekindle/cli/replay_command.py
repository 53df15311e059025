"""`rekindle replay`: runs a failed task again up to the record at which it failed, and opens `pdb` there."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rekindle.cli.exit_codes import CommandError, ExitCode
from rekindle.cli.printed import print_json, stdout_kept_for_the_result
from rekindle.cli.run_program import refuse_missing
from rekindle.cli.settings_sources import store_options_of
from rekindle.cli.shared_options import ConfigOption, JsonOption, SettingsOption

if TYPE_CHECKING:
    from rekindle.replay.find_recording import StoredRecording
    from rekindle.replay.replay import ReplayOutcome


def replay(
    path: Annotated[str, typer.Argument(help="A recording, or the folder of a job, a checkpoint or all checkpoints.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="The program's own arguments, after --.")] = None,
    program: Annotated[str | None, typer.Option(help="The program's file; it runs up to the start of its job.")] = None,
    module: Annotated[str | None, typer.Option(help="The program as a module, as with python -m.")] = None,
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Use the code that the job shipped. It is unpickled: trust the recording.")
    ] = False,
    checkpoint: Annotated[int | None, typer.Option(help="The checkpoint to begin from, if there are several.")] = None,
    subtask: Annotated[int | None, typer.Option(help="Take the newest recording of this subtask, from 0.")] = None,
    operator: Annotated[str | None, typer.Option(help="Take the newest recording of this operator.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print each record and watermark.")] = False,
    key: Annotated[str | None, typer.Option(help="With --trace: print each change of this key's state.")] = None,
    with_sinks: Annotated[bool, typer.Option("--with-sinks", help="Let sinks write for real; never commit.")] = False,
    use_pdb: Annotated[bool, typer.Option("--pdb/--no-pdb", help="Open the debugger where the task failed.")] = True,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a failed task again, without Spark, up to the record at which it failed, and open pdb there.

    The job must have recorded its input (rekindle.replay.record-input). Exit code 0: it failed again; 6: it did not.
    """
    from rekindle.checkpoint.store.options import options_for
    from rekindle.datastream.main_program import MainProgram
    from rekindle.replay.find_recording import find_recording
    from rekindle.replay.job_code import replay_program, replay_shipped
    from rekindle.replay.key_trace import Trace, key_from
    from rekindle.replay.replay import ReplayOptions

    stores = store_options_of(config, settings)
    stored = find_recording(path, subtask, operator, options_for(path, stores))
    tell = partial(typer.echo, err=as_json)
    tracing = Trace(tell, key_from(key) if key is not None else ()) if trace or key is not None else None
    options = ReplayOptions(checkpoint, with_sinks, tracing, stores or None)  # none: those of the program
    show = _document if as_json else partial(_show, stored, use_pdb)
    named = program or module
    with stdout_kept_for_the_result() if as_json else nullcontext():
        if shipped:
            document = replay_shipped(stored, options, show)
        elif named is None:
            sentence = "Name the program that failed with --program or --module, or use --shipped."
            raise CommandError(sentence, ExitCode.USAGE)
        else:
            failed = MainProgram(named, tuple(arguments or ()), is_module=program is None)
            refuse_missing(failed)
            document = replay_program(stored, failed, options, show)
    if as_json:
        print_json(document)
    raise typer.Exit(ExitCode.DONE if document["failed"] else ExitCode.DID_NOT_FAIL)


def _document(outcome: ReplayOutcome) -> dict[str, Any]:
    """The outcome for machines."""
    has_failed = outcome.cause is not None
    return {
        "job": outcome.recording.job_name,
        "task": outcome.recording.task,
        "checkpoint": outcome.checkpoint_id,
        "failed": has_failed,
        "operator": outcome.operator if has_failed else None,
        "record": repr(outcome.record) if outcome.has_record else None,
        "traceback": outcome.traceback if has_failed else None,
    }


def _show(stored: StoredRecording, use_pdb: bool, outcome: ReplayOutcome) -> dict[str, Any]:
    """Tell the outcome, and open the debugger; returns the outcome for machines."""
    from rekindle.replay.debugger import debug

    recording = outcome.recording
    since = "its start" if outcome.checkpoint_id is None else f"checkpoint {outcome.checkpoint_id}"
    typer.echo(f"Replayed task '{recording.task}' of job '{recording.job_name}' from {since}: {stored.url}")
    if outcome.cause is None:
        typer.echo(f"It went through all of its recorded input. When it failed, it was: {recording.failure.summary}")
        return _document(outcome)
    typer.echo(f"\n{outcome.traceback}")
    if outcome.operator is not None:
        typer.echo(f"Operator '{outcome.operator}' failed{_at_record(outcome)}.")
    if use_pdb:
        typer.echo("The record is in `record`; q ends the debugger." if outcome.has_record else "q ends the debugger.")
        sys.stdout.flush()
        debug(outcome)
    return _document(outcome)


def _at_record(outcome: ReplayOutcome) -> str:
    return f" at record {outcome.record!r}" if outcome.has_record else ""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(replay)
