"""The command that replays a failure, for the message of the failed job."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from types import ModuleType

from rekindle.checkpoint.store.open_store import absolute
from rekindle.common.secret_settings import shown
from rekindle.protocol import TaskFailed


def replay_hint(failed: TaskFailed) -> str:
    """Say how to replay a failure, or why that is not possible; nothing if no input is recorded."""
    if failed.recording is not None:
        words = replay_command(failed.recording, sys.modules.get("__main__"), without_secrets(sys.argv[1:]))
        return f"\nReplay it to that point in a debugger: {shlex.join(words)}"
    if failed.not_recorded:
        return f"\nIts input was not kept for a replay: {failed.not_recorded}."
    return ""


def replay_command(recording: str, program: ModuleType | None, arguments: list[str]) -> list[str]:
    """The words of the command. The program is run again to build its job; without a file, its shipped code is used.

    >>> main = ModuleType("__main__")
    >>> main.__file__ = "/shop/orders.py"
    >>> shlex.join(replay_command("file:///chk/orders/_replay/7.recording", main, ["--day", "2"]))
    'rekindle replay /chk/orders/_replay/7.recording --program /shop/orders.py -- --day 2'
    """
    words = ["rekindle", "replay", absolute(recording)]
    spec, file = getattr(program, "__spec__", None), getattr(program, "__file__", None)
    if spec is not None:
        words += ["--module", spec.name.removesuffix(".__main__")]
    elif isinstance(file, str):
        words += ["--program", os.path.abspath(file)]
    else:
        return [*words, "--shipped"]
    return [*words, "--", *arguments] if arguments else words


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """The arguments of a program with the values of those hidden whose names look like secrets.

    >>> without_secrets(["--day", "2", "--password", "abc", "--token=def"])
    ['--day', '2', '--password', '******', '--token=******']
    """
    told, name = [], ""
    for argument in arguments:
        key, is_pair, value = argument.partition("=")
        told.append(f"{key}={shown(key, value)}" if is_pair else shown(name, argument))
        name = argument if argument.startswith("-") and not is_pair else ""
    return told
