"""Starts the driver's JVM for sessions of our own: with the Java we found, and without its noise on the terminal."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyspark

from rekindle.errors import ClusterError
from rekindle.spark import private

_DIRECTORY_PREFIX = "rekindle-spark-"
_KEPT_LINES = 50
_COMPLAINT_DEADLINE_S = 5.0


class JvmOutput:
    """What the JVM writes to its standard error: held back while it starts, passed on once the session stands."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)
        self._is_open = threading.Event()

    def start(self) -> threading.Thread:
        """Reads on a thread of its own, until the JVM ends."""
        os.close(self.write)
        thread = threading.Thread(target=self._pass_on, name="rekindle-jvm-output", daemon=True)
        thread.start()
        return thread

    def open(self) -> None:
        """From here on the user sees what comes."""
        self._is_open.set()

    def complaint(self) -> str:
        """The line among the last ones that says most about why the JVM did not start."""
        telling = [line for line in self._last if "Error" in line or "Exception" in line or "error:" in line.lower()]
        return (telling or list(self._last) or ["it said nothing"])[0]

    def _pass_on(self) -> None:
        with open(self._read, encoding="utf-8", errors="replace") as lines:
            for line in without_worker_tracebacks(lines):
                self._last.append(line.rstrip())
                if self._is_open.is_set():
                    sys.stderr.write(line)
                    sys.stderr.flush()


def without_worker_tracebacks(lines: Iterable[str]) -> Iterator[str]:
    """Drops what pyspark's own worker loop prints when a cancelled task's connection breaks under it.

    >>> noise = ["Traceback (most recent call last):", '  File "x/pyspark/daemon.py", line 2', "BrokenPipeError: ..."]
    >>> list(without_worker_tracebacks(["a", *noise, "b", noise[0], *noise, *noise[1:], *noise[:1]]))
    ['a', 'b']
    """
    held: list[str] = []
    begun = 0  # two workers may speak at once
    last_end = ""
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            if not _is_noise(held):
                yield from held
                held, begun = [], 0
            held.append(line)
            begun += 1
        elif held and line.startswith(" "):
            held.append(line)
        elif held:
            if _is_noise(held) and (_frames(held) or line == last_end):
                begun, last_end = begun - 1, line
                held = held[:begun]
            else:
                yield from (*held[begun - 1 :], line)
                held, begun = [], 0
        else:
            yield line
    # What is cut short here was being printed by a worker that the end of the session ended.
    if not _is_noise(held):
        yield from held


def _is_noise(traceback: Iterable[str]) -> bool:
    """As far as it has come: nothing in it is from elsewhere than the worker loop."""
    return all(map(_is_of_the_daemon, _frames(traceback)))


def _frames(traceback: Iterable[str]) -> list[str]:
    return [line for line in traceback if line.lstrip().startswith("File ")]


def _is_of_the_daemon(frame: str) -> bool:
    return "/pyspark/daemon.py" in frame


def launch_jvm(environment: Mapping[str, str]) -> JvmOutput | None:
    """Starts the JVM unless this process has one; its output, to be opened when the session stands."""
    if private.has_gateway() or "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    output = JvmOutput()
    try:
        with patched_environment(environment):
            private.launch_gateway(output.write)
    except Exception as error:
        output.start().join(_COMPLAINT_DEADLINE_S)
        raise ClusterError(f"Spark's JVM did not start: {output.complaint()} ({error})") from None
    output.start()
    return output


@contextlib.contextmanager
def patched_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the JVM and the session's start; afterwards they are what they were."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def temporary_directory(purpose: str) -> str:
    """A directory that goes with this process at the latest, or with the next one when this one is killed."""
    _remove_those_of_the_killed()
    path = tempfile.mkdtemp(prefix=f"{_DIRECTORY_PREFIX}{os.getpid()}-{purpose}-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _remove_those_of_the_killed() -> None:
    for directory in Path(tempfile.gettempdir()).glob(f"{_DIRECTORY_PREFIX}*"):
        pid = directory.name.removeprefix(_DIRECTORY_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if pid.isdigit() and not os.path.exists(f"/proc/{pid}") and directory.lstat().st_uid == os.geteuid():
                shutil.rmtree(directory, ignore_errors=True)


def linked_spark_home() -> str:
    """A Spark home of links to the installed one: `local-cluster` writes its work directory into its Spark home."""
    home = Path(temporary_directory("home"))
    installed = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    for entry in installed.iterdir():
        if entry.name not in ("work", "__pycache__"):
            (home / entry.name).symlink_to(entry.resolve())
    return os.fspath(home)
