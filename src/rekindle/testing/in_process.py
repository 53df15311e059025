"""Runs a job's tasks in the test process: the same tasks, chunks and order as on Spark, without processes and threads.

A test runs epochs one by one, so that it decides where the cuts fall.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rekindle.checkpoint.paths import timeline_folder
from rekindle.checkpoint.recordings import Recording
from rekindle.checkpoint.rescale import stored_max_parallelism
from rekindle.checkpoint.store.port import Store
from rekindle.clock import Clock, SystemClock
from rekindle.coordinator.epoch_rules import lowest_of_each, lowest_source_stages
from rekindle.coordinator.source_splits import SplitDiscovery, StartingSplits, reader_sources
from rekindle.datastream.connectors.base import SourceSplit
from rekindle.datastream.connectors.split_codec import decode_splits
from rekindle.datastream.data_stream import DataStream
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import JobPlan
from rekindle.graph.shipping import CopiedJob
from rekindle.protocol import TO_DRIVER, AssignedSplits, CheckpointOrder, EdgeCount, TaskReport
from rekindle.runtime.build_chain import SlotServices
from rekindle.runtime.context import Accumulators, JobIdentity
from rekindle.runtime.exchange.chunk import decode_chunk, read_header
from rekindle.runtime.failure_report import describe_failure
from rekindle.runtime.recording.keep_recording import RecordingPlace
from rekindle.runtime.recording.recorded_task import RecordedTask
from rekindle.runtime.snapshot import CapturedTask, SnapshotDeclinedError
from rekindle.runtime.state.keyed_backends import KeyedBackends
from rekindle.runtime.task import Task
from rekindle.runtime.task_head import EpochBudget
from rekindle.serde import codec_for
from rekindle.testing.in_process_checkpoint import (
    JOB_ID,
    TIMELINE,
    InProcessCheckpoint,
    Lineage,
    RestorePoint,
    StoredCheckpoint,
)
from rekindle.testing.manual_clock import ManualClock

#: How long an epoch without work waits for the thread of a source or of an async function.
_IDLE_WAIT_S = 0.002


class InProcessJob:
    """A job with bounded sources that runs epoch by epoch in this process.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    >>> sorted(InProcessJob.of(env.from_collection([1, 2, 3]).map(lambda n: n * 2)).run())
    [2, 4, 6]

    The test chooses the epoch of a checkpoint. Another job continues from the checkpoint, at any parallelism:

    >>> def sums(parallelism):
    ...     env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    ...     return env.from_collection([1, 2, 3, 4]).key_by(lambda n: 0).reduce(lambda a, b: a + b)
    >>> job = InProcessJob.of(sums(1), max_records=3)
    >>> checkpoint = job.checkpoint()
    >>> checkpoint.results
    [1, 3, 6]
    >>> job.kill()
    >>> InProcessJob.of(sums(2), restore=checkpoint).run()
    [10]
    """

    @classmethod
    def of(
        cls,
        stream: DataStream,
        clock: Clock | None = None,
        max_records: int = 1_000_000,
        restore: InProcessCheckpoint | StoredCheckpoint | None = None,
    ) -> InProcessJob:
        """Build the job that `stream.execute_and_collect()` would run, from the start or from a checkpoint."""
        program = stream._env._program("test", stream._collect())
        stream._env.close()
        stored = stored_max_parallelism(restore.manifest) if restore is not None else {}
        return cls(build_plan(program, stored_max_parallelism=stored), clock, max_records, restore)

    def __init__(
        self,
        plan: JobPlan,
        clock: Clock | None = None,
        max_records: int = 1_000_000,
        restore: InProcessCheckpoint | StoredCheckpoint | None = None,
    ) -> None:
        """`max_records` is the most records that each subtask of a source emits in an epoch."""
        plan = _with_first_epoch_of(max_records, plan)
        basis = RestorePoint.of(restore, plan) if restore is not None else None
        self.plan = plan
        self.accumulators = Accumulators()
        self.sent: list[EdgeCount] = []
        self.received: list[EdgeCount] = []
        self._budget = EpochBudget(max_records, target_ms=60_000)
        self._woken = threading.Event()
        self._reports: list[TaskReport] = []  # of the tasks in the last epoch
        self._more = True
        #: The recorded input of the task that failed, if the program sets `rekindle.replay.record-input`.
        self.recording: Recording | None = None
        self._lineage = restore.lineage if restore is not None else Lineage()
        self._attempt = self._lineage.begin_attempt()
        self._base = basis.for_deltas(plan) if basis is not None else None
        self._directory = tempfile.TemporaryDirectory(prefix="rekindle-test-")
        code = CopiedJob(plan)
        self._services = SlotServices(
            attempt=self._attempt,
            clock=clock or ManualClock(),
            directory=self._directory.name,
            accumulators=self.accumulators,
            load_function=code.load_function,
            load_edge_function=code.load_edge_function,
            load_selector=code.load_selector,
            wake=self._woken.set,
            cached_files=plan.cached_files,
            backends=KeyedBackends(plan.settings.state_backend, self._directory.name, len(plan.subtasks)),
            job=JobIdentity(plan.job_name, JOB_ID, TIMELINE, self._attempt + 1, self._lineage.claim()),
        )
        build_task = RecordedTask if plan.settings.replay.records_input else Task
        self.tasks = {
            (chain, subtask): build_task(plan, plan.chains[chain], subtask, self._services)
            for chain, subtask in plan.subtasks
        }
        restored_id = basis.manifest.checkpoint_id if basis is not None else None
        splits = self._initial_splits(basis)
        for task in self.tasks.values():
            share = basis.restores.get(task.subtask) if basis is not None else None
            task.start(share, restored_id, splits.get((task.source_uid, task.subtask), ()))

    def _initial_splits(self, basis: RestorePoint | None) -> dict[tuple[str, int], list[SourceSplit]]:
        """Find the splits that the sources begin with, as the driver does, by uid and subtask."""
        shares = [share for each in basis.restores.values() for share in each.subtasks.values()] if basis else []
        restored = {share.uid for share in shares if share.has_source}
        created = StartingSplits(self.plan).assigned(restored)
        return {(each.uid, each.subtask): decode_splits(each.splits) for each in created}

    def discover_splits(self) -> None:
        """Let every source that discovers splits do so now, as the driver does from time to time."""
        discovery = SplitDiscovery(self.plan, self._add_splits, SystemClock())
        for node in reader_sources(self.plan):
            if node.function.discovery_interval_ms is not None:
                discovery.discover(node)

    def _add_splits(self, added: AssignedSplits) -> None:
        for task in self.tasks.values():
            if (task.source_uid, task.subtask) == (added.uid, added.subtask):
                task.add_splits(decode_splits(added.splits))

    @property
    def store(self) -> Store:
        """The store of the job's checkpoints."""
        return self._lineage.store

    @property
    def finished(self) -> bool:
        """Whether every task has ended."""
        return all(task.finished for task in self.tasks.values())

    @property
    def in_flight(self) -> int:
        """The number of records that wait in front of tasks that had no time for them."""
        return sum(task.records_in_flight() for task in self.tasks.values())

    def epoch(self, leave_after_ms: float | None = None) -> list[Any]:
        """Run one epoch and return the records that `execute_and_collect` would return.

        After `leave_after_ms` a task leaves the records that wait in front of it, as with unaligned checkpoints on
        Spark. While records are in flight, no source emits more.
        """
        if not self._more:
            self._woken.wait(_IDLE_WAIT_S)
        self._woken.clear()
        return self._epoch(self._next_budget(leave_after_ms), lambda task: None)

    def _next_budget(self, leave_after_ms: float | None) -> EpochBudget:
        most = 0 if self.in_flight else self._budget.max_records
        return replace(
            self._budget,
            max_records=most,
            leave_after_ms=leave_after_ms,
            aligned=lowest_of_each(report.aligned for report in self._reports),
            backlogged={self.plan.chains[report.chain].head for report in self._reports if report.backlog},
            source_stages=lowest_source_stages(self.plan, self._reports),
        )

    def _epoch(self, budget: EpochBudget, at_barrier: Callable[[Task], None]) -> list[Any]:
        collected: list[Any] = []
        self._more = False
        self._reports = []
        for stage in range(self.plan.stages):
            tasks = self._stage(stage)
            chunks = [chunk for task in tasks for chunk in self._run(task, budget)]
            for task in tasks:
                at_barrier(task)
            for destination, chunk in reversed(chunks):  # the order of arrival must not matter
                if destination == TO_DRIVER:
                    collected[:0] = self._collected(chunk)
                else:
                    self._deliver(destination, chunk)
        return collected

    def _collected(self, chunk: bytes) -> list[Any]:
        header = read_header(chunk)
        codec = codec_for(self.plan.nodes[header.edge].output_type)
        return decode_chunk(chunk, header, codec).records

    def run(self, until: Callable[[], bool] = lambda: False) -> list[Any]:
        """Run epochs to the end of the input (or `until`), close the functions, and return all collected records.

        If the program enables checkpoints, the final checkpoint follows the end of the input (I9).
        """
        collected: list[Any] = []
        while not self.finished and not until():
            collected.extend(self.epoch())
        if self.finished and self._checkpointed:
            collected.extend(self.checkpoint().results)
            for task in self._tail_to_head():
                task.settle()
        self.close()
        return collected

    # -- checkpoints --------------------------------------------------------------------------------------------------

    @property
    def _checkpointed(self) -> bool:
        return self.plan.settings.checkpointed

    def checkpoint(
        self,
        *,
        savepoint: bool = False,
        drain: bool = False,
        complete: bool = True,
        leave_after_ms: float | None = None,
    ) -> InProcessCheckpoint:
        """Run an epoch with a barrier, also when the input has ended; `results` holds the records that it collected.

        With `drain` the sources end at this barrier. Deltas are written if the program enables checkpointing, as on
        Spark. With `complete=False` the functions are not notified yet: call `complete()` or `abort()` after any number
        of further epochs. A job that is restored from such a checkpoint shows what happens when the driver dies between
        publishing a checkpoint and notifying. If a task declines its snapshot, the checkpoint is aborted at once, and
        the epoch counts all the same (I19).
        """
        incremental = self._checkpointed and self.plan.settings.checkpoints.incremental
        base = self._base if incremental and not savepoint else None
        base_id = base.checkpoint_id if base is not None else None
        now_ms = self._services.clock.wall_ms()
        order = CheckpointOrder(self._lineage.next_id(), now_ms, base_id, savepoint, drain=drain)
        snapshots: list[CapturedTask] = []
        declined: list[SnapshotDeclinedError] = []

        def snapshot(task: Task) -> None:
            try:
                snapshots.append(task.snapshot(order))
            except SnapshotDeclinedError as error:
                declined.append(error)

        results = self._epoch(replace(self._next_budget(leave_after_ms), checkpoint=order), snapshot)
        taken = InProcessCheckpoint(order.id, results, self._lineage, self.plan, order, self._attempt, base, snapshots)
        if declined:
            taken.declined = declined[0]
            self.abort(taken)
        elif complete:
            self.complete(taken)
        return taken

    def complete(self, checkpoint: InProcessCheckpoint) -> None:
        """Publish a checkpoint and notify every function, from tail to head; a savepoint notifies none (I17)."""
        manifest = checkpoint.manifest
        if checkpoint.order.savepoint:
            return
        if self._base is None or self._base.checkpoint_id < checkpoint.id:
            self._base = manifest
        for task in self._tail_to_head():
            task.notify_complete(checkpoint.id)

    def abort(self, checkpoint: InProcessCheckpoint) -> None:
        """Abort a checkpoint that was not completed, and notify every function, from tail to head."""
        checkpoint.aborted = True
        for snapshot in checkpoint.snapshots:
            snapshot.cancel()
        for task in self._tail_to_head():
            task.notify_aborted(checkpoint.id)

    def _tail_to_head(self) -> list[Task]:
        return sorted(self.tasks.values(), key=lambda task: -task.chain.stage)

    # -- the end ------------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the job as a killed process ends: no function is finished, closed or notified."""
        for task in self.tasks.values():
            task.cancel()
        self._services.backends.close()
        self._directory.cleanup()

    def close(self) -> list[tuple[str, BaseException]]:
        """Close every function; return the errors by subtask."""
        errors = [error for task in self.tasks.values() for error in task.close()]
        self._services.backends.close()
        self._directory.cleanup()
        return errors

    def _stage(self, stage: int) -> list[Task]:
        return [task for task in self.tasks.values() if task.chain.stage == stage]

    def _run(self, task: Task, budget: EpochBudget) -> Iterator[tuple[int, bytes]]:
        try:
            outcome = task.run_epoch(budget)
        except Exception as error:
            self._keep_recording(task, error)
            raise
        self.sent.extend(outcome.sent)
        self.received.extend(outcome.received)
        self._more = self._more or outcome.more
        self._reports.append(outcome.report)
        return task.outbox.drain()

    def _keep_recording(self, task: Task, error: BaseException) -> None:
        if isinstance(task, RecordedTask):
            store, root = self._lineage.store, timeline_folder(self.plan.job_name, TIMELINE)
            place = RecordingPlace(store, root, self.plan, self._services.job, self._attempt, b"")
            self.recording = place.recording(task, describe_failure(task.name, task, error), self._now_ms())

    def _now_ms(self) -> int:
        return self._services.clock.wall_ms()

    def _deliver(self, slot: int, chunk: bytes) -> None:
        header = read_header(chunk)
        edge = self.plan.edges[header.edge]
        chain = self.plan.chain_of(edge.target)
        assert self.plan.placement[chain.id, header.target] == slot, "a chunk went to the wrong slot"
        self.tasks[chain.id, header.target].receive(header, chunk)


def _with_first_epoch_of(records: int, plan: JobPlan) -> JobPlan:
    epochs = replace(plan.settings.epochs, initial_records=records)
    return replace(plan, settings=replace(plan.settings, epochs=epochs))
