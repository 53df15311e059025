"""The entry point `rekindle`: one list of commands, and how errors end them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from rekindle import __version__
from rekindle.cli import (
    cancel_command,
    checkpoints_command,
    doctor_command,
    history_command,
    info_command,
    list_command,
    replay_command,
    run_command,
    savepoint_command,
    state_command,
    stop_command,
    watch_command,
)
from rekindle.cli.closed_streams import silence_closed_streams
from rekindle.cli.exit_codes import ExitCode, exit_code_of
from rekindle.cli.printed import print_sentence
from rekindle.errors import RekindleError

#: The commands, in the order of `rekindle --help`. Each module has `register(app)`.
COMMANDS = (
    run_command,
    info_command,
    list_command,
    watch_command,
    savepoint_command,
    stop_command,
    cancel_command,
    checkpoints_command,
    state_command,
    history_command,
    replay_command,
    doctor_command,
)


class Commands(TyperGroup):
    """Ends a command that cannot go on with one sentence on stderr, and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except RekindleError as error:
            print_sentence(str(error))
            raise typer.Exit(exit_code_of(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError as error:
            if (code := exit_code_of(error)) != ExitCode.OUTPUT_CLOSED:
                raise
            silence_closed_streams()
            raise typer.Exit(code) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of the list; Typer itself puts groups last."""
        order = [module.__name__.rpartition(".")[2].removesuffix("_command") for module in COMMANDS]
        return sorted(self.commands, key=order.index)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rekindle {__version__}")
        raise typer.Exit


def _application() -> typer.Typer:
    made = typer.Typer(
        name="rekindle",
        cls=Commands,
        help="Run, watch and drive streaming jobs on Spark.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @made.callback()
    def rekindle(
        version: bool = typer.Option(
            False, "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ) -> None:
        """Run, watch and drive streaming jobs on Spark."""

    for command in COMMANDS:
        command.register(made)
    return made


app = _application()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name; ends the process with its exit code."""
    app(args=list(sys.argv[1:] if arguments is None else arguments), prog_name="rekindle")
