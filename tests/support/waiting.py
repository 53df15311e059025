"""Wait for something that another thread or process does, with a deadline and without a fixed sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

PAUSE_S = 0.02


def becomes_true(condition: Callable[[], Any], deadline_s: float, pause_s: float = PAUSE_S) -> bool:
    """Ask until the condition holds or the deadline has passed. Returns whether it holds."""
    deadline, pause = time.monotonic() + deadline_s, threading.Event()
    while not condition():
        if time.monotonic() >= deadline:
            return bool(condition())
        pause.wait(pause_s)
    return True


def wait_until(condition: Callable[[], Any], what: str, deadline_s: float, pause_s: float = PAUSE_S) -> Any:
    """Ask until the condition has a true value, and return that value. `what` names it if it never comes."""
    found: list[Any] = []

    def ask() -> bool:
        found[:] = [condition()]
        return bool(found[0])

    assert becomes_true(ask, deadline_s, pause_s), f"within {deadline_s:.0f} s: {what}"
    return found[0]
