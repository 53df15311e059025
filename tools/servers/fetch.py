"""Fetches the jars of a server from Maven Central, once per cache, with the Ivy that PySpark's wheel carries.

The cache is ``.cache/servers`` of the clone, or the folder that ``REKINDLE_SERVERS_CACHE`` names. A server's folder in
it carries a hash of the list of jars (a ``pom.xml``), so that a changed list is fetched anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.servers.java_command import download_command
from tools.servers.server_error import ServerError

CACHE_VARIABLE = "REKINDLE_SERVERS_CACHE"
_CLONE = Path(__file__).resolve().parents[2]
_STAMP = "complete"
_DEADLINE_S = 900.0
# Lines in which Ivy names what it could not find, and lines in which Java says why a connection failed.
_CAUSES = (
    "Server access",
    "not found",
    "unresolved dependency",
    "Exception",
    "refused",
    "timed out",
    "PKIX",
    "UnknownHost",
)


@dataclass(frozen=True)
class JarList:
    """The jars of one server: a file that Ivy reads, and what a person should know before the download."""

    server: str
    pom: Path
    megabytes: int

    def folder_name(self) -> str:
        """The name of the server's folder in the cache."""
        return f"{self.server.lower()}-{hashlib.sha256(self.pom.read_bytes()).hexdigest()[:16]}"


def cache_folder() -> Path:
    """The folder that holds the jars of all servers."""
    return Path(os.environ.get(CACHE_VARIABLE) or _CLONE / ".cache" / "servers").absolute()


def fetch_jars(jars: JarList, cache: Path | None = None) -> Path:
    """The folder with the server's jars; downloads them first when the cache does not have them."""
    folder = (cache or cache_folder()) / jars.folder_name()
    if not _is_complete(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(folder.with_suffix(".lock")):
            if not _is_complete(folder):
                _download(jars, folder)
    return folder / "libs"


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a lock inside the block that other processes wait for; the kernel frees it when this process dies."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_complete(folder: Path) -> bool:
    return (folder / _STAMP).exists()


def _download(jars: JarList, folder: Path) -> None:
    """Fill a temporary folder and rename it: nobody ever sees a folder with half of the jars."""
    _remove_leftovers(folder)
    print(
        f"servers: downloading {jars.server} from Maven Central (about {jars.megabytes} MB, once, into {folder});"
        " this takes a minute or two.",
        file=sys.stderr,
        flush=True,
    )
    partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-", dir=folder.parent))
    try:
        _run_ivy(jars, partial)
        (partial / _STAMP).touch()
        shutil.rmtree(partial / "ivy")
        partial.chmod(0o755)  # the cache may be shared between users; temporary folders are private
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed download left behind; the caller holds the lock, so no other download is under way."""
    for left in [folder, *folder.parent.glob(f"{folder.name}.partial-*")]:
        shutil.rmtree(left, ignore_errors=True)


def _run_ivy(jars: JarList, partial: Path) -> None:
    # Ivy's own folders are inside the partial one, so that the user's settings and caches of Ivy play no part.
    command = [
        *download_command(_ivy_jars()),
        f"-Divy.default.ivy.user.dir={partial / 'ivy'}",
        "org.apache.ivy.Main",
        *("-cache", f"{partial / 'ivy' / 'cache'}"),
        *("-ivy", f"{jars.pom}"),
        *("-confs", "compile", "runtime"),
        *("-retrieve", f"{partial / 'libs'}/[artifact]-[revision].[ext]"),
        *("-types", "jar", "bundle"),
    ]
    try:
        answer = subprocess.run(
            command, cwd=partial, capture_output=True, text=True, errors="replace", timeout=_DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise _failure(jars, f"it took longer than {_DEADLINE_S:.0f} s") from None
    if answer.returncode != 0 or not any((partial / "libs").glob("*.jar")):
        raise _failure(jars, _cause(answer.stdout + answer.stderr))


def _failure(jars: JarList, cause: str) -> ServerError:
    return ServerError(
        f"{jars.server} could not be downloaded from Maven Central ({cause}): check that this machine reaches it, or"
        f" set {CACHE_VARIABLE} to a folder that another clone has filled."
    )


def _cause(output: str) -> str:
    """The line of Ivy's output that says most, on one line and without Ivy's decoration."""
    lines = [line.strip(" \t:") for line in output.splitlines()]
    telling = [line for cause in _CAUSES for line in lines if cause in line]
    return (telling or [line for line in lines if line] or ["Ivy said nothing"])[0][:200]


def _ivy_jars() -> list[Path]:
    import pyspark

    found = sorted(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise ServerError("PySpark's jars have no ivy-*.jar, which downloads servers: run make to renew .venv.")
    return found
