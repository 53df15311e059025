"""One folder with the job's checkpoints, in which the program is started, broken, stopped and resumed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from benchmarks.recovery.probe import Observed
from benchmarks.recovery.program import Load
from examples.orders.journal import read_journal

REPOSITORY = Path(__file__).resolve().parents[2]
EXECUTOR_JVM = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
DEADLINE_S = 900.0
_POLL_S = 0.02
#: Every descendant of the program inherits this variable.
_FAMILY_VARIABLE = "REKINDLE_RECOVERY_BENCHMARK"
_GONE_S = 30.0


class Session:
    """The running job."""

    def __init__(self, folder: Path, load: Load) -> None:
        self.folder = folder
        self.load = load
        self.observed = Observed(folder)
        self._process: subprocess.Popen[bytes] | None = None
        load.write(folder)

    # -- starting, breaking and stopping the program ------------------------------------------------------------------

    def start(self, parallelism: int, master: str = "local[2]", resume: str | None = None) -> float:
        """Start the program; returns the time of the start."""
        words = [sys.executable, "-m", "benchmarks.recovery.program", str(self.folder)]
        words += ["--parallelism", str(parallelism), "--master", master]
        words += ["--resume", resume] if resume is not None else []
        path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
        scratch = str(self.folder)
        environment = os.environ | {
            "PYTHONPATH": path, "TMPDIR": scratch, "SPARK_LOCAL_DIRS": scratch, _FAMILY_VARIABLE: scratch,
        }  # fmt: skip
        began = time.time()
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=environment,
                start_new_session=True,
            )  # fmt: skip
        return began

    def kill_driver(self) -> float:
        """Send SIGKILL to the program; returns the time."""
        assert self._process is not None
        at = time.time()
        self._process.kill()
        self._process.wait()
        return at

    def kill_slot(self) -> float:
        """Send SIGKILL to the slot with the highest process id; returns the time."""
        return _kill(max(self._slots(), key=lambda each: each.pid))

    def kill_executor(self) -> float:
        """Send SIGKILL to the executor's JVM of one of the slots; returns the time."""
        above = self._slots()[-1].parents()
        return _kill(next(each for each in above if EXECUTOR_JVM in " ".join(each.cmdline())))

    def raise_in_user_code(self) -> float:
        """Make a function raise; returns the time at which it did."""
        failed = self.folder / "failed"
        failed.unlink(missing_ok=True)
        (self.folder / "fail").touch()
        self.wait(lambda: failed.exists() and failed.read_text().endswith("\n"), "the exception")
        return float(failed.read_text())

    def stop(self) -> tuple[float, str]:
        """Stop the program with a savepoint; returns the time of the request and the savepoint's path."""
        assert self._process is not None
        at = time.time()
        self._process.send_signal(signal.SIGTERM)
        if (status := self._process.wait(DEADLINE_S)) != 0:
            raise RuntimeError(f"The program ended with {status}.\n{self.log()}")
        return at, [line["savepoint"] for line in self.journal() if line["what"] == "stopped"][-1]

    def close(self) -> None:
        """End the program with all its processes."""
        if self._process is not None and self._process.poll() is None:
            family = psutil.Process(self._process.pid).children(recursive=True)
            self.kill_driver()
            _, alive = psutil.wait_procs(family, timeout=_GONE_S)
            for process in alive:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def _slots(self) -> list[psutil.Process]:
        assert self._process is not None
        return [each for each in psutil.Process(self._process.pid).children(recursive=True) if _is_slot(each)]

    def processor_seconds(self) -> dict[tuple[int, float], float]:
        """The processor time of each living process of the program, by its id and start."""
        used = {}
        for each in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if each.environ().get(_FAMILY_VARIABLE) == str(self.folder):
                    times = each.cpu_times()
                    used[each.pid, each.create_time()] = times.user + times.system
        return used

    # -- journal, log and measurements --------------------------------------------------------------------------------

    def journal(self, since: float = 0.0) -> list[dict[str, Any]]:
        """The journal's lines, over all starts of the program."""
        return [line for line in read_journal(self.folder / "journal") if line["at"] >= since]

    def log(self) -> str:
        """The end of the program's output."""
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def checkpoints(self, since: float) -> list[dict[str, Any]]:
        """The journal's lines of checkpoints that were completed since a time."""
        return [line for line in self.journal(since) if line["what"] == "checkpoint"]

    def wait(self, done: Callable[[], Any], what: str) -> None:
        """Wait until a condition holds, while the program is alive."""
        assert self._process is not None
        until = time.monotonic() + DEADLINE_S
        while not done():
            if self._process.poll() is not None:
                raise RuntimeError(f"The program ended while {what} was awaited.\n{self.log()}")
            if time.monotonic() > until:
                raise RuntimeError(f"After {DEADLINE_S:.0f} s: no sign of {what}.\n{self.log()}")
            time.sleep(_POLL_S)

    def first_new_record(self) -> tuple[float, dict[tuple[int, float], float]]:
        """When the first record came that had not been processed before `observed.mark`; `processor_seconds` then."""
        found: list[float] = []

        def came() -> bool:
            found.extend(each.at for each in self.observed.new_records())
            return bool(found)

        self.wait(came, "a new record")
        used = self.processor_seconds()
        came()  # another subtask's may have been earlier by a moment
        return min(found), used


def _kill(process: psutil.Process) -> float:
    at = time.time()
    process.kill()
    return at


def _is_slot(process: psutil.Process) -> bool:
    try:
        return "rekindle.runtime.slot" in process.cmdline() and process.name() != "rekindle-guard"
    except psutil.Error:
        return False
