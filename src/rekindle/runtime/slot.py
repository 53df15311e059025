"""The slot process: hosts subtask i of every chain from its first `open()` to its last `close()`.

python -m rekindle.runtime.slot <job name> <slot index>      (started by a Spark task, never by hand)
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from rekindle import wire
from rekindle.checkpoint.paths import timeline_of
from rekindle.clock import SystemClock, WaitingClock
from rekindle.crash_points import CrashPoint, reach, this_is_slot
from rekindle.datastream.connectors.split_codec import decode_splits
from rekindle.errors import JobCancelledError
from rekindle.graph.nodes import JobPlan
from rekindle.graph.shipping import InstalledJob, install
from rekindle.metrics import MetricReading
from rekindle.protocol import (
    AddSplits,
    AssignedSplits,
    CancelTasks,
    CheckpointAborted,
    CheckpointCommitted,
    CheckpointCompleted,
    CheckpointDeclined,
    CheckpointOrder,
    Closed,
    CloseTasks,
    Committed,
    Deploy,
    Deployed,
    LogLine,
    Message,
    PumpHello,
    Ready,
    SinksCommitted,
    SlotHeartbeat,
    SlotHello,
    SlotLaunch,
    StageReport,
    decode_from_driver,
    decode_launch,
    encode,
)
from rekindle.runtime.build_chain import SlotServices
from rekindle.runtime.context import Accumulators, JobIdentity
from rekindle.runtime.exchange.chunk import read_header
from rekindle.runtime.failure_report import describe_failure, own_traceback, user_traceback
from rekindle.runtime.guardian import start_guardian
from rekindle.runtime.local_copies import LocalCopies
from rekindle.runtime.log_capture import forward_output
from rekindle.runtime.pump_server import PumpServer, StageAbortedError
from rekindle.runtime.recording.keep_recording import RecordingPlace
from rekindle.runtime.recording.recorded_task import RecordedTask
from rekindle.runtime.restored_slot import RestoredSlot
from rekindle.runtime.snapshot import SnapshotDeclinedError
from rekindle.runtime.snapshot_upload import Uploader
from rekindle.runtime.state.keyed_backends import KeyedBackends
from rekindle.runtime.task import EpochOutcome, Task
from rekindle.runtime.task_head import EpochBudget
from rekindle.runtime.task_thread import TaskThread
from rekindle.runtime.unpack_files import place_files
from rekindle.system import processor_s, resident_bytes

_LOG = logging.getLogger("rekindle.slot")
_CANCELLED_CLOSE_S = 10.0
# Records and state come in thousands and have no cycles: with Python's own thresholds (700, 10, 10) a slot spent a
# third of its time in the garbage collector. A function that needs other thresholds sets them in open().
_GC_THRESHOLDS = (50_000, 20, 10)


class Slot:
    """Hosts tasks by (chain, subtask) and their threads; the control connection and the pumps lead to them."""

    def __init__(self, launch: SlotLaunch, directory: str, clock: WaitingClock) -> None:
        self._launch = launch
        self._directory = directory
        self._clock = clock
        self._accumulators = Accumulators()
        self._threads: list[TaskThread] = []
        self._tasks_by_edge: dict[int, Task] = {}
        self._stages: dict[int, list[TaskThread]] = {}
        self._plan: JobPlan | None = None
        self._uploader: Uploader | None = None
        self._recordings: RecordingPlace | None = None
        self._copies = LocalCopies(Path(launch.copies.folder)) if launch.copies is not None else None
        self._ready_sent = threading.Event()
        self._failed = threading.Event()
        self._cancelled = False
        self._control = wire.connect_tcp(launch.driver_host, launch.driver_port, launch.secret, launch.tls)
        self._pumps = PumpServer(directory, launch.secret, launch.attempt, self, launch.loopback_only, launch.tls)

    # -- control ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Send hello, then carry out the driver's messages until it sends close or is gone."""
        self.send(self._hello())
        forward_output(self._send_log)
        threading.Thread(target=self._send_heartbeats, name="heartbeat", daemon=True).start()
        self._control.set_timeout(self._launch.heartbeat.timeout_s)
        while True:
            match decode_from_driver(self._control.receive()):
                case Deploy() as deploy:
                    threading.Thread(target=self._deploy, args=(deploy,), name="deploy", daemon=True).start()
                case AddSplits(added=added):
                    self._add_splits(added)
                case CheckpointCompleted() as completed:
                    self._notify_completed(completed)
                case CheckpointCommitted() as committed:
                    self._notify_sources(committed)
                case CheckpointAborted(id=checkpoint_id):
                    self._notify_aborted(checkpoint_id)
                case CancelTasks():
                    self._cancel()
                case CloseTasks():
                    self._close()
                    return

    def _hello(self) -> SlotHello:
        launch = self._launch
        return SlotHello(
            job_id=launch.job_id,
            attempt=launch.attempt,
            slot=launch.slot,
            pid=os.getpid(),
            host=self._control.local_address(),
            boot_id=wire.this_boot_id(),
            unix_path=self._pumps.unix_path,
            tcp_port=self._pumps.tcp_port,
        )

    def send(self, message: Message) -> None:
        """Send a message to the driver; exit if the driver is gone."""
        try:
            self._control.send(encode(message))
        except OSError:
            os._exit(1)

    def _send_log(self, line: LogLine) -> None:
        self.send(line)

    def _send_heartbeats(self) -> None:
        pause = threading.Event()
        self.send(SlotHeartbeat(resident_bytes(), processor_s()))
        while not self._clock.wait(pause, self._launch.heartbeat.interval_s):
            self.send(SlotHeartbeat(resident_bytes(), processor_s()))

    # -- life of the tasks --------------------------------------------------------------------------------------------

    def _deploy(self, deploy: Deploy) -> None:
        try:
            job = install(deploy.program, self._directory)
            if deploy.storage is not None:
                self._uploader = Uploader(
                    deploy.storage, self._launch.attempt, self.send, deploy.store_options, self._clock, self._copies
                )
            self._build(job, deploy)
        except BaseException as error:
            _LOG.exception("deployment failed")
            self._fail(None, error)
            return
        restored = self._restored(deploy)
        gc.collect()
        gc.set_threshold(*_GC_THRESHOLDS)
        gc.disable()  # a restore makes millions of objects that all stay
        opened = [
            (thread, thread.submit(partial(_start_task, thread.task, restored, deploy))) for thread in self._threads
        ]
        succeeded = [self._succeeded(thread.task, future) for thread, future in opened]  # waits for all tasks
        gc.freeze()
        gc.enable()
        if all(succeeded):
            restored.report()
            for thread in self._threads:
                thread.watch()
            self.send(Deployed())

    def _build(self, job: InstalledJob, deploy: Deploy) -> None:
        plan, launch = job.plan, self._launch
        timeline = timeline_of(deploy.storage.root) if deploy.storage is not None else ""
        self._backends = KeyedBackends(
            plan.settings.state_backend, self._directory, plan.keyed_operators_in(self._launch.slot)
        )
        services = SlotServices(
            attempt=self._launch.restarts,
            clock=self._clock,
            directory=self._directory,
            accumulators=self._accumulators,
            load_function=job.load_function,
            load_edge_function=job.load_edge_function,
            load_selector=job.load_selector,
            wake=self._send_ready,
            backends=self._backends,
            job=JobIdentity(launch.job_name, launch.job_id, timeline, launch.attempt, deploy.claimed_ms),
            cached_files=place_files(job.cached_files, self._directory),
        )
        build_task: type[Task] = Task
        if plan.settings.replay.records_input:
            build_task = RecordedTask
            store = self._uploader.store if self._uploader is not None else None
            root = deploy.storage.root if deploy.storage is not None else ""
            self._recordings = RecordingPlace(store, root, plan, services.job, services.attempt, deploy.program)
        for chain in plan.chains:
            for subtask in range(chain.parallelism):
                if plan.placement[chain.id, subtask] != self._launch.slot or not plan.has_tasks(chain):
                    continue
                thread = TaskThread(build_task(plan, chain, subtask, services), self._clock, self._send_ready)
                self._threads.append(thread)
                self._stages.setdefault(chain.stage, []).append(thread)
                for edge in plan.edges:
                    if edge.target == chain.head and edge.source not in chain.nodes:
                        self._tasks_by_edge[edge.id] = thread.task
        self._plan = plan

    def _add_splits(self, added: AssignedSplits) -> None:
        splits = decode_splits(added.splits)
        for thread in self._threads:
            if thread.task.subtask == added.subtask and thread.task.source_uid == added.uid:
                self._notify(thread, partial(thread.task.add_splits, splits))

    def _restored(self, deploy: Deploy) -> RestoredSlot:
        assert self._plan is not None
        return RestoredSlot(deploy, self._copies if self._plan.settings.local_recovery.restores else None)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def releasing(self, hello: PumpHello) -> Iterator[None]:
        """Queue the snapshots of the tasks that the barrier has reached; they run once the pump is released (I2).

        The snapshots are in the mailboxes before the pump is released, so that the next input cannot overtake them.
        """
        released = threading.Event()
        if hello.checkpoint is not None:
            for thread in self._stages.get(hello.stage, []):
                self._notify(thread, partial(self._snapshot_after, released, thread.task, hello.checkpoint))
        try:
            yield
        finally:
            released.set()

    def _snapshot_after(self, released: threading.Event, task: Task, order: CheckpointOrder) -> None:
        released.wait()
        self._snapshot(task, order)

    def _snapshot(self, task: Task, order: CheckpointOrder) -> None:
        assert self._uploader is not None, "a checkpoint without a place for it"
        if task.skip_if_aborted(order):
            return
        started = self._clock.monotonic()
        start_delay_ms = self._clock.wall_ms() - order.timestamp_ms
        try:
            snapshot = task.snapshot(order)
        except SnapshotDeclinedError as error:
            answer = error.full_message(), False, own_traceback(error.__cause__ or error)
            self.send(CheckpointDeclined(order.id, task.chain.id, task.subtask, *answer))
            return
        self._uploader.put(snapshot, float(start_delay_ms), (self._clock.monotonic() - started) * 1000)

    def _notify_completed(self, completed: CheckpointCompleted) -> None:
        if self._copies is not None:
            self._copies.completed(completed.id)
        for thread in self._threads:
            self._notify(thread, partial(self._commit, thread.task, completed))

    def _commit(self, task: Task, completed: CheckpointCompleted) -> None:
        reach(CrashPoint.BEFORE_COMMIT)
        task.notify_complete(completed.id, with_source=not completed.sources_wait)
        if completed.acknowledge:
            task.settle()
        reach(CrashPoint.AFTER_COMMIT)
        if completed.sources_wait and task.has_sink and task.has_committed(completed.id):
            self.send(SinksCommitted(completed.id, task.chain.id, task.subtask))
        if completed.acknowledge and not (completed.sources_wait and task.has_source):
            self.send(Committed(completed.id, task.chain.id, task.subtask))

    def _notify_sources(self, committed: CheckpointCommitted) -> None:
        for thread in self._threads:
            if thread.task.has_source:
                self._notify(thread, partial(self._notify_source, thread.task, committed))

    def _notify_source(self, task: Task, committed: CheckpointCommitted) -> None:
        task.notify_source_complete(committed.id)
        if committed.acknowledge:
            self.send(Committed(committed.id, task.chain.id, task.subtask))

    def _notify_aborted(self, checkpoint_id: int) -> None:
        if self._uploader is not None:
            self._uploader.aborted(checkpoint_id)
        if self._copies is not None:
            self._copies.aborted(checkpoint_id)
        for thread in self._threads:
            self._notify(thread, partial(thread.task.notify_aborted, checkpoint_id))

    def _notify(self, thread: TaskThread, call: Callable[[], None]) -> None:
        future = thread.submit(call)
        future.add_done_callback(lambda done: self._succeeded(thread.task, done))
        thread.watch()

    def _send_ready(self) -> None:
        if not self._ready_sent.is_set():
            self._ready_sent.set()
            self.send(Ready())

    def _cancel(self) -> None:
        self._cancelled = True
        for thread in self._threads:
            thread.task.cancel()

    def _close(self) -> None:
        """Close every function on its task's thread, report, and end.

        At the end of the input a close() may take any time; after a cancellation it may never return.
        """
        timeout_s = _CANCELLED_CLOSE_S if self._cancelled else None
        futures = [thread.submit(partial(_close_task, thread.task)) for thread in self._threads]
        errors: list[str] = []
        metrics: list[MetricReading] = []
        for thread, future in zip(self._threads, futures, strict=True):
            try:
                failed, said = future.result(timeout_s)
                metrics.extend(said)
                errors.extend(
                    f"{user_traceback(error).rstrip()}\n\nclose() of {name} failed." for name, error in failed
                )
            except TimeoutError:
                errors.append(f"{thread.task.name} did not end within {timeout_s:.0f} s: the slot ends without it.")
        if self._uploader is not None:
            self._uploader.close(_CANCELLED_CLOSE_S)
        sys.stdout.flush()
        sys.stderr.flush()
        self.send(Closed(self._accumulators.encode(), errors, metrics))

    # -- stages of epochs ---------------------------------------------------------------------------------------------

    def accept_chunk(self, chunk: bytes) -> None:
        """Put a chunk into the inbox of its task, until that task's stage."""
        header = read_header(chunk)
        self._tasks_by_edge[header.edge].receive(header, chunk)

    def run_stage(self, hello: PumpHello) -> Iterator[tuple[int, bytes]]:
        """Run this slot's tasks of a stage in parallel; report before the pump is released (I2)."""
        if hello.stage == 0:
            self._ready_sent.clear()
        threads = self._stages.get(hello.stage, [])
        leave_after_ms = hello.leave.left_ms(self._clock.wall_ms()) if hello.leave is not None else None
        limits = hello.max_records, hello.target_ms, hello.checkpoint, leave_after_ms
        budget = EpochBudget(*limits, hello.aligned, hello.backlogged, hello.source_stages)
        futures = [thread.submit(lambda task=thread.task: task.run_epoch(budget)) for thread in threads]  # type: ignore[misc]
        done = [self._succeeded(thread.task, future) for thread, future in zip(threads, futures, strict=True)]
        if not all(done):
            raise StageAbortedError
        outcomes: list[EpochOutcome] = [future.result() for future in futures]
        self._report(hello, outcomes)
        for thread in threads:
            yield from thread.task.outbox.drain()
            thread.watch()

    def _report(self, hello: PumpHello, outcomes: list[EpochOutcome]) -> None:
        self.send(
            StageReport(
                epoch=hello.epoch,
                stage=hello.stage,
                sent=[count for outcome in outcomes for count in outcome.sent],
                received=[count for outcome in outcomes for count in outcome.received],
                tasks=[outcome.report for outcome in outcomes],
                more=any(outcome.more for outcome in outcomes),
            )
        )

    def _succeeded(self, task: Task, future: Future[Any]) -> bool:
        error = future.exception()
        if error is not None and not isinstance(error, JobCancelledError):
            self._fail(task, error)
        return error is None

    def _fail(self, task: Task | None, error: BaseException) -> None:
        if not self._failed.is_set():
            self._failed.set()
            sys.stdout.flush()
            failed = describe_failure(task.name if task else "deployment", task, error)
            if self._recordings is not None and isinstance(task, RecordedTask):
                failed = self._recordings.keep(task, failed, self._clock.wall_ms())
            self.send(failed)


def _start_task(task: Task, restored: RestoredSlot, deploy: Deploy) -> None:
    """Start the task with its share and its splits; runs on the task's thread."""
    own = [each.splits for each in deploy.splits if (each.uid, each.subtask) == (task.source_uid, task.subtask)]
    splits = [split for data in own for split in decode_splits(data)]
    task.start(restored.share_of(task.subtask), deploy.restored_id, splits)


def _close_task(task: Task) -> tuple[list[tuple[str, BaseException]], list[MetricReading]]:
    """Close the task's functions and return their errors and last metrics; runs on the task's thread."""
    return task.close(), task.metrics.read()


def main() -> None:
    """Entry point of the slot process."""
    launch = decode_launch(sys.stdin.buffer.read())
    this_is_slot(launch.slot)
    sys.path[:0] = [path for path in launch.python_path if path not in sys.path]
    os.environ["python"] = sys.executable  # noqa: SIM112  # functions find it in PyFlink's workers, too
    directory = launch.directory
    start_guardian(launch, directory).watch()
    sys.setswitchinterval(0.001)
    slot = Slot(launch, directory, SystemClock())
    try:
        slot.run()
    except (OSError, ConnectionError):
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    # The user's program is installed as this process's `__main__`: names of the engine must not be in it.
    from rekindle.runtime.slot import main as run_slot

    run_slot()
