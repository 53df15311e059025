"""Options and arguments that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "-D", metavar="KEY=VALUE", help="A setting, by Flink's key or Rekindle's; may be given several times."
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", envvar="REKINDLE_CONFIG", help="A configuration file in Flink's form."),
]
JobArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]",
        help="The job's name, its id or the beginning of that, or its directory of checkpoints; may be left out if "
        "only one runs.",
        show_default=False,
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="URL",
        envvar="REKINDLE_ADDRESS",
        help="The address of the job's driver, if it is not this user's on this machine.",
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option("--token", envvar="REKINDLE_TOKEN", help="The token of that driver.", show_envvar=True),
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0, help="The longest time to wait for the outcome.")
]
