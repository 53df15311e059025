"""Builds one epoch as RDDs: the pumps of each stage of the plan, and Spark's shuffle between the stages.

This is the only module that knows how chunks travel through Spark.
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
from rekindle.spark import internals
from rekindle.spark.pump import PumpTask


@dataclass(frozen=True)
class StageInput:
    """Extra tasks of the first stage (I10): `task` over a partition of `rdd` yields packed keys and chunks in turn."""

    rdd: internals.ByteRdd
    task: internals.ByteTask


@dataclass(frozen=True)
class EpochJob:
    """The job to run, and the shuffles to remove when it is over."""

    chunks: internals.ByteRdd
    shuffles: tuple[int, ...]


class Exchange:
    """Builds epochs on one session; the parts that all epochs share are made once."""

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._runtime = internals.python_runtime(sc, package_path())
        self._bases: dict[int, internals.ByteRdd] = {}

    def build(self, run: EpochRun, inputs: Sequence[StageInput] = ()) -> EpochJob:
        """Build the RDDs of one epoch without running them. Leaves the call site set to the last stage's name."""
        assert run.stage_names, "an epoch has at least one stage"
        assert not inputs or len(run.stage_names) > 1, "rows of a DataFrame need an exchange on their way to a slot"
        slots = tuple((slot.host, slot.boot_id, slot.unix_path, slot.tcp_port) for slot in run.slots)
        last = len(run.stage_names) - 1
        source = self._base(len(slots))
        shuffles: list[int] = []
        for stage, name in enumerate(run.stage_names):
            limits = run.max_records, run.target_ms, run.checkpoint, run.leave
            others = dict(run.aligned), list(run.backlogged), dict(run.source_stages)
            hello = PumpHello(run.attempt, run.epoch, stage, *limits, *others)
            internals.set_call_site(self._sc, name)
            pumps = self._stage(source, PumpTask(hello, slots, run.secret, stage == last, run.tls))
            if stage == last:
                return EpochJob(pumps, tuple(shuffles))
            if stage == 0:
                pumps = internals.union(self._sc, [pumps, *(self._stage(extra.rdd, extra.task) for extra in inputs)])
            source, shuffle = internals.shuffle(self._sc, pumps, len(slots))
            shuffles.append(shuffle)
        raise AssertionError("unreachable: the last stage returns")

    def remove(self, job: EpochJob) -> None:
        """Remove the job's shuffle files on the executors' disks."""
        for shuffle in job.shuffles:
            internals.remove_shuffle(self._sc, shuffle)

    def collect(self, job: EpochJob) -> list[bytes]:
        """Run the job; returns the chunks for the driver, without their destination."""
        return [chunk[DESTINATION.size :] for chunk in internals.collect_bytes(self._sc, job.chunks)]

    def _stage(self, source: internals.ByteRdd, task: internals.ByteTask) -> internals.ByteRdd:
        return internals.python_stage(self._sc, source, task, self._runtime)

    def _base(self, partitions: int) -> internals.ByteRdd:
        if partitions not in self._bases:
            self._bases[partitions] = internals.empty_partitions(self._sc, partitions)
        return self._bases[partitions]


def package_path() -> str | None:
    """The directory that a worker needs on its path to import the same rekindle as this process.

    None when rekindle is installed: on PYTHONPATH, site-packages would come before the standard library.
    """
    assert rekindle.__file__ is not None
    root = Path(rekindle.__file__).resolve().parents[1]
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    return None if root in installed else os.fspath(root)
