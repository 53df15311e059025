"""`rekindle info`: the plan of a program, drawn, without running it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from rekindle.cli.exit_codes import CommandError, ExitCode, exit_code_of
from rekindle.cli.printed import print_result, stdout_kept_for_the_result
from rekindle.cli.run_command import ModuleOption, ParallelismOption, ProgramArgument, ProgramArguments
from rekindle.cli.run_program import run_program
from rekindle.cli.shared_options import ConfigOption, JsonOption, SettingsOption

if TYPE_CHECKING:
    from rekindle.common.configuration import Configuration
    from rekindle.datastream.main_program import MainProgram
    from rekindle.datastream.transformations import Program


def info(
    program: ProgramArgument,
    arguments: ProgramArguments = None,
    parallelism: ParallelismOption = None,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    module: ModuleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw the plan of a program. The program runs up to its first execute(); no job is started."""
    import json

    from rekindle import config as options
    from rekindle.cli.plan_drawing import plan_drawing
    from rekindle.cli.settings_sources import configuration_of
    from rekindle.datastream.main_program import MainProgram
    from rekindle.graph.build import build_plan
    from rekindle.graph.plan_json import plan_json

    named = {options.PARALLELISM.key: None if parallelism is None else str(parallelism)}
    wanted = MainProgram(program, tuple(arguments or ()), module)
    with stdout_kept_for_the_result():
        planned = _planned(wanted, configuration_of(config, settings, named))
    plan = build_plan(planned)
    print_result({"name": plan.job_name, **json.loads(plan_json(plan))}, plan_drawing(plan), as_json=as_json)


def _planned(program: MainProgram, configuration: Configuration) -> Program:
    """Run a program up to its first job, and return that."""
    from rekindle.cli.launchers import PlanningLauncher, ProgramPlannedError
    from rekindle.cli.program_traceback import failure_text

    try:
        run_program(program, configuration, PlanningLauncher())
    except ProgramPlannedError as planned:
        return planned.program
    except (KeyboardInterrupt, CommandError):
        raise
    except SystemExit as ended:
        raise CommandError(f"The program ended with {ended.code!r} before execute(): there is no plan.") from None
    except BaseException as error:
        sys.stderr.write(failure_text(error))
        raise typer.Exit(exit_code_of(error)) from None
    raise CommandError("The program ended without execute(): there is no plan.", ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command. Arguments after the program's name belong to the program."""
    app.command("info", context_settings={"allow_interspersed_args": False})(info)
