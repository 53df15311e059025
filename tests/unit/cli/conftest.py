"""Commands in this process, against a real server with jobs whose life the tests tell."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from rekindle.cli.command_line import app
from rekindle.web.rest_server import RestServer
from rekindle.web.runtime_directory import RunningDriver
from tests.unit.web.conftest import Served, serve


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    errors: str

    @property
    def document(self) -> Any:
        """What `--json` printed: stdout has nothing else."""
        return json.loads(self.out)


def rekindle(*arguments: object) -> Ended:
    """Run a command in this process."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of notes of this test's own; a terminal without colours."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", os.fspath(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path / "state"))
    for name in ("REKINDLE_ADDRESS", "REKINDLE_TOKEN", "REKINDLE_CONFIG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "run" / "rekindle"


@pytest.fixture
def announce(runtime: Path) -> Callable[[RestServer], None]:
    """Leaves the note of a server, as its driver does; without its removal at the end of the process."""

    def note(server: RestServer) -> None:
        runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = msgspec.json.encode(RunningDriver(os.getpid(), server.url, server.token))
        (runtime / f"{os.getpid()}-{server.port}.json").write_bytes(content)

    return note


@pytest.fixture
def served(tmp_path: Path, announce: Callable[[RestServer], None]) -> Iterator[Served]:
    """A driver of this user with one running job, `orders`."""
    found = serve(tmp_path)
    announce(found.server)
    yield found
    found.server.close()
