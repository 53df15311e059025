"""A cluster without Spark: real slot processes on this machine, and threads in place of Spark's tasks.

A job on it has the real job master, slots, checkpoints and failures, and starts in a second.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from rekindle.common import Configuration
from rekindle.coordinator.attempt_spec import SlotEnvironment
from rekindle.coordinator.cluster import EpochRun
from rekindle.coordinator.job import JobMaster
from rekindle.coordinator.observer import JobObserver
from rekindle.datastream.transformations import Program
from rekindle.errors import ClusterError, JobCancelledError
from rekindle.graph.build import build_plan
from rekindle.protocol import DESTINATION, TO_DRIVER, PumpHello, SlotLaunch, encode_launch
from rekindle.spark.launcher import job_spec, watched
from rekindle.spark.pump import SPARK_KEY, PumpTask
from rekindle.spark.storage import JobStorage

ENDING_S = 10.0


class LocalCluster:
    """Implements `coordinator.cluster.Cluster`."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._cancelled = threading.Event()

    def prepare(self, cancelled: threading.Event) -> None:
        """Forget the slots of the last attempt, which have ended."""
        self._reap()

    def driver_host(self) -> str:
        return "127.0.0.1"

    def start_slots(self, launches: Sequence[SlotLaunch]) -> None:
        """Start the slot processes, each the leader of its session, as Spark's tasks do."""
        self._cancelled.clear()
        for launch in launches:
            directory = tempfile.mkdtemp(prefix="slot-")
            process = subprocess.Popen(
                [sys.executable, "-m", "rekindle.runtime.slot", launch.job_name, str(launch.slot)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=directory,
                start_new_session=True,
            )
            self._processes.append(process)
            assert process.stdin is not None
            with process.stdin as stdin:
                stdin.write(encode_launch(msgspec.structs.replace(launch, directory=directory)))

    def run_epoch(self, run: EpochRun) -> list[bytes]:
        """Run the stages one after the other; each slot has a thread that is its pump."""
        slots = tuple((slot.host, slot.boot_id, slot.unix_path, slot.tcp_port) for slot in run.slots)
        rows: list[list[bytes]] = [[] for _ in slots]
        last = len(run.stage_names) - 1
        with ThreadPoolExecutor(len(slots)) as pumps:
            for stage in range(last + 1):
                limits = run.max_records, run.target_ms, run.checkpoint, run.leave
                others = dict(run.aligned), list(run.backlogged), dict(run.source_stages)
                hello = PumpHello(run.attempt, run.epoch, stage, *limits, *others)
                task = PumpTask(hello, slots, run.secret, stage == last, run.tls)
                done = list(pumps.map(partial(_pumped, task), range(len(slots)), rows))
                if self._cancelled.is_set():
                    raise JobCancelledError(f"The job '{run.job_name}' was cancelled.")
                if stage == last:
                    return [row[DESTINATION.size :] for each in done for row in each]
                rows = _shuffled(done, len(slots))
        raise ClusterError("unreachable: the last stage returns")

    def cancel_epoch(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self._reap()

    def _reap(self) -> None:
        for process in self._processes:
            process.wait(ENDING_S)
        self._processes.clear()


def _pumped(task: PumpTask, slot: int, rows: list[bytes]) -> list[bytes]:
    return list(task._pump(slot, rows))


def _shuffled(outputs: list[list[bytes]], slots: int) -> list[list[bytes]]:
    """Give each slot the rows for it, as Spark's shuffle does; keys and rows stand in turn."""
    rows: list[list[bytes]] = [[] for _ in range(slots)]
    for output in outputs:
        for key, row in zip(output[::2], output[1::2], strict=True):
            (target,) = SPARK_KEY.unpack(key)
            assert DESTINATION.unpack_from(row)[0] in (target, TO_DRIVER)
            rows[target].append(row)
    return rows


def launch_locally(program: Program, observer: JobObserver | None = None) -> JobMaster:
    """Start a program on this machine without Spark; returns the job's master, as the launcher does."""
    configuration: Configuration = program.configuration
    storage = JobStorage.of(build_plan(program), configuration)
    plan = build_plan(program, os.cpu_count() or 1, storage.stored_max_parallelism())
    spec = job_spec(program, plan, storage, SlotEnvironment(True, tuple(sys.path[1:])))
    return watched(spec, LocalCluster(), configuration, storage, observer).start()
