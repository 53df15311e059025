"""Runs the order system as a separate program, as on a server, with all processes that it starts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from examples.orders.journal import read_journal
from examples.orders.results import visible_files
from examples.orders.settings import Feed, Settings

_REPOSITORY = Path(__file__).resolve().parents[3]
_GONE_S = 15.0


class OrdersProgram:
    """The program, which can be started, killed, stopped, and started again in the same folder."""

    def __init__(self, folder: Path, settings: Settings, feed: Feed) -> None:
        self.folder = folder
        self.output = folder / "output"
        self._journal = folder / "journal"
        self._log = folder / "log"
        self._settings = settings
        self._feed = feed
        self._process: subprocess.Popen[bytes] | None = None

    # -- starting and ending the program ------------------------------------------------------------------------------

    def start(self, parallelism: int, *, resume: str | None = None, fail: str | None = None) -> None:
        """Start the program, anew or from a checkpoint."""
        words = [sys.executable, "-m", "examples.orders", "--journal", str(self._journal)]
        words += _options(self._settings, parallelism=parallelism) + _options(self._feed)
        words += ["--resume", resume] if resume is not None else []
        words += ["--fail", fail] if fail is not None else []
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=self._environment(),
                start_new_session=True,  # Ctrl-C must reach the demo only; `close` ends the program
            )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(_REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
        scratch = str(self.folder)  # files that a killed Spark leaves are removed with the folder
        return os.environ | {"PYTHONPATH": path, "TMPDIR": scratch, "SPARK_LOCAL_DIRS": scratch}

    @property
    def pid(self) -> int:
        """The driver's process id."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    def ended(self) -> int | None:
        """The exit code; None while the program runs."""
        assert self._process is not None, "it was not started"
        return self._process.poll()

    def kill_slot(self) -> int:
        """Send SIGKILL to a slot, a process with functions and state; returns its id."""
        slots = [each for each in self._family() if _is_slot(each)]
        if not slots:
            raise RuntimeError("the program has no slot to kill")
        slots[-1].kill()
        return int(slots[-1].pid)

    def kill_driver(self) -> int:
        """Send SIGKILL to the program; all processes that it started end with it. Returns its id."""
        family, pid = self._family(), self.pid
        self._end(signal.SIGKILL)
        _wait_until_gone(family)
        return pid

    def stop(self) -> None:
        """Ask the program to stop with a savepoint."""
        os.kill(self.pid, signal.SIGTERM)

    def close(self) -> None:
        """End the program if it still runs, with all its processes."""
        if self._process is not None and self._process.poll() is None:
            self.kill_driver()

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        self._process.wait(_GONE_S)

    def _family(self) -> list[psutil.Process]:
        try:
            return list(psutil.Process(self.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return []

    # -- journal and log ----------------------------------------------------------------------------------------------

    def journal(self) -> list[dict[str, Any]]:
        """The journal's lines, over all starts of the program."""
        return read_journal(self._journal)

    def log(self) -> str:
        """The end of the program's output."""
        return self._log.read_text(errors="replace")[-4000:] if self._log.exists() else ""


class VisibleRows:
    """Counts the rows that a reader of the output sees; files never change once they are visible."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._counted: set[Path] = set()
        self._rows: dict[str, int] = {}

    def count(self) -> dict[str, int]:
        """Rows by stream; for batches, the events in them."""
        for folder in sorted(self._output.glob("*")):
            for path in visible_files(folder):
                if path not in self._counted:
                    self._counted.add(path)
                    mark = b'"order_id"' if folder.name == "batches" else b"\n"
                    self._rows[folder.name] = self._rows.get(folder.name, 0) + path.read_bytes().count(mark)
        return dict(self._rows)


def _options(settings: Any, **changes: Any) -> list[str]:
    """The settings that differ from the defaults, as command-line arguments."""
    words: list[str] = []
    for name, default in vars(type(settings)()).items():
        value = changes.get(name, getattr(settings, name))
        if value != default:
            words += [f"--{name.replace('_', '-')}", "none" if value is None else str(value)]
    return words


def _is_slot(process: psutil.Process) -> bool:
    try:
        return "rekindle.runtime.slot" in process.cmdline() and process.name() != "rekindle-guard"
    except psutil.Error:
        return False


def _wait_until_gone(family: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(family, timeout=_GONE_S)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
