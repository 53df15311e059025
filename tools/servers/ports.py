"""Picks free ports that stay free while a server is down for a restart."""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
_LOWEST = 20_000
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_FIRST_EPHEMERAL = 32_768


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nothing listens on, all different.

    They lie below the kernel's range for outgoing connections: a client that tries to reach a killed server would
    otherwise be given the server's own port sooner or later, and the restarted server could not have it back.
    """
    candidates = random.SystemRandom().sample(range(_LOWEST, _first_ephemeral()), 100 * count)
    free = [port for port in candidates if is_free(port)]
    return free[:count]


def is_free(port: int) -> bool:
    """Whether a server could listen on this port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _first_ephemeral() -> int:
    try:
        first = int(_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_FIRST_EPHEMERAL
    return first if first > _LOWEST + 1_000 else _USUAL_FIRST_EPHEMERAL
