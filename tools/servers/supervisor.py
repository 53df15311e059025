"""Runs one server for several processes, and ends it when the last of them has left or died.

``python -m tools.servers.supervisor NAME FOLDER`` is started by `shared`, which explains the files in the folder. None
of the processes that use the server could be its parent: the one that came first may be the first to go.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tools.servers.fetch import file_lock
from tools.servers.server_error import ServerError
from tools.servers.shareable import SHAREABLE
from tools.servers.shared import SharedFolder

_LOOK_EVERY_S = 0.25


def main(name: str, place: SharedFolder) -> int:
    """Run the server for its users; the status is 1 when it did not start."""
    try:
        _serve(name, place)
    except ServerError as error:
        place.failure.write_text(str(error))
        return 1
    return 0


def _serve(name: str, place: SharedFolder) -> None:
    """Both locks are held until the server has stopped: who joins then waits for that, and starts another one."""
    with ExitStack() as locks:
        locks.enter_context(file_lock(place.running))
        with SHAREABLE[name].run() as address:
            _say_where(place, address)
            while not _without_users(place, locks):
                time.sleep(_LOOK_EVERY_S)


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


def _say_where(place: SharedFolder, address: dict[str, Any]) -> None:
    """Write the address under another name first: nobody reads half of it."""
    written = place.address.with_suffix(".partial")
    written.write_text(json.dumps(address))
    os.replace(written, place.address)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SharedFolder(Path(sys.argv[2]))))
