"""A cluster without slots."""

from __future__ import annotations

from rekindle.errors import ClusterError

#: Settings with which an attempt waits a moment only.
SHORT_WAITS = {
    "heartbeat.interval": "1 s",
    "heartbeat.timeout": "1 s",
    "rekindle.slot.start-timeout": "100 ms",
    "task.cancellation.timeout": "100 ms",
}


class Nowhere:
    """A cluster without slots."""

    def prepare(self, cancelled):
        """There is nothing to prepare."""

    def driver_host(self):
        return "127.0.0.1"

    def start_slots(self, launches):
        raise ClusterError("There are no slots here.")

    def run_epoch(self, run):
        raise AssertionError("no slots, no epochs")

    def cancel_epoch(self):
        """Nothing runs."""

    def close(self):
        """Nothing was taken."""
