"""`rekindle run`: run a program."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rekindle.cli.closed_streams import silence_closed_streams
from rekindle.cli.exit_codes import ExitCode, exit_code_of
from rekindle.cli.printed import fields, print_json, print_result, print_sentence, stdout_kept_for_the_result
from rekindle.cli.quiet_interrupt import without_interrupted_calls
from rekindle.cli.run_program import cancel, refuse_missing, run_program, wait_for
from rekindle.cli.shared_options import ConfigOption, JsonOption, SettingsOption

if TYPE_CHECKING:
    from rekindle.cli.launchers import NotingLauncher
    from rekindle.common.configuration import Configuration
    from rekindle.datastream.main_program import MainProgram

ProgramArgument = Annotated[str, typer.Argument(metavar="PROGRAM", help="A Python file, or a folder with __main__.py.")]
ProgramArguments = Annotated[list[str] | None, typer.Argument(metavar="[ARGUMENTS]...", help="The program's own.")]
ModuleOption = Annotated[bool, typer.Option("--module", "-m", help="PROGRAM is a module, as with python -m.")]
MasterOption = Annotated[
    str | None, typer.Option("--master", help="The Spark master: local[2], spark://host:7077, yarn, …")
]
ParallelismOption = Annotated[
    int | None, typer.Option("--parallelism", "-p", min=1, help="Subtasks of operators that set no number themselves.")
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", "-s", metavar="PATH|latest", help="The savepoint or checkpoint to go on from."),
]
AllowOption = Annotated[
    bool,
    typer.Option("--allow-non-restored-state", "-n", help="Leave out state that no operator of the program takes."),
]


class LogLevel(StrEnum):
    """The levels of the driver's log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """The forms of the driver's log."""

    TEXT = "text"
    JSON = "json"


def run(
    program: ProgramArgument,
    arguments: ProgramArguments = None,
    master: MasterOption = None,
    parallelism: ParallelismOption = None,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    start_from: FromOption = None,
    allow_non_restored_state: AllowOption = False,
    detached: Annotated[
        bool, typer.Option("--detached", "-d", help="Start the driver in a session of its own, and return.")
    ] = False,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", help="The log of a detached driver; by default a new file.")
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="The least level that the driver logs.")
    ] = LogLevel.WARNING,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="The form of the driver's log.")
    ] = LogFormat.TEXT,
    module: ModuleOption = False,
    as_json: JsonOption = False,
    report_fd: Annotated[int | None, typer.Option("--report-fd", hidden=True)] = None,
) -> None:
    """Run a program and wait for its end, or start it --detached. Ctrl-C and SIGTERM end its jobs."""
    from rekindle.coordinator.driver_log import driver_logging
    from rekindle.datastream.main_program import MainProgram

    named = _named(master, parallelism, start_from, allow_non_restored_state)
    wanted = MainProgram(program, tuple(arguments or ()), module)
    configuration = _configuration(config, settings, named)
    refuse_missing(wanted)
    if detached:
        logging = ["--log-level", log_level, "--log-format", log_format]
        options = [*_as_options(config, settings, named), *logging, *(["-m"] if module else [])]
        _start_detached(wanted, options, log, as_json)
    else:
        with driver_logging(log_level, log_format):
            code = _run_attached(wanted, configuration, report_fd, as_json)
        silence_closed_streams()
        raise typer.Exit(code)


def _named(
    master: str | None, parallelism: int | None, start_from: str | None, allow_non_restored_state: bool
) -> dict[str, str | None]:
    from rekindle import config

    return {
        config.MASTER.key: master,
        config.PARALLELISM.key: None if parallelism is None else str(parallelism),
        config.RECOVERY_PATH.key: start_from,
        config.RECOVERY_IGNORE_UNCLAIMED.key: "true" if allow_non_restored_state else None,
    }


def _configuration(file: str | None, settings: list[str] | None, named: dict[str, str | None]) -> Configuration:
    from rekindle.cli.settings_sources import configuration_of

    return configuration_of(file, settings, named)


def _as_options(file: str | None, settings: list[str] | None, named: dict[str, str | None]) -> list[str]:
    """The settings as options of another command line."""
    pairs = [*(settings or ()), *(f"{key}={value}" for key, value in named.items() if value is not None)]
    given = [part for pair in pairs for part in ("-D", pair)]
    return [*(("--config", file) if file is not None else ()), *given]


def _start_detached(program: MainProgram, options: list[str], log: str | None, as_json: bool) -> None:
    from rekindle.cli.detached_driver import log_file, start_detached

    driver = start_detached([*options, program.name, *program.arguments], log_file(program.name, log))
    document = driver.document()
    names = {"job-id": "Job", "name": "Name", "address": "Address", "pid": "Process", "log": "Log"}
    print_result(document, fields({shown: document[key] for key, shown in names.items()}), as_json=as_json)


def _run_attached(program: MainProgram, configuration: Configuration, report_fd: int | None, as_json: bool) -> int:
    from rekindle.cli.detached_driver import report_to
    from rekindle.cli.launchers import NotingLauncher

    launcher = NotingLauncher(None if report_fd is None else report_to(report_fd))
    with stdout_kept_for_the_result() if as_json else nullcontext(), without_interrupted_calls():
        code = _run(program, configuration, launcher)
    if as_json:
        print_json({"exit-code": code, "jobs": [job.document() for job in launcher.jobs]})
    return code


def _run(program: MainProgram, configuration: Configuration, launcher: NotingLauncher) -> int:
    """Run a program to its end and that of its jobs; returns the exit code."""
    from rekindle.cli.program_traceback import failure_text
    from rekindle.datastream.termination import Terminated, Termination

    termination = Termination(launcher.terminable)
    launcher.before_start = termination.end_if_asked
    try:
        with termination:
            code = _code_of_its_own(program, configuration, launcher)
            if code == ExitCode.DONE:
                wait_for(launcher.jobs)
    except Terminated as terminated:
        return terminated.status
    except KeyboardInterrupt:
        cancel(launcher.jobs)
        print_sentence("Interrupted: the program has ended, and its jobs are cancelled.")
        return ExitCode.INTERRUPTED
    except BaseException as error:
        code = exit_code_of(error)
        cancel(launcher.jobs)
        silence_closed_streams()  # stderr may be among them
        if isinstance(error, BrokenPipeError) and code == ExitCode.OUTPUT_CLOSED:
            print_sentence(f"The program cannot write its output any more: {error}.")
        else:
            sys.stderr.write(failure_text(error))
        return code
    return code


def _code_of_its_own(program: MainProgram, configuration: Configuration, launcher: NotingLauncher) -> int:
    """Run a program; returns the exit code that it asks for."""
    try:
        run_program(program, configuration, launcher)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print_sentence(str(ended.code))
        return ExitCode.FAILED
    return ExitCode.DONE


def register(app: typer.Typer) -> None:
    """Add the command. Arguments after the program's name belong to the program."""
    app.command("run", context_settings={"allow_interspersed_args": False})(run)
