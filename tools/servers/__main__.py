"""Runs the servers in the foreground until Ctrl-C: ``make servers``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tools.servers.kafka import KafkaBroker
from tools.servers.ports import is_free
from tools.servers.server_error import ServerError

_KAFKA_PORT = 9092
_LOOK_EVERY_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the servers, print their addresses, and wait for Ctrl-C; the status is 1 when one fails."""
    options = _parse(arguments)
    # Both explicitly: a shell that starts a program in the background switches Ctrl-C off for it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        _serve(options.kafka_port, options.folder)
    except KeyboardInterrupt:
        print("The servers have ended.", flush=True)
        return 0
    except ServerError as error:
        print(f"servers: {error}", file=sys.stderr)
        return 1


def _serve(kafka_port: int | None, folder: Path | None) -> NoReturn:
    print("Starting Kafka ...", flush=True)
    with KafkaBroker(folder and folder.absolute() / "kafka", port=kafka_port or _usual(_KAFKA_PORT)) as kafka:
        print(f"Kafka  {kafka.bootstrap_servers}  (log: {kafka.log})")
        print("Ctrl-C ends the servers.", flush=True)
        while kafka.is_running():
            time.sleep(_LOOK_EVERY_S)
        raise ServerError(f"Kafka has ended by itself: {kafka.log_tail()}")


def _usual(port: int) -> int | None:
    """The port under which people expect the server, unless something has it already."""
    return port if is_free(port) else None


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make servers", description=__doc__)
    parser.add_argument("--kafka-port", type=int, help=f"the broker's port (default: {_KAFKA_PORT}, or a free one)")
    parser.add_argument("--folder", type=Path, help="keeps the servers' data here (default: a folder that is removed)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
