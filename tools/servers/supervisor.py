"""Runs one broker for several processes, and ends it when the last of them has left or died.

``python -m tools.servers.supervisor FOLDER`` is started by `shared`, which explains the files in the folder. None of
the processes that use the broker could be its parent: the one that came first may be the first to go.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from tools.servers.class_archive import ClassArchive
from tools.servers.fetch import fetch_jars, file_lock
from tools.servers.kafka import KafkaBroker
from tools.servers.kafka_access import JARS, KafkaAccess
from tools.servers.server_error import ServerError
from tools.servers.shared import SharedFolder

_LOOK_EVERY_S = 0.25


def main(place: SharedFolder) -> int:
    """Run the broker for its users; the status is 1 when it did not start."""
    try:
        _serve(place)
    except ServerError as error:
        place.failure.write_text(str(error))
        return 1
    return 0


def _serve(place: SharedFolder) -> None:
    """Both locks are held until the broker has stopped: who joins then waits for that, and starts another one."""
    with ExitStack() as locks:
        locks.enter_context(file_lock(place.running))
        archive = ClassArchive(fetch_jars(JARS))
        with KafkaBroker(java_options=archive.record()) as broker:
            _say_where(place, broker)
            while not _without_users(place, locks):
                time.sleep(_LOOK_EVERY_S)
        archive.keep()


def _without_users(place: SharedFolder, locks: ExitStack) -> bool:
    """Whether the last user has gone; if so, nobody can join any more."""
    if place.living_users():
        return False
    with ExitStack() as joining:
        joining.enter_context(file_lock(place.joining))
        # Somebody may have joined while this process waited for the lock.
        if place.living_users():
            return False
        locks.push(joining.pop_all())
    return True


def _say_where(place: SharedFolder, broker: KafkaAccess) -> None:
    """Write the addresses under another name first: nobody reads half of them."""
    written = place.address.with_suffix(".partial")
    written.write_text(json.dumps({"addresses": broker.addresses, "client_settings": broker.client_settings}))
    os.replace(written, place.address)


if __name__ == "__main__":
    sys.exit(main(SharedFolder(Path(sys.argv[1]))))
