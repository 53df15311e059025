"""Watches Spark while it starts slots: Spark itself would wait for executors without end, and say nothing."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Protocol

from rekindle.clock import Clock
from rekindle.errors import ClusterError, JobCancelledError, RekindleError

_LOG = logging.getLogger("rekindle.spark")
#: After this time the log says what is waited for.
_SILENCE_S = 15.0
#: How often the cluster is asked whether it still has the application.
_ASK_CLUSTER_S = 5.0
#: Tasks that are starting slots may finish after a stop: a slot that is cut off leaves its directory behind.
_GRACE_S = 2.0
#: Spark has this long to end a cancelled job.
_ANSWER_S = 4.0


class StartingSlots(Protocol):
    """The Spark job that starts slots, and its cluster."""

    def executors(self) -> int:
        """The number of registered executors."""

    def active_tasks(self) -> int:
        """The number of tasks of the job that run at this moment."""

    def ending(self) -> str | None:
        """How the session has ended without its program, as text; None: it goes on."""

    def cancel(self) -> None:
        """Cancel the job."""


@dataclass(frozen=True)
class WantedSlots:
    """The slots that are being started, and the time that this may take."""

    job_name: str
    slots: int
    master: str
    timeout_s: float

    def missing(self, executors: int) -> str:
        """The sentence about slots that did not start in time.

        >>> print(WantedSlots("count", 4, "spark://host:7077", 300).missing(0))
        Spark did not start the 4 slots of job 'count' within 300 s (slot.request.timeout): no executor of \
spark://host:7077 is registered. Check on Spark's page that it has workers with free cores and memory.
        >>> print(WantedSlots("count", 1, "local[2]", 300).missing(1).partition(": ")[2])
        1 executor of local[2] is registered. Check on Spark's page that its cores are not busy with other jobs.
        """
        slots = f"{self.slots} slots" if self.slots != 1 else "slot"
        return (
            f"Spark did not start the {slots} of job '{self.job_name}' within {self.timeout_s:.0f} s "
            f"(slot.request.timeout): {self.have(executors)}. Check on Spark's page that "
            f"{'its cores are not busy with other jobs' if executors else 'it has workers with free cores and memory'}."
        )

    def have(self, executors: int) -> str:
        """The executors that there are, as text."""
        if executors <= 1:
            return f"{'1' if executors else 'no'} executor of {self.master} is registered"
        return f"{executors} executors of {self.master} are registered"


class SlotStartWatch:
    """Ends the start of slots at its deadline, when the cluster has forgotten the application, or when `stop` is set.

    `stop` is set in each of these cases; `error` says why, unless somebody else has set it.
    """

    def __init__(self, wanted: WantedSlots, spark: StartingSlots, clock: Clock, stop: threading.Event) -> None:
        self.error: RekindleError | None = None
        self._wanted = wanted
        self._spark = spark
        self._clock = clock
        self._stop = stop
        self._begun = self._asked = clock.monotonic()
        self._stopped_at: float | None = None
        self._warned = False

    def look(self) -> None:
        """Call this again and again until the job has ended. Raises if Spark does not end a job that was cancelled."""
        now = self._clock.monotonic()
        if not self._stop.is_set():
            self.error = self._trouble(now)
            if self.error is None:
                self._warn(now)
                return
            self._stop.set()
        if self._stopped_at is None:
            self._stopped_at = now
        stopped_s = now - self._stopped_at
        if stopped_s >= _ANSWER_S:
            raise self.error or JobCancelledError(f"The job '{self._wanted.job_name}' was cancelled.")
        if stopped_s >= _GRACE_S or not self._spark.active_tasks():
            self._spark.cancel()

    def _trouble(self, now: float) -> RekindleError | None:
        if now - self._begun >= self._wanted.timeout_s:
            return ClusterError(self._wanted.missing(self._spark.executors()))
        if now - self._asked >= _ASK_CLUSTER_S:
            self._asked = now
            if (ending := self._spark.ending()) is not None:
                return ClusterError(
                    f"The slots of job '{self._wanted.job_name}' cannot start, because its Spark session has ended: "
                    f"{ending}."
                )
        return None

    def _warn(self, now: float) -> None:
        if not self._warned and now - self._begun >= _SILENCE_S:
            self._warned = True
            _LOG.warning(
                "Job '%s' waits for Spark to start %d slots: %s.",
                self._wanted.job_name,
                self._wanted.slots,
                self._wanted.have(self._spark.executors()),
            )
