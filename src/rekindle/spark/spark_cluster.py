"""Spark as the coordinator's cluster: slots on its executors' hosts, epochs as its jobs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from pyspark import SparkContext

from rekindle import config
from rekindle.clock import WaitingClock
from rekindle.common.configuration import Configuration
from rekindle.coordinator.cluster import EpochRun
from rekindle.datastream.python_dependencies import PythonArchive, PythonDependencies
from rekindle.errors import ClusterError, ClusterGoneError, JobCancelledError
from rekindle.graph.settings import rocksdb_directories
from rekindle.protocol import SlotLaunch
from rekindle.runtime.scratch_folders import remove_abandoned_folders
from rekindle.spark import internals
from rekindle.spark.background_call import in_background
from rekindle.spark.epoch import EpochRunner
from rekindle.spark.from_dataframe import ChunkEncoder, DataFrameInput
from rekindle.spark.session import SessionLease, is_on_this_machine
from rekindle.spark.session_ending import session_ending
from rekindle.spark.shuffle import StageInput
from rekindle.spark.slot_start_watch import SlotStartWatch, WantedSlots
from rekindle.spark.slots import Placement, SpawnedSlot, is_local_master, master_of, spawn_slots
from rekindle.spark.spark_failure import explain_failure
from rekindle.spark.spark_thread import SparkThread

_LOOPBACK = "127.0.0.1"
_POOL_PROPERTY = "spark.scheduler.pool"
_LOOK_EVERY_S = 0.1
#: After this many failed starts of Spark in a row the job ends: the cause will not go away by waiting.
_MOST_FAILED_STARTS = 10


@dataclass(frozen=True)
class _SlotsJob:
    """Implements `slot_start_watch.StartingSlots`."""

    sc: SparkContext
    group: str

    def executors(self) -> int:
        """The number of registered executors; the driver's own JVM on this machine."""
        return 1 if is_local_master(master_of(self.sc)) else internals.registered_executors(self.sc)

    def active_tasks(self) -> int:
        """The number of tasks of the job that run at this moment."""
        return internals.active_tasks(self.sc, self.group)

    def ending(self) -> str | None:
        """How the session has ended without its program."""
        return session_ending(self.sc)

    def cancel(self) -> None:
        """Cancel the job."""
        internals.cancel_jobs(self.sc, self.group)


def _unless(cancelled: threading.Event, work: Callable[[], SessionLease]) -> SessionLease:
    """Do a work that may take minutes; JobCancelledError: the job was cancelled first, and the work is left behind."""
    future = in_background(work, "renew session")
    while not future.done():
        if cancelled.wait(_LOOK_EVERY_S):
            raise JobCancelledError("The job was cancelled while its Spark session was started again.")
    return future.result()


@dataclass(frozen=True)
class DataFrameFeed:
    """A DataFrame source of the plan: its rows, and the encoder that makes chunks of them."""

    source: DataFrameInput
    encode: ChunkEncoder


class SparkCluster:
    """Implements `coordinator.cluster.Cluster` on a Spark session, which `close` gives back.

    Make it on the user's thread: every job uses the FAIR pool that is set there. `renew` gives another session when
    a renewable one has ended.
    """

    def __init__(
        self,
        lease: SessionLease,
        configuration: Configuration,
        clock: WaitingClock,
        feeds: Mapping[int, DataFrameFeed] | None = None,
        renew: Callable[[], SessionLease] | None = None,
    ) -> None:
        self._configuration, self._clock = configuration, clock
        self._feeds = dict(feeds or {})
        self._renew = renew
        self._failed_starts = 0
        self._dependencies = PythonDependencies.of(configuration)  # now: a restart must not need the files again
        self._pool = lease.context.getLocalProperty(_POOL_PROPERTY)
        self._placements: list[Placement] = []
        self._stop_spawning = threading.Event()
        self._use(lease)

    def _use(self, lease: SessionLease) -> None:
        context = lease.context
        self._runner = EpochRunner(context, java_stacks=self._configuration.get(config.JAVA_STACK))
        self._thread = SparkThread(lambda: internals.is_stopping(context))
        self._lease, self._sc = lease, context
        self._added_archives: list[PythonArchive] = []

    def prepare(self, cancelled: threading.Event) -> None:
        """Before each attempt: check that the session has not ended, or replace it."""
        ending = session_ending(self._sc)
        if ending is None and internals.is_stopped(self._sc):
            raise ClusterGoneError("The Spark session of this job has been stopped, so it cannot be started again.")
        if ending is None:
            return
        if self._feeds:
            raise ClusterGoneError(
                f"The job reads a DataFrame of a Spark session that has ended ({ending}), and the DataFrame with it: "
                "start the program again."
            )
        if not self._lease.renewable or self._renew is None:
            raise ClusterGoneError(
                f"The Spark session that this program made has ended ({ending}): start the program again; a session "
                "that Rekindle makes would have been started again."
            )
        self._placements.clear()  # they ended with the session
        self._thread.close()
        self._use(_unless(cancelled, partial(self._started_again, self._renew)))

    def _started_again(self, renew: Callable[[], SessionLease]) -> SessionLease:
        try:
            lease = renew()
        except ClusterError as error:
            self._failed_starts += 1
            if self._failed_starts < _MOST_FAILED_STARTS:
                raise
            raise ClusterGoneError(
                f"Spark could not be started again {self._failed_starts} times in a row: {error}"
            ) from error
        self._failed_starts = 0
        return lease

    def driver_host(self) -> str:
        """Loopback when everything is on this machine, else the configured address, else that of Spark's driver."""
        if self.is_on_this_machine:
            return _LOOPBACK
        if self._configuration.contains(config.DRIVER_HOST):
            return self._configuration.get(config.DRIVER_HOST)
        return self._sc.getConf().get("spark.driver.host") or _LOOPBACK

    @property
    def page_url(self) -> str | None:
        """Where Spark's own page is; None if it has none."""
        return self._sc.uiWebUrl

    @property
    def is_on_this_machine(self) -> bool:
        """Whether slots listen on loopback only."""
        return is_on_this_machine(master_of(self._sc))

    def start_slots(self, launches: Sequence[SlotLaunch]) -> list[SpawnedSlot]:
        """Start the slots, which then connect to the driver."""
        job_name = launches[0].job_name
        self._release_placements()
        self._stop_spawning.clear()
        watch = self._watch(launches)
        try:
            placement = self._thread.call(lambda: self._spawn(launches), job_name, watch.look)
        except Exception as error:
            if watch.error is not None:
                raise watch.error from None
            if (message := internals.java_message(error)) is None:
                raise
            raise explain_failure(message, job_name) from None
        self._placements.append(placement)
        if self._stop_spawning.is_set():
            raise watch.error or JobCancelledError(f"The job '{job_name}' was cancelled while its slots started.")
        return placement.slots

    def _watch(self, launches: Sequence[SlotLaunch]) -> SlotStartWatch:
        first = launches[0]
        timeout_s = self._configuration.get(config.SLOT_REQUEST_TIMEOUT).total_seconds()
        wanted = WantedSlots(first.job_name, len(launches), master_of(self._sc), timeout_s)
        return SlotStartWatch(wanted, _SlotsJob(self._sc, first.job_id), self._clock, self._stop_spawning)

    def run_epoch(self, run: EpochRun) -> list[bytes]:
        """Run one epoch to its end; returns the chunks for the driver."""
        return self._thread.call(lambda: self._run_epoch(run), run.job_name)

    def cancel_epoch(self) -> None:
        """Stop the running epoch, or the start of the slots, from another thread."""
        self._stop_spawning.set()
        self._runner.cancel()

    def close(self) -> None:
        """Release executors and DataFrames, and close the lease of the session."""
        self._thread.close()
        try:
            self._release_placements()
            for feed in self._feeds.values():
                feed.source.close()
        except Exception as error:
            # A session that was stopped, or whose JVM has ended, has nothing left to release.
            if internals.java_message(error) is None:
                raise
        self._lease.close()
        remove_abandoned_folders(rocksdb_directories(self._configuration))

    def _spawn(self, launches: Sequence[SlotLaunch]) -> Placement:
        python = self._interpreter()
        if python is not None:
            launches = [msgspec.structs.replace(launch, python=python) for launch in launches]
        with self._in_pool():
            return spawn_slots(self._sc, launches, self._clock, self._stop_spawning)

    def _interpreter(self) -> str | None:
        """The interpreter of the slots, if the job names one. One in an archive goes to the hosts by Spark."""
        named = self._dependencies
        archive = named.archive_of_executable()
        if archive is not None and archive not in self._added_archives:
            self._sc.addArchive(str(archive))
            self._added_archives.append(archive)
        return named.executable

    def _run_epoch(self, run: EpochRun) -> list[bytes]:
        with self._in_pool():
            return self._runner.run(run, self._inputs(run))

    def _inputs(self, run: EpochRun) -> list[StageInput]:
        return [
            self._feeds[node].source.rows_for(partitions, self._feeds[node].encode)
            for node, partitions in run.dataframe_partitions
            if partitions
        ]

    def _release_placements(self) -> None:
        for placement in self._placements:
            placement.release()
        self._placements.clear()

    @contextlib.contextmanager
    def _in_pool(self) -> Iterator[None]:
        """Use the scheduling pool of the thread that made this cluster: jobs run on the job master's own thread."""
        if self._pool is None:
            yield
            return
        with internals.own_local_properties(self._sc):
            self._sc.setLocalProperty(_POOL_PROPERTY, self._pool)
            yield
