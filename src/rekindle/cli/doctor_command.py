"""`rekindle doctor`: check what jobs need on this machine, and say what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from rekindle.cli.exit_codes import ExitCode
from rekindle.cli.printed import print_result, table
from rekindle.cli.settings_sources import configuration_of
from rekindle.cli.shared_options import ConfigOption, JsonOption, SettingsOption


def doctor(
    directory: Annotated[
        str | None, typer.Option("--directory", help="The directory of checkpoints to check, if no setting has it.")
    ] = None,
    run_job: Annotated[bool, typer.Option("--run-job", help="Also run a small job on Spark.")] = False,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Java, Python, Spark, ports, storage and extras. Exit code 1 if jobs cannot run."""
    from rich.text import Text

    from rekindle import config as options
    from rekindle.cli.health_checks import CHECKS, Health, check_job

    configuration = configuration_of(config, settings, {options.CHECKPOINT_DIRECTORY.key: directory})
    checks = [*CHECKS, *([check_job] if run_job else [])]
    findings = [finding for check in checks for finding in check(configuration)]
    is_healthy = all(finding.verdict is not Health.FAILED for finding in findings)
    colours = {Health.GOOD: "green", Health.NOTE: "yellow", Health.FAILED: "red"}
    rows = [
        (each.subject, Text(each.verdict, colours[each.verdict]), each.found, each.advice or "") for each in findings
    ]
    shown = table(("Check", "", "Found", "What to do"), rows)
    print_result({"healthy": is_healthy, "findings": findings}, shown, as_json=as_json)
    if not is_healthy:
        raise typer.Exit(ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)
