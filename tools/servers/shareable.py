"""The servers that processes of a test run can share: how each is fetched, run, and found by those who use it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tools.servers import hbase_access, kafka_access
from tools.servers.class_archive import ClassArchive
from tools.servers.fetch import fetch_jars
from tools.servers.hbase import HBaseServer
from tools.servers.hbase_access import HBaseAccess
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import KafkaAccess


@dataclass(frozen=True)
class Shareable:
    """One kind of server."""

    #: Its name in sentences.
    title: str
    #: Fetches what the server needs; whoever joins does this before anybody waits for the start.
    fetch: Callable[[], object]
    #: Runs the server inside a block, and gives its address as plain data.
    run: Callable[[], AbstractContextManager[dict[str, Any]]]
    #: Makes the object that users get from the address.
    access: Callable[..., Any]


@contextlib.contextmanager
def _kafka() -> Iterator[dict[str, Any]]:
    archive = ClassArchive(fetch_jars(kafka_access.JARS))
    with KafkaBroker(java_options=archive.record()) as broker:
        yield {"addresses": broker.addresses, "client_settings": broker.client_settings}
    archive.keep()


@contextlib.contextmanager
def _hbase() -> Iterator[dict[str, Any]]:
    with HBaseServer() as server:
        yield {"port": server.port}


SHAREABLE: Mapping[str, Shareable] = {
    "kafka": Shareable("Kafka broker", lambda: fetch_jars(kafka_access.JARS), _kafka, KafkaAccess),
    "hbase": Shareable("HBase", lambda: fetch_jars(hbase_access.JARS), _hbase, HBaseAccess),
}
