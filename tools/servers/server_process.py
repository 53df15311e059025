"""A server as a process: started in the background with a log file, stopped or killed, gone with its starter."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.servers.ports import LOOPBACK
from tools.servers.server_error import ServerError
from tools.servers.waiting import accepts_connections, becomes_true

_GUARD = Path(__file__).with_name("guard.py")
# Long, because a server that records its classes writes them at its end.
_STOP_DEADLINE_S = 60.0
_GONE_DEADLINE_S = 15.0
_LOG_TAIL_CHARACTERS = 1_500


class ServerProcess:
    """One run of a server that listens on a port of this machine."""

    def __init__(self, name: str, command: Sequence[str], log: Path, port: int) -> None:
        self._name = name
        self._log = log
        self._port = port
        with open(log, "ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", os.fspath(_GUARD), str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                # Ctrl-C in a terminal is for the program that started the server, which then stops it.
                start_new_session=True,
            )
        self.pid = self._read_pid()

    def _read_pid(self) -> int:
        assert self._guard.stdout is not None
        with self._guard.stdout as answer:
            line = answer.readline()
        if not line:
            raise ServerError(f"{self._name} did not start: {self.log_tail()}")
        return int(line)

    def is_running(self) -> bool:
        """Whether the server's process runs."""
        return self._guard.poll() is None

    def wait_until_listening(self, deadline_s: float) -> None:
        """Wait until the port accepts connections; raises when the process ends first or takes too long."""
        becomes_true(lambda: not self.is_running() or self._listens(), deadline_s)
        if not self.is_running():
            raise ServerError(f"{self._name} ended while it started; the end of {self._log}:\n{self.log_tail()}")
        if not self._listens():
            raise ServerError(f"{self._name} did not listen within {deadline_s:.0f} s; see {self._log}.")

    def stop(self) -> None:
        """Ask the server to end, and kill it when it does not; returns when process and port are gone."""
        self._signal(signal.SIGTERM)
        try:
            self._guard.wait(_STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
        self._wait_until_gone()

    def kill(self) -> None:
        """End the server as a crash would, with SIGKILL; returns when process and port are gone."""
        self._signal(signal.SIGKILL)
        self._wait_until_gone()

    def log_tail(self) -> str:
        """The last lines of the log."""
        return self._log.read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:].strip()

    def _listens(self) -> bool:
        return accepts_connections(LOOPBACK, self._port)

    def _signal(self, number: signal.Signals) -> None:
        # The guard ends as soon as it has reaped the server: while it runs, the process id is still the server's.
        if self.is_running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _wait_until_gone(self) -> None:
        """Wait for the process, and for its socket: that of a killed JVM accepts connections a little longer."""
        try:
            self._guard.wait(_GONE_DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise ServerError(f"{self._name} (process {self.pid}) did not end after SIGKILL.") from None
        if not becomes_true(lambda: not self._listens(), _GONE_DEADLINE_S):
            raise ServerError(f"{self._name} has ended, but something still listens on port {self._port}.")
