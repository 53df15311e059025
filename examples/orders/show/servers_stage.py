"""The demo on servers of its own: orders come from Kafka, results go to Kafka and to HBase."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from examples.orders.ends import IN_TABLES, STREAMS
from examples.orders.hbase_ends import create_table, hbase_rows
from examples.orders.kafka_ends import events_per_partition
from examples.orders.kafka_topics import CommittedRows, committed_rows, create_topics
from examples.orders.produce import OrderProducer
from examples.orders.settings import Feed, Settings, millis
from examples.orders.show.stage import Server
from tools.servers.hbase import HBaseServer
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import QUIET

# A broker that was killed is back within seconds; by default a client waits up to ten before it tries again.
_PATIENCE = {"reconnect.backoff.max.ms": 500}


class _WholeHBase:
    """HBase and its Thrift server as one."""

    def __init__(self, hbase: HBaseServer) -> None:
        self._hbase = hbase

    @property
    def pid(self) -> int:
        return self._hbase.pid

    def kill(self) -> None:
        self._hbase.kill()

    def restart(self) -> object:
        return self._hbase.restart()


class ServersStage:
    """Kafka and HBase with their data in the job's directory; a reader of topics sees what is committed.

    Lists of events go to topics, exactly once; statuses, purchases and stock go to a table of HBase, effectively once.
    """

    how = "from its last checkpoint, or waited for the server"
    counted: Collection[str] = tuple(stream for stream in STREAMS if stream not in IN_TABLES)

    def __init__(self, settings: Settings, feed: Feed) -> None:
        self._broker = KafkaBroker(Path(settings.directory) / "kafka")
        self._hbase = HBaseServer(Path(settings.directory) / "hbase")
        self.settings = replace(
            settings,
            source="kafka",
            sink="kafka+hbase",
            bootstrap=self._broker.bootstrap_servers,
            thrift=self._hbase.address,
        )
        self.servers: Mapping[str, Server] = {"the Kafka broker": self._broker, "HBase": _WholeHBase(self._hbase)}
        self._client: dict[str, Any] = self._broker.client() | QUIET | _PATIENCE
        self._feed = feed
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            opened.callback(self._end_servers)
            self._broker.start()
            self._hbase.start()
            create_topics(self._client, self.settings, self._feed)
            create_table(self.settings)
            self._visible = CommittedRows(self._client, self.settings)
            opened.callback(self._visible.close)
            self._producer = OrderProducer(self._client, self.settings, self._feed)
            opened.callback(self._producer.close)
            self._open = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def _end_servers(self) -> None:
        """Kill them: their data goes, so there is nothing that they should write at their end."""
        if self._broker.is_running():
            self._broker.kill()
        self._hbase.kill()

    def start_feed(self) -> None:
        """Send orders from now on; the last tenth slowly, until `finish_feed`."""
        total = sum(events_per_partition(self._feed, millis(self.settings.out_of_orderness_s)).values())
        self._producer.start(total)

    def finish_feed(self) -> None:
        """Send the rest as fast as it goes."""
        self._producer.hurry()

    def sent(self) -> int:
        """How many events were sent."""
        return self._producer.sent

    def wait_for_feed(self) -> None:
        """Wait until the broker has every event."""
        self._producer.wait()

    def count(self) -> dict[str, int]:
        """The rows that were committed to topics so far."""
        return self._visible.count()

    def rows_of(self, stream: str) -> Iterable[Any]:
        """The stream's rows in HBase, or the committed rows of its topic."""
        if stream in IN_TABLES:
            return hbase_rows(self.settings, stream)
        return committed_rows(self._client, self.settings, stream)
