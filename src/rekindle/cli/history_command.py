"""`rekindle history`: serve what jobs that are over, or dead, have left beside their checkpoints."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import Annotated

import typer

from rekindle.cli.exit_codes import CommandError, ExitCode
from rekindle.cli.printed import print_json_line, print_sentence
from rekindle.cli.shared_options import ConfigOption, JsonOption, SettingsOption


def history(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A directory of checkpoints, of one job or of many.")],
    port: Annotated[
        int | None, typer.Option("--port", min=0, help="The port; by default a free one from 8081 on.")
    ] = None,
    settings: SettingsOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the history of jobs until Ctrl-C: the page and the API that a running driver has."""
    from rekindle.checkpoint.stored_places import is_missing

    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "prometheus_client")):
        raise CommandError("The history is served with pip install 'rekindle[web]'.", ExitCode.MISSING)
    if is_missing(path):
        raise CommandError(f"There is no directory '{path}'.", ExitCode.NOT_FOUND)
    from rekindle import config as options
    from rekindle.checkpoint.store.options import store_options
    from rekindle.cli.settings_sources import configuration_of
    from rekindle.web.history_server import HistoryServer

    configuration = configuration_of(config, settings, {options.REST_PORT.key: None if port is None else str(port)})
    with HistoryServer(path, configuration, store_options(configuration)) as served:
        if as_json:
            print_json_line({"address": served.server.link, "path": path})
        else:
            print_sentence(f"The history of {path} is shown at {served.server.link} until Ctrl-C.")
        _until_interrupted()


def _until_interrupted() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:  # how one leaves
        return


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("history")(history)
