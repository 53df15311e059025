"""An HBase of one's own and its Thrift server, as two processes that are started, stopped, killed and restarted alone.

HBase runs in its local mode: master, region server and ZooKeeper in one JVM. The Thrift server is a second one, so that
a test can see an outage of HBase through a living Thrift server.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tools.servers.fetch import fetch_jars
from tools.servers.hbase_access import FILES, JARS, HBaseAccess
from tools.servers.java_command import java_command
from tools.servers.ports import free_ports
from tools.servers.server_error import ServerError
from tools.servers.server_process import ServerProcess
from tools.servers.waiting import becomes_true

_MASTER = "org.apache.hadoop.hbase.master.HMaster"
_THRIFT = "org.apache.hadoop.hbase.thrift.ThriftServer"
_HBASE_HEAP_MB = 384
_THRIFT_HEAP_MB = 128
_START_DEADLINE_S = 120.0
_PROBE_TIMEOUT_MS = 5_000
#: The table that is assigned last when HBase starts; `tables()` answers long before.
_PROBED_TABLE = "hbase:namespace"
_ABORTED = "ABORTING"


class HBaseServer(HBaseAccess):
    """One HBase with its data in a folder; its ports are picked once and stay the same over restarts.

    Without a folder it makes a temporary one, which the end of a `with` block, or `close`, removes. Neither process
    outlives the one that started it.
    """

    def __init__(
        self, folder: Path | None = None, *, port: int | None = None, properties: Mapping[str, str] | None = None
    ) -> None:
        thrift, *others = free_ports(4)
        super().__init__(port or thrift)
        self._zookeeper_port, self._master_port, self._region_port = others
        self._properties = dict(properties or {})
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="rekindle-hbase-"))
        self.log = self.folder / "hbase.log"
        self.thrift_log = self.folder / "thrift.log"
        self._hbase: ServerProcess | None = None
        self._thrift: ServerProcess | None = None

    # -- life of both -------------------------------------------------------------------------------------------------

    def start(self) -> HBaseServer:
        """Fetch the jars if need be, start what does not run, and return when a table can be read."""
        jars = fetch_jars(JARS)
        self._temporary_files.mkdir(parents=True, exist_ok=True)
        if not _runs(self._hbase):
            self._seen_in_log = self.log.stat().st_size if self.log.exists() else 0
            self._hbase = ServerProcess("HBase", self._command(jars, _MASTER), self.log, self._master_port)
        if not _runs(self._thrift):
            command = self._command(jars, _THRIFT)
            self._thrift = ServerProcess("HBase's Thrift server", command, self.thrift_log, self.port)
        self._wait_until_ready()
        return self

    def stop(self) -> None:
        """Stop both with SIGTERM, and with SIGKILL if that is not enough; `start` goes on with the data."""
        for process in (self._thrift, self._hbase):
            if process is not None:
                process.stop()

    def kill(self) -> None:
        """Kill both with SIGKILL; returns when their ports refuse connections."""
        self.kill_thrift()
        self.kill_hbase()

    def restart(self) -> HBaseServer:
        """Start both again on their ports and data; stops first what runs."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """End both, and remove their folder if that is a temporary one: then nobody waits for a clean end."""
        if not self._temporary:
            self.stop()
            return
        for process in (self._thrift, self._hbase):
            if process is not None:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- life of one --------------------------------------------------------------------------------------------------

    def kill_hbase(self) -> None:
        """Kill HBase alone with SIGKILL; `start` starts it again."""
        _started(self._hbase).kill()

    def kill_thrift(self) -> None:
        """Kill the Thrift server alone with SIGKILL; `start` starts it again."""
        _started(self._thrift).kill()

    def restart_hbase(self) -> HBaseServer:
        """Start HBase alone again; stops it first when it runs."""
        _started(self._hbase).stop()
        return self.start()

    def restart_thrift(self) -> HBaseServer:
        """Start the Thrift server alone again; stops it first when it runs."""
        _started(self._thrift).stop()
        return self.start()

    # -- what is seen -------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process id of HBase's JVM."""
        return _started(self._hbase).pid

    @property
    def thrift_pid(self) -> int:
        """The process id of the Thrift server's JVM."""
        return _started(self._thrift).pid

    def is_running(self) -> bool:
        """Whether both processes run."""
        return _runs(self._hbase) and _runs(self._thrift)

    def log_tail(self) -> str:
        """The last lines of both logs."""
        return f"{_started(self._hbase).log_tail()}\n{_started(self._thrift).log_tail()}"

    def __enter__(self) -> HBaseServer:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    # -- start --------------------------------------------------------------------------------------------------------

    @property
    def _temporary_files(self) -> Path:
        return self.folder / "tmp"

    def _command(self, jars: Path, server: str) -> list[str]:
        places = {
            "hb.dir": self.folder / "data",
            "hb.zookeeper.port": self._zookeeper_port,
            "hb.master.port": self._master_port,
            "hb.region.port": self._region_port,
            "hb.thrift.port": self.port,
            # Killed servers leave temporary files: they lie in their folder, which is removed.
            "java.io.tmpdir": self._temporary_files,
            "java.net.preferIPv4Stack": "true",
        }
        options = [f"-D{name}={value}" for name, value in places.items()]
        # Without this HBase writes a warning with a stack into its log at each start.
        options.append("--add-opens=java.base/java.nio=ALL-UNNAMED")
        heap_mb = _HBASE_HEAP_MB if server == _MASTER else _THRIFT_HEAP_MB
        settings = [f"-D{name}={value}" for name, value in self._properties.items()]
        return [*java_command(jars, *options, heap_mb=heap_mb, folders=[FILES]), server, *settings, "start"]

    def _wait_until_ready(self) -> None:
        """Wait for the Thrift server's port, then until HBase has assigned its tables."""
        _started(self._thrift).wait_until_listening(_START_DEADLINE_S)
        becomes_true(lambda: self._failed() or self._answers(), _START_DEADLINE_S)
        if self._failed() or not self._answers():
            raise ServerError(
                f"HBase did not answer within {_START_DEADLINE_S:.0f} s, or ended; the end of {self.log}:\n"
                f"{_started(self._hbase).log_tail()}"
            )

    def _failed(self) -> bool:
        """Whether HBase has given up. A master that aborts leaves its JVM running."""
        with open(self.log, "rb") as log:
            log.seek(self._seen_in_log)
            return not self.is_running() or _ABORTED.encode() in log.read()

    def _answers(self) -> bool:
        from thriftpy2.thrift import TException

        try:
            connection = self.connection(_PROBE_TIMEOUT_MS)
        except (OSError, TException):
            return False
        try:
            list(connection.table(_PROBED_TABLE).scan(limit=1))
        except (OSError, TException):
            return False
        else:
            return True
        finally:
            connection.close()


def _runs(process: ServerProcess | None) -> bool:
    return process is not None and process.is_running()


def _started(process: ServerProcess | None) -> ServerProcess:
    if process is None:
        raise ServerError("This HBase was never started: call start() first.")
    return process
