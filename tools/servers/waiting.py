"""Waits for a server with a deadline: for a condition, or for its port to accept or refuse connections."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

_PAUSE_S = 0.02
_CONNECT_TIMEOUT_S = 1.0


def becomes_true(condition: Callable[[], bool], deadline_s: float) -> bool:
    """Ask until the condition holds or the deadline has passed. Returns whether it holds."""
    until = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE_S)
    return True


def accepts_connections(host: str, port: int) -> bool:
    """Whether something listens on this port."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True
