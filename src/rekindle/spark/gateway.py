"""Starts the driver's JVM for sessions of our own: with the Java that was found, and with its output filtered."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyspark

from rekindle.coordinator import closed_output
from rekindle.errors import ClusterError
from rekindle.runtime.directories import OwnDirectory, make_directory
from rekindle.spark import internals
from rekindle.system import refusal

_DIRECTORY_KIND = "rekindle-spark-"
_KEPT_LINES = 50
_OUTPUT_DEADLINE_S = 5.0
_held: dict[str, OwnDirectory] = {}


class JvmOutput:
    """The JVM's standard error: held back while Spark starts, passed on to the user once the session runs."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)
        self._is_open = threading.Event()

    def start(self) -> threading.Thread:
        """Start the thread that reads until the JVM ends."""
        os.close(self.write)
        thread = threading.Thread(target=self._pass_on, name="rekindle-jvm-output", daemon=True)
        thread.start()
        return thread

    def open(self) -> None:
        """Pass on all further lines to the user."""
        self._is_open.set()

    def likely_error(self) -> str | None:
        """The first of the last lines that looks like an error, or the first of all; None without any output."""
        errors = [line for line in self._last if "Error" in line or "Exception" in line or "error:" in line.lower()]
        return next(iter(errors or self._last), None)

    def _pass_on(self) -> None:
        with open(self._read, encoding="utf-8", errors="replace") as lines:
            for line in without_worker_tracebacks(lines):
                self._last.append(line.rstrip())
                if self._is_open.is_set():
                    _show(line)


def _show(line: str) -> None:
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError) as error:  # Spark must not wait for a reader of its log
        if closed_output.is_closed(error):
            closed_output.tell("stderr", error)


def without_worker_tracebacks(lines: Iterable[str]) -> Iterator[str]:
    """Drop the tracebacks that pyspark's own worker loop prints when a cancelled task's connection breaks.

    >>> noise = ["Traceback (most recent call last):", '  File "x/pyspark/daemon.py", line 2', "BrokenPipeError: ..."]
    >>> list(without_worker_tracebacks(["a", *noise, "b", noise[0], *noise, *noise[1:], *noise[:1]]))
    ['a', 'b']
    """
    held: list[str] = []
    begun = 0  # open tracebacks: the lines of two workers may be mixed
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
    # A worker that ended with the session may have printed only a part of its traceback.
    if not _is_noise(held):
        yield from held


def _is_noise(traceback: Iterable[str]) -> bool:
    """Whether all frames of the traceback so far are the worker loop's."""
    return all(map(_is_daemon_frame, _frames(traceback)))


def _frames(traceback: Iterable[str]) -> list[str]:
    return [line for line in traceback if line.lstrip().startswith("File ")]


def _is_daemon_frame(frame: str) -> bool:
    return "/pyspark/daemon.py" in frame


def launch_jvm(environment: Mapping[str, str], directories: Sequence[OwnDirectory] = ()) -> JvmOutput | None:
    """Start the JVM unless this process has one; returns its output, to be opened once the session runs.

    The JVM shares the locks of its directories, which are removed when it has ended.
    """
    if internals.has_gateway() or "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    try:
        output = JvmOutput()
    except OSError as error:
        raise ClusterError(f"Spark's JVM did not start: {refusal(error)}.") from None
    try:
        with patched_environment(environment):
            internals.launch_gateway(output.write, [directory.lock for directory in directories])
    except Exception as error:
        output.start().join(_OUTPUT_DEADLINE_S)
        for directory in directories:
            remove_directory(directory.path)
        raise ClusterError(f"Spark's JVM did not start: {_start_error(error, output.likely_error())}") from None
    output.start()
    return output


def _start_error(error: Exception, printed: str | None) -> str:
    reason = refusal(error)
    return f"{reason}." if printed is None else f"{printed} ({reason})"


@contextlib.contextmanager
def patched_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the start of the JVM and the session, and restore them afterwards."""
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


def temporary_directory(purpose: str, parent: str | None = None) -> OwnDirectory:
    """Make a directory for the JVM: removed when it ends or, if all its processes were killed, at the next start."""
    own = make_directory(_DIRECTORY_KIND, purpose, parent or tempfile.gettempdir())
    _held[own.path] = own
    return own


def remove_directory(path: str) -> None:
    """Remove a directory that `temporary_directory` made."""
    if (own := _held.pop(path, None)) is not None:
        own.remove()


@atexit.register
def _remove_directories() -> None:
    for path in list(_held):
        remove_directory(path)


def end_jvm(within_s: float | None = None) -> None:
    """End the JVM of this process, which has no active session, and remove its directories; kill it after the time."""
    internals.end_gateway(within_s)
    _remove_directories()


def forget_jvm() -> None:
    """Forget a JVM that has ended, with its session, and remove its directories."""
    internals.forget_gateway()
    _remove_directories()


def local_directories(configured: str | None, environ: Mapping[str, str]) -> list[OwnDirectory]:
    """Make the directories of Spark's shuffle files: below each that the user chose, readable by the user alone.

    Spark's order: SPARK_LOCAL_DIRS in the environment, then `configured` (spark.local.dir), then the temporary one.
    """
    chosen = environ.get("SPARK_LOCAL_DIRS") or configured or tempfile.gettempdir()
    parents = [parent.strip() for parent in chosen.split(",") if parent.strip()]
    try:
        for parent in parents:
            os.makedirs(parent, exist_ok=True)
        return [temporary_directory("local", parent) for parent in parents]
    except OSError as error:
        raise ClusterError(f"Spark's files cannot be kept in {chosen}: {refusal(error)}.") from None


def linked_spark_home() -> OwnDirectory:
    """Make a Spark home of links to the installed one: `local-cluster` writes its work directory into its home."""
    own = temporary_directory("home")
    home = Path(own.path)
    installed = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    for entry in installed.iterdir():
        if entry.name not in ("work", "__pycache__"):
            (home / entry.name).symlink_to(entry.resolve())
    return own
