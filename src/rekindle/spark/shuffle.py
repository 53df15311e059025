"""One epoch as RDDs: a stage of pumps per exchange of the plan, and Spark's shuffle between them.

This is the only module that knows how rows travel through Spark.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext

import rekindle
from rekindle.coordinator.cluster import EpochRun
from rekindle.protocol import DESTINATION, PumpHello
from rekindle.spark import internals as private
from rekindle.spark.pump import PumpTask


@dataclass(frozen=True)
class StageInput:
    """Extra tasks of the first stage (I10): `task` over each partition of `rdd` yields packed keys and rows in turn."""

    rdd: private.ByteRdd
    task: private.ByteTask


@dataclass(frozen=True)
class EpochJob:
    """The job to run, and the shuffles to remove when it is over."""

    rows: private.ByteRdd
    shuffles: tuple[int, ...]


class Exchange:
    """Builds epochs on one session; what does not change from epoch to epoch is made once."""

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._runtime = private.python_runtime(sc, package_path())
        self._bases: dict[int, private.ByteRdd] = {}

    def build(self, run: EpochRun, inputs: Sequence[StageInput] = ()) -> EpochJob:
        """The RDDs of one epoch; nothing runs yet. Afterwards the call site is that of the last stage."""
        assert run.stage_names, "an epoch has at least one stage"
        assert not inputs or len(run.stage_names) > 1, "rows of a DataFrame need an exchange on their way to a slot"
        slots = tuple((slot.host, slot.boot_id, slot.unix_path, slot.tcp_port) for slot in run.slots)
        last = len(run.stage_names) - 1
        source = self._base(len(slots))
        shuffles: list[int] = []
        for stage, name in enumerate(run.stage_names):
            hello = PumpHello(run.attempt, run.epoch, stage, run.max_records, run.target_ms, run.checkpoint, run.leave)
            private.set_call_site(self._sc, name)
            pumps = self._stage(source, PumpTask(hello, slots, run.secret, stage == last, run.tls))
            if stage == last:
                return EpochJob(pumps, tuple(shuffles))
            if stage == 0:
                pumps = private.union(self._sc, [pumps, *(self._stage(extra.rdd, extra.task) for extra in inputs)])
            source, shuffle = private.shuffle(self._sc, pumps, len(slots))
            shuffles.append(shuffle)
        raise AssertionError("unreachable: the last stage returns")

    def remove(self, job: EpochJob) -> None:
        """Removes what the job left on the executors' disks."""
        for shuffle in job.shuffles:
            private.remove_shuffle(self._sc, shuffle)

    def collect(self, job: EpochJob) -> list[bytes]:
        """Runs the job; the rows for the driver, without their destination."""
        return [row[DESTINATION.size :] for row in private.collect_bytes(self._sc, job.rows)]

    def _stage(self, source: private.ByteRdd, task: private.ByteTask) -> private.ByteRdd:
        return private.python_stage(self._sc, source, task, self._runtime)

    def _base(self, partitions: int) -> private.ByteRdd:
        if partitions not in self._bases:
            self._bases[partitions] = private.empty_partitions(self._sc, partitions)
        return self._bases[partitions]


def package_path() -> str | None:
    """The directory that a worker needs on its path to import the very rekindle that runs here.

    None when it is installed: on PYTHONPATH the interpreter's own site-packages would come before its standard library.
    """
    assert rekindle.__file__ is not None
    root = Path(rekindle.__file__).resolve().parents[1]
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    return None if root in installed else os.fspath(root)
