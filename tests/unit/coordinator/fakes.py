"""A cluster without slots."""

from __future__ import annotations

from rekindle.errors import ClusterError


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
