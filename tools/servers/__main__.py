"""Runs the servers in the foreground until Ctrl-C: ``make servers``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from tools.servers.hbase import HBaseServer
from tools.servers.kafka import KafkaBroker
from tools.servers.ports import is_free
from tools.servers.postgres import PostgresServer
from tools.servers.server_error import ServerError

_KAFKA_PORT = 9092
_HBASE_PORT = 9090
_POSTGRES_PORT = 5432
_LOOK_EVERY_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the servers, print their addresses, and wait for Ctrl-C; the status is 1 when one fails."""
    options = _parse(arguments)
    # Both explicitly: a shell that starts a program in the background switches Ctrl-C off for it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with ExitStack() as servers:
            _serve(servers, options)
    except KeyboardInterrupt:
        print("The servers have ended.", flush=True)
        return 0
    except ServerError as error:
        print(f"servers: {error}", file=sys.stderr)
        return 1


def _serve(servers: ExitStack, options: argparse.Namespace) -> NoReturn:
    folder: Path | None = options.folder and options.folder.absolute()
    print("Starting Kafka, HBase and PostgreSQL ...", flush=True)
    kafka = servers.enter_context(
        KafkaBroker(folder and folder / "kafka", port=options.kafka_port or _usual(_KAFKA_PORT))
    )
    print(f"Kafka  {kafka.bootstrap_servers}  (log: {kafka.log})", flush=True)
    hbase = servers.enter_context(
        HBaseServer(folder and folder / "hbase", port=options.hbase_port or _usual(_HBASE_PORT))
    )
    print(f"HBase  {hbase.address}  (Thrift; logs: {hbase.log}, {hbase.thrift_log})", flush=True)
    postgres = servers.enter_context(
        PostgresServer(folder and folder / "postgres", port=options.postgres_port or _usual(_POSTGRES_PORT))
    )
    print(
        f"PostgreSQL  {postgres.jdbc_url}  user {postgres.user}, password '{postgres.password}'  (log: {postgres.log})"
    )
    print("Ctrl-C ends the servers.", flush=True)
    _watch({"Kafka": kafka, "HBase": hbase, "PostgreSQL": postgres})


def _watch(servers: Mapping[str, Any]) -> NoReturn:
    """Return never: raise when a server has ended by itself."""
    while True:
        for name, server in servers.items():
            if not server.is_running():
                raise ServerError(f"{name} has ended by itself: {server.log_tail()}")
        time.sleep(_LOOK_EVERY_S)


def _usual(port: int) -> int | None:
    """The port under which people expect the server, unless something has it already."""
    return port if is_free(port) else None


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make servers", description=__doc__)
    parser.add_argument("--kafka-port", type=int, help=f"the broker's port (default: {_KAFKA_PORT}, or a free one)")
    parser.add_argument("--hbase-port", type=int, help=f"HBase's Thrift port (default: {_HBASE_PORT}, or a free one)")
    parser.add_argument("--postgres-port", type=int, help=f"PostgreSQL's (default: {_POSTGRES_PORT}, or a free one)")
    parser.add_argument("--folder", type=Path, help="keeps the servers' data here (default: a folder that is removed)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
