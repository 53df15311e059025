"""The demo on Kafka: a broker of its own, a producer that sends orders, and readers of what is committed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from examples.orders.kafka_ends import events_per_partition
from examples.orders.kafka_topics import CommittedRows, committed_rows, create_topics
from examples.orders.produce import OrderProducer
from examples.orders.settings import Feed, Settings, millis
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import QUIET

# A broker that was killed is back within seconds; by default a client waits up to ten before it tries again.
_PATIENCE = {"reconnect.backoff.max.ms": 500}


class KafkaStage:
    """A broker whose data is in the job's directory; a reader sees what is committed (`read_committed`)."""

    has_broker = True
    how = "from its last checkpoint, or waited for the broker"

    def __init__(self, settings: Settings, feed: Feed) -> None:
        self._broker = KafkaBroker(Path(settings.directory) / "kafka")
        self.settings = replace(settings, source="kafka", sink="kafka", bootstrap=self._broker.bootstrap_servers)
        self._client: dict[str, Any] = self._broker.client() | QUIET | _PATIENCE
        self._feed = feed
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            opened.callback(self._end_broker)
            self._broker.start()
            create_topics(self._client, self.settings, self._feed)
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

    def _end_broker(self) -> None:
        """Kill it: its data goes, so there is nothing that it should write at its end."""
        if self._broker.is_running():
            self._broker.kill()

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

    @property
    def broker_pid(self) -> int:
        """The broker's process id."""
        return self._broker.pid

    def kill_broker(self) -> int:
        """Send SIGKILL to the broker; returns its process id."""
        pid = self.broker_pid
        self._broker.kill()
        return pid

    def restart_broker(self) -> None:
        """Start the broker again, on its port and with its data."""
        self._broker.restart()

    def count(self) -> dict[str, int]:
        """The rows that were committed so far."""
        return self._visible.count()

    def rows_of(self, stream: str) -> Iterable[Any]:
        """The committed rows of the stream's topic."""
        return committed_rows(self._client, self.settings, stream)
