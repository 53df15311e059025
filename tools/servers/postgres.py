"""A PostgreSQL server of one's own, started, stopped, killed and restarted at will."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import psutil

from tools.servers.ports import LOOPBACK, free_ports
from tools.servers.postgres_programs import PostgresPrograms
from tools.servers.server_error import ServerError
from tools.servers.server_process import ServerProcess
from tools.servers.waiting import becomes_true

_START_DEADLINE_S = 60.0
_GONE_DEADLINE_S = 15.0
_IPC_RMID = 0
#: The line of postmaster.pid with the key and the id of the shared memory.
_SHARED_MEMORY_LINE = 6
#: Small and quick; what is committed survives a crash, as in every installation (fsync is on).
_SETTINGS: Mapping[str, str] = {
    "shared_buffers": "32MB",
    "max_connections": "60",
    "jit": "off",
    "unix_socket_directories": "",
    # In the data folder instead of /dev/shm, where a killed server would leave it.
    "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
}


class PostgresServer:
    """One server with its data in a folder; its port is picked once and stays the same over restarts.

    It asks for a password (`scram-sha-256`), also on this machine. Without a folder it makes a temporary one, which
    the end of a `with` block, or `close`, removes. The server never outlives the process that started it.
    """

    user = "postgres"
    password = "open sesame"
    database = "postgres"

    def __init__(
        self, folder: Path | None = None, *, port: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="rekindle-postgres-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "postgres.log"
        self.port = port or free_ports(1)[0]
        self._settings = {**_SETTINGS, **(settings or {})}
        self._data = self.folder / "data"
        self._process: ServerProcess | None = None

    @property
    def host(self) -> str:
        """The server's address."""
        return LOOPBACK

    @property
    def jdbc_url(self) -> str:
        """The address as a JDBC URL, without user and password."""
        return f"jdbc:postgresql://{LOOPBACK}:{self.port}/{self.database}"

    @property
    def conninfo(self) -> str:
        """The address, user and password for `psycopg.connect`."""
        return (
            f"host={LOOPBACK} port={self.port} dbname={self.database} user={self.user} password='{self.password}' "
            "connect_timeout=5"
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> PostgresServer:
        """Make the data folder if need be, start the server, and return when it answers."""
        if not self.is_running():
            programs = PostgresPrograms()
            programs.own(self.folder)
            if not (self._data / "PG_VERSION").exists():
                self._initialize(programs)
            self._process = ServerProcess("PostgreSQL", self._command(programs), self.log, self.port)
            self._wait_until_ready()
        return self

    def stop(self) -> None:
        """Stop the server: clients are disconnected, and what they have not committed is lost."""
        if self._process is not None and self._process.is_running():
            # SIGTERM alone would wait for the clients to leave.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGINT)
            self._process.stop()

    def close(self) -> None:
        """Stop the server, and remove its folder if that is a temporary one."""
        self.stop()
        self._remove_shared_memory()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the server and all its processes with SIGKILL; returns when they are gone."""
        process = self._running()
        if not process.is_running():
            return
        postmaster = psutil.Process(process.pid)
        doomed = [postmaster, *postmaster.children(recursive=True)]
        for each in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        process.kill()
        if not becomes_true(lambda: not any(map(_is_alive, doomed)), _GONE_DEADLINE_S):
            raise ServerError("Processes of PostgreSQL did not end after SIGKILL.")

    def restart(self) -> PostgresServer:
        """Start the server again on its port and its data; stops it first when it runs."""
        self._running()
        self.stop()
        return self.start()

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        return self._running().pid

    def is_running(self) -> bool:
        """Whether the server's process runs."""
        return self._process is not None and self._process.is_running()

    def log_tail(self) -> str:
        """The last lines of the server's log."""
        return self._running().log_tail()

    def __enter__(self) -> PostgresServer:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    def _running(self) -> ServerProcess:
        if self._process is None:
            raise ServerError("This PostgreSQL server was never started: call start() first.")
        return self._process

    # -- start --------------------------------------------------------------------------------------------------------

    def _initialize(self, programs: PostgresPrograms) -> None:
        secret = self.folder / "password"
        secret.touch(0o600)
        secret.write_text(f"{self.password}\n")
        programs.own(secret)
        try:
            programs.run(
                "initdb",
                *("--pgdata", os.fspath(self._data)),
                *("--username", self.user, "--pwfile", os.fspath(secret), "--auth", "scram-sha-256"),
                *("--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"),
            )
        finally:
            secret.unlink()

    def _command(self, programs: PostgresPrograms) -> list[str]:
        settings = {**self._settings, "listen_addresses": LOOPBACK, "port": str(self.port)}
        options = [f"--{name}={value}" for name, value in settings.items()]
        return programs.command("postgres", "-D", os.fspath(self._data), *options)

    def _wait_until_ready(self) -> None:
        """Wait for the port, then for an answer: after a crash the server recovers first."""
        self._running().wait_until_listening(_START_DEADLINE_S)
        if not becomes_true(self._answers, _START_DEADLINE_S):
            raise ServerError(f"PostgreSQL did not answer within {_START_DEADLINE_S:.0f} s; see {self.log}.")

    def _answers(self) -> bool:
        import psycopg

        try:
            with psycopg.connect(self.conninfo) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _remove_shared_memory(self) -> None:
        """Remove the segment that a killed server leaves to the kernel: its id is in postmaster.pid."""
        try:
            line = (self._data / "postmaster.pid").read_text().splitlines()[_SHARED_MEMORY_LINE]
            ctypes.CDLL(None).shmctl(int(line.split()[1]), _IPC_RMID, None)
        except (OSError, IndexError, ValueError):
            pass  # it was stopped, not killed


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
