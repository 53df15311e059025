"""Standard streams whose reader has gone, as after `rekindle run program.py | head -1`."""

from __future__ import annotations

import os
import select
import sys
from typing import TextIO


def closed_streams() -> list[TextIO]:
    """The standard streams for output whose reader has gone."""
    return [stream for stream in (sys.__stdout__, sys.__stderr__) if stream is not None and _is_unread(stream)]


def silence_closed_streams() -> None:
    """Let writes to closed streams go nowhere: Python would fail at its end, when it flushes them."""
    for stream in closed_streams():
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _is_unread(stream: TextIO) -> bool:
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)
        return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
    except (OSError, ValueError):  # it has no descriptor, or is closed on our side
        return False
