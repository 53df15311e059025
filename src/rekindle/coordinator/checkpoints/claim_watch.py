"""Looks from time to time whether another driver has taken over the job: one that publishes nothing learns it so (I14).

A look lists the job's few claims. It runs on a thread of its own, because a store that is away may hold it up for long.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rekindle.clock import WaitingClock
from rekindle.errors import CheckpointError, OwnershipLostError

_LOG = logging.getLogger("rekindle.checkpoint")


class ClaimWatch:
    """Calls `look` once per interval while an attempt runs, until it raises OwnershipLostError, which `on_lost` gets.

    `on_lost` is called at most once, and never after `close`; it must not block.
    """

    def __init__(
        self,
        look: Callable[[], None],
        every_s: float,
        on_lost: Callable[[OwnershipLostError], None],
        clock: WaitingClock,
    ) -> None:
        self._look = look
        self._every_s = every_s
        self._on_lost = on_lost
        self._clock = clock
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._due = clock.monotonic() + every_s

    def start(self) -> ClaimWatch:
        """Start the thread."""
        threading.Thread(target=self._run, name="claim watch", daemon=True).start()
        return self

    def looked(self) -> None:
        """Put off the next look: whoever publishes a checkpoint has just looked."""
        self._due = self._clock.monotonic() + self._every_s

    def close(self) -> None:
        """End the thread, without waiting for a store that does not answer."""
        with self._lock:
            self._ended.set()

    def look_if_due(self) -> None:
        """Look if the interval is over. A store that fails is asked again after another one."""
        if self._clock.monotonic() < self._due:
            return
        try:
            self._look()
        except OwnershipLostError as lost:
            with self._lock:
                if not self._ended.is_set():
                    self._ended.set()
                    self._on_lost(lost)
        except CheckpointError as error:
            _LOG.info("The claim of the job could not be looked at, and is looked at again later: %s", error)
        self.looked()

    def _run(self) -> None:
        while not self._clock.wait(self._ended, max(0.0, self._due - self._clock.monotonic())):
            self.look_if_due()
