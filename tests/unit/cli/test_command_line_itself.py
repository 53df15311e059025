"""The command line as a whole: quick, documented, the same everywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from rekindle import __version__
from rekindle.__main__ import with_run
from rekindle.cli.command_line import app
from rekindle.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import rekindle

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "guide" / "command_line.md").read_text(encoding="utf-8")
#: What a command that only asks drivers must not wait for.
HEAVY = ("pyspark", "py4j", "starlette", "uvicorn", "pyarrow", "cloudpickle", "yaml", "rekindle.spark")


def commands(group: Any = None, prefix: str = "rekindle") -> Iterator[tuple[str, Any]]:
    """Every command by its whole name."""
    group = get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


COMMANDS = dict(commands())


def test_list_imports_neither_spark_nor_the_server(tmp_path):
    program = (
        "import sys\n"
        "from rekindle.cli.command_line import main\n"
        "try:\n    main(['list'])\nexcept SystemExit as ended:\n    assert not ended.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    environment = os.environ | {"XDG_RUNTIME_DIR": os.fspath(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False, env=environment
    )
    assert answer.stdout.splitlines()[-2:] == ["No job runs.", "[]"], answer.stderr


def options_of(command: Any) -> set[str]:
    return {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("-")
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_on_the_page_with_its_options(name):
    words = name.removeprefix("rekindle ")
    assert f"rekindle {words}" in PAGE
    hidden = {option for each in COMMANDS[name].params if getattr(each, "hidden", False) for option in each.opts}
    missing = [
        option
        for option in options_of(COMMANDS[name]) - hidden
        if f"{option}`" not in PAGE and f"{option} " not in PAGE
    ]
    assert missing == []


def test_every_command_and_option_on_the_page_exists():
    known = {option for command in COMMANDS.values() for option in options_of(command)}
    known |= options_of(get_command(app)) | {"--help"}
    named = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+|-[a-zA-Z])(?![\w-])", PAGE)) - {"--fast"}
    assert named <= known, named - known
    groups = {name.rsplit(" ", 1)[0] for name in COMMANDS}
    said = {" ".join(words) for words in re.findall(r"\b(rekindle) ([a-z]+)(?= |`|\n)", PAGE)}
    assert said <= COMMANDS.keys() | groups, said - COMMANDS.keys() - groups


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_json_and_has_a_sentence(name):
    assert "--json" in options_of(COMMANDS[name])
    assert COMMANDS[name].help


def test_the_page_has_every_exit_code():
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, re.MULTILINE))
    assert {int(code) for code in rows} == {int(code) for code in ExitCode}


def test_what_cannot_be_understood_ends_with_usage():
    for arguments in (("lsit",), ("list", "--al"), ("run",), ("run", "-p", "0", "x.py"), ("stop", "--timeout", "soon")):
        ended = rekindle(*arguments)
        assert (ended.code, ended.out) == (2, ""), arguments
        assert "Traceback" not in ended.errors


def test_version_and_help():
    assert rekindle("--version").out == f"rekindle {__version__}\n"
    help_text = rekindle("--help").out
    assert [name for name in ("run", "list", "doctor", "--install-completion") if name not in help_text] == []


def test_a_program_in_place_of_a_command_is_run():
    assert with_run(["jobs/count.py", "list"]) == ["run", "jobs/count.py", "list"]
    assert with_run(["run", "count.py"]) == ["run", "count.py"]
    assert with_run([]) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell, monkeypatch):
    monkeypatch.setenv("_REKINDLE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "rekindle save")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "rekindle save")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, [], prog_name="rekindle")
    assert "savepoint" in result.stdout
