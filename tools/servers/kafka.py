"""A Kafka broker of one's own, started, stopped, killed and restarted at will."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tools.servers.class_archive import ClassArchive
from tools.servers.fetch import fetch_jars
from tools.servers.java_command import java_command
from tools.servers.kafka_access import FILES, JARS, KafkaAccess, log_option
from tools.servers.kafka_format import write_data_folder
from tools.servers.kafka_listeners import CONTROLLER, PLAINTEXT, Listener, listener_properties
from tools.servers.ports import LOOPBACK, free_ports
from tools.servers.server_error import ServerError
from tools.servers.server_process import ServerProcess
from tools.servers.waiting import becomes_true

_HEAP_MB = 256
_START_DEADLINE_S = 90.0
_ANSWER_TIMEOUT_S = 2.0


class KafkaBroker(KafkaAccess):
    """One broker with its data in a folder; its ports are picked once and stay the same over restarts.

    Without a folder it makes a temporary one, which the end of a `with` block, or `close`, removes. The broker never
    outlives the process that started it.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        port: int | None = None,
        listeners: Sequence[Listener] = (),
        properties: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        offered = (PLAINTEXT, *listeners)
        first, controller, *others = free_ports(len(offered) + 1)
        bound = list(zip(offered, (port or first, *others), strict=True))
        super().__init__(
            {each.name: f"{LOOPBACK}:{each_port}" for each, each_port in bound},
            {each.name: dict(each.client) for each in offered},
        )
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="rekindle-kafka-"))
        self.log = self.folder / "broker.log"
        self._port = port or first
        self._java_options = tuple(java_options)
        self._controller_port = controller
        self._properties = listener_properties([*bound, (CONTROLLER, controller)], LOOPBACK) | dict(properties or {})
        self._process: ServerProcess | None = None

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> KafkaBroker:
        """Fetch the jars if need be, start the broker, and return when it answers."""
        if self._process is None or not self._process.is_running():
            jars = fetch_jars(JARS)
            self._prepare(jars)
            self._process = ServerProcess("Kafka", self._command(jars), self.log, self._port)
            self._wait_until_ready()
        return self

    def stop(self) -> None:
        """Stop the broker with SIGTERM, and with SIGKILL if that is not enough; `start` goes on with its data."""
        if self._process is not None:
            self._process.stop()

    def close(self) -> None:
        """Stop the broker, and remove its folder if that is a temporary one."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the broker with SIGKILL; returns when its port refuses connections."""
        self._running().kill()

    def restart(self) -> KafkaBroker:
        """Start the broker again on its ports and its data; stops it first when it runs."""
        self._running().stop()
        return self.start()

    @property
    def pid(self) -> int:
        """The process id of the broker's JVM."""
        return self._running().pid

    def is_running(self) -> bool:
        """Whether the broker's process runs."""
        return self._process is not None and self._process.is_running()

    def log_tail(self) -> str:
        """The last lines of the broker's log."""
        return self._running().log_tail()

    def __enter__(self) -> KafkaBroker:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    def _running(self) -> ServerProcess:
        if self._process is None:
            raise ServerError("This broker was never started: call start() first.")
        return self._process

    # -- start --------------------------------------------------------------------------------------------------------

    @property
    def _properties_file(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _temporary_files(self) -> Path:
        return self.folder / "tmp"

    def _prepare(self, jars: Path) -> None:
        """Write the properties, and at the first start in this folder an empty data folder."""
        data = self.folder / "data"
        self._temporary_files.mkdir(parents=True, exist_ok=True)
        self._properties_file.write_text(self._properties_text(data))
        if not data.exists():
            write_data_folder(jars, self._properties_file, data)

    def _command(self, jars: Path) -> list[str]:
        # A killed broker leaves the native libraries that it unpacked: they lie in its folder, which is removed.
        own = (log_option(), "-Xms64m", f"-Djava.io.tmpdir={self._temporary_files}")
        options = (*own, *ClassArchive(jars).use(), *self._java_options)
        return [*java_command(jars, *options, heap_mb=_HEAP_MB), "kafka.Kafka", str(self._properties_file)]

    def _properties_text(self, data: Path) -> str:
        text = (FILES / "server.properties").read_text()
        text = text.replace("@CONTROLLER_PORT@", str(self._controller_port)).replace("@DATA@", str(data))
        return text + "".join(f"{key}={_escaped(value)}\n" for key, value in self._properties.items())

    def _wait_until_ready(self) -> None:
        """Wait for the port, then for the broker's answer, which comes a little later."""
        self._running().wait_until_listening(_START_DEADLINE_S)
        if not becomes_true(self._answers, _START_DEADLINE_S):
            raise ServerError(f"Kafka did not answer within {_START_DEADLINE_S:.0f} s; see {self.log}.")

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            return bool(self._admin().list_topics(timeout=_ANSWER_TIMEOUT_S).brokers)
        except KafkaException:
            return False


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
