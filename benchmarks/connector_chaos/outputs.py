"""Where the job writes: the server, the job's sink, and how its content is read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from benchmarks.connector_chaos.blows import Server
from benchmarks.connector_chaos.kill_plan import Victim
from tools.servers.kafka import KafkaBroker

#: What was written, comparable: for each key what was written for it, in order.
Written = dict[Any, list[Any]]


class Output(Protocol):
    """A kind of server that takes the job's output, under two names: with kills, and without."""

    #: Whether the sink commits with the checkpoints.
    commits: bool

    @property
    def servers(self) -> Mapping[Victim, Server]:
        """The processes that can be killed, besides the broker of the input."""
        ...

    def create(self, name: str) -> None:
        """Make the topic or table."""

    def arguments(self, name: str) -> dict[str, Any]:
        """What the job needs to know to write there: plain data, no secrets."""
        ...

    def read(self, name: str, records: int, deadline_s: float) -> Written:
        """Wait until the output of so many records is there, and a little longer, and return what is there."""
        ...


def open_output(kind: str, broker: KafkaBroker) -> AbstractContextManager[Output]:
    """Start the server of an output."""
    return _MAKERS[kind](broker)


def _kafka(broker: KafkaBroker) -> AbstractContextManager[Output]:
    from benchmarks.connector_chaos.kafka_output import KafkaOutput

    return KafkaOutput(broker)


def _hbase(broker: KafkaBroker) -> AbstractContextManager[Output]:
    from benchmarks.connector_chaos.hbase_output import HBaseOutput

    return HBaseOutput()


def _postgres(broker: KafkaBroker) -> AbstractContextManager[Output]:
    from benchmarks.connector_chaos.postgres_output import PostgresOutput

    return PostgresOutput()


_MAKERS: dict[str, Callable[[KafkaBroker], AbstractContextManager[Output]]] = {
    "kafka": _kafka,
    "hbase": _hbase,
    "postgres": _postgres,
}
KINDS = tuple(_MAKERS)
