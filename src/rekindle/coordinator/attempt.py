"""One execution attempt: slots up, functions open, epochs until the input ends, functions closed, slots gone."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

import msgspec

from rekindle.common.accumulators import merge_encoded
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.cluster import Cluster, EpochRun, SlotAddress
from rekindle.coordinator.control import ControlIdentity, ControlServer
from rekindle.coordinator.epochs import EpochLimits, EpochSummary, Pace, finished_tasks, summarised
from rekindle.coordinator.failure_messages import close_failed, slot_lost
from rekindle.coordinator.slot_inbox import SlotInbox
from rekindle.errors import ClusterError, JobCancelledError
from rekindle.graph.nodes import JobPlan
from rekindle.metrics import MetricReading
from rekindle.protocol import (
    CancelTasks,
    CheckpointOrder,
    CloseTasks,
    Deploy,
    EpochTime,
    SlotLaunch,
)
from rekindle.wire import TlsFiles

_LOG = logging.getLogger("rekindle.job")
#: How long to wait, after Spark reported a failure, for the slot's own word about the cause.
_EXPLANATION_S = 2.0
_FAILED_CLOSE_S = 3.0
#: A checkpoint that is overdue waits for the one before it for so much of an interval, after an epoch this long.
_LONG_EPOCH = 0.75
_WAIT_FOR_COMPLETION = 0.25
_NEVER = 0.0  # as a timeout, in Flink's settings too
_encode_restore = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True)
class AttemptSettings:
    """Times and limits of an attempt."""

    limits: EpochLimits
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    slot_start_timeout_s: float
    cancellation_timeout_s: float
    loopback_only: bool
    restarts: int = field(default=0, kw_only=True)
    python_path: tuple[str, ...]
    #: Of an epoch: what waits in front of a task after it stays there and goes into checkpoints; None: nothing does.
    leave_after_ms: float | None = field(default=None, kw_only=True)
    #: With which connections over TCP are encrypted.
    tls: TlsFiles | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class EpochWork:
    """What an epoch is run for: what the sources have, and perhaps a checkpoint's barrier at its end."""

    order: CheckpointOrder | None


@dataclass(frozen=True)
class LastEpoch:
    """When an epoch began (monotonic seconds), and how long it took."""

    started: float
    duration_ms: float


@dataclass
class PartitionedInput:
    """A DataFrame source's position: the partitions that are not read yet (I10)."""

    node: int
    remaining: list[int]

    def take(self, count: int) -> tuple[int, ...]:
        """The next partitions, whole."""
        taken, self.remaining = self.remaining[:count], self.remaining[count:]
        return tuple(taken)


class Observer(Protocol):
    """Hears what happens; must not block."""

    def on_started(self) -> None: ...
    def on_epoch(self, summary: EpochSummary) -> None: ...
    def on_ended(self) -> None: ...


class Receiver(Protocol):
    """Takes what goes to the driver; must not block."""

    def deliver(self, rows: list[bytes]) -> None: ...

    def has_room(self) -> bool:
        """Whether more is welcome: while it is not, no epoch begins that nobody has asked for."""


class Attempt:
    """Runs a plan once on a cluster."""

    def __init__(
        self,
        plan: JobPlan,
        checkpointing: CheckpointDriver,
        program: bytes,
        cluster: Cluster,
        settings: AttemptSettings,
        observer: Observer,
        receiver: Receiver,
    ) -> None:
        self._plan = plan
        self._checkpointing = checkpointing
        self._basis = checkpointing.begin_attempt()
        self._number = self._basis.attempt
        self._program = program
        self._cluster = cluster
        self._settings = settings
        self._observer = observer
        self._receiver = receiver
        self._inbox = SlotInbox(plan.job_name, self._cancel_epoch)
        self._identity = ControlIdentity(checkpointing.job_id, self._number, plan.slots, os.urandom(32), settings.tls)
        self._stage_names = tuple(
            ", ".join(chain.name for chain in plan.chains if chain.stage == stage) for stage in range(plan.stages)
        )
        self._host = cluster.driver_host()
        self._server = ControlServer(
            self._host,
            self._identity,
            self._inbox.on_message,
            self._inbox.on_gone,
            (settings.heartbeat_interval_ms, settings.heartbeat_timeout_ms),
        )
        self._unfinished = set(plan.subtasks)
        self._dataframes: list[PartitionedInput] = []
        self._input_ended = False
        self._in_flight = 0  # records that the last epoch left in front of slow tasks
        # Epochs run on a thread of their own, so that this one can abort a checkpoint whose time is over (I22).
        self._epoch_thread = ThreadPoolExecutor(1, "rekindle-epoch")
        self._canceller: threading.Thread | None = None
        self.accumulators: dict[str, Any] = {}
        #: What metrics said at the end.
        self.last_metrics: list[MetricReading] = []

    # -- the whole run ------------------------------------------------------------------------------------------------

    def run(self, dataframes: list[PartitionedInput]) -> None:
        """Run to the end of the input. Raises the cause of a failure, or JobCancelledError."""
        self._dataframes = dataframes
        try:
            for each in dataframes:
                unread = self._checkpointing.unread_partitions(each.node)
                each.remaining = each.remaining if unread is None else unread
            self._start_slots()
            _LOG.info("Attempt %d: %d slots are up.", self._number, self._plan.slots)
            self._deploy()
            _LOG.info("Attempt %d: state is restored, functions are open.", self._number)
            self._checkpointing.started(self._server.broadcast)
            self._observer.on_started()
            self._run_epochs()
            self._close_tasks(_NEVER, give_up=lambda: self._inbox.cancelled)  # a sink's last flush may take long
            self._check_closed()
        except BaseException as error:
            why = "is cancelled" if self._inbox.cancelled else "has failed"
            _LOG.info("Attempt %d %s and shuts down.", self._number, why)
            self._shut_down_after(error)
            raise
        finally:
            self._epoch_thread.shutdown()
            self._server.close()
            if self._canceller is not None:
                self._canceller.join()  # it must not stop what the next attempt starts

    def cancel(self) -> None:
        """Ask the attempt to end; safe from any thread."""
        self._inbox.cancel()
        self._server.broadcast(CancelTasks())
        self._cluster.cancel_epoch()

    def wake(self) -> None:
        """Somebody has asked for a checkpoint; safe from any thread."""
        self._inbox.wake()

    def _start_slots(self) -> None:
        settings, identity = self._settings, self._identity
        launches = [
            SlotLaunch(
                job_id=identity.job_id,
                job_name=self._plan.job_name,
                attempt=self._number,
                slot=slot,
                slots=self._plan.slots,
                driver_host=self._host,
                driver_port=self._server.port,
                secret=identity.secret,
                heartbeat_interval_ms=settings.heartbeat_interval_ms,
                heartbeat_timeout_ms=settings.heartbeat_timeout_ms,
                python_path=list(settings.python_path),
                loopback_only=settings.loopback_only,
                restarts=settings.restarts,
                tls=settings.tls,
            )
            for slot in range(self._plan.slots)
        ]
        try:
            self._cluster.start_slots(launches)
        except JobCancelledError:
            self._inbox.check()  # a slot's failure stops the start of the others: it has priority
            raise
        self._inbox.wait(
            lambda: len(self._inbox.hellos) == self._plan.slots,
            settings.slot_start_timeout_s,
            self._who_did_not_report,
        )

    def _who_did_not_report(self) -> str:
        missing = sorted(set(range(self._plan.slots)) - set(self._inbox.hellos))
        trouble = self._server.trouble
        return f"slots {missing} did not report" + (f": {trouble}" if trouble is not None else "")

    def _deploy(self) -> None:
        basis = self._basis
        placed = self._restores_by_slot()
        for slot in range(self._plan.slots):
            restores = placed.get(slot, [])
            self._server.send(
                slot,
                Deploy(
                    self._program,
                    basis.storage,
                    basis.restored_id,
                    basis.restore_url,
                    basis.restore_root,
                    restores,
                    basis.store_options,
                ),
            )
        self._inbox.wait(
            lambda: len(self._inbox.deployed) == self._plan.slots,
            None,
            lambda: "",
        )

    def _restores_by_slot(self) -> dict[int, list[bytes]]:
        chain_of = {self._plan.nodes[node].uid: chain for chain in self._plan.chains for node in chain.nodes}
        placed: dict[int, list[bytes]] = {}
        for restore in self._basis.restores:
            slot = self._plan.placement[chain_of[restore.uid].id, restore.subtask]
            placed.setdefault(slot, []).append(_encode_restore(restore))
        return placed

    def _cancel_epoch(self) -> None:
        """A running Spark job need not go on; called from a reader's thread."""
        self._canceller = threading.Thread(target=self._cluster.cancel_epoch, name="cancel epoch", daemon=True)
        self._canceller.start()

    # -- epochs -------------------------------------------------------------------------------------------------------

    def _run_epochs(self) -> None:
        pace = Pace.start(self._settings.limits)
        backlog = True
        last = LastEpoch(monotonic() - 3600, 0.0)
        while (work := self._await_work(pace, backlog, last)) is not None:
            started = monotonic()
            run = self._next_run(work, pace)
            rows = self._run_epoch(run)
            last = LastEpoch(started, (monotonic() - started) * 1000)
            summary = self._conclude(run, last.duration_ms)
            if rows:
                self._receiver.deliver(rows)
            self._observer.on_epoch(summary)
            self._coordinate(work)
            backlog = bool(self._unfinished) and (summary.more or any(each.remaining for each in self._dataframes))
            pulled, self._in_flight = run.max_records > 0, summary.in_flight
            capped = summary.more and pulled
            pace = pace.after(last.duration_ms, summary.work_ms, capped, left_over=pulled and summary.in_flight > 0)

    def _coordinate(self, work: EpochWork) -> None:
        """After an epoch that counted: its cut stands, and perhaps the input has ended."""
        if work.order is not None:
            self._checkpointing.cut_stands(work.order, self._unread())
        if not self._unfinished and not self._input_ended:
            self._input_ended = True
            self._checkpointing.input_ended()

    def _unread(self) -> dict[int, list[int]]:
        return {each.node: each.remaining for each in self._dataframes}

    def _next_run(self, work: EpochWork, pace: Pace) -> EpochRun:
        return EpochRun(
            job_id=self._identity.job_id,
            job_name=self._plan.job_name,
            attempt=self._number,
            epoch=self._inbox.next_epoch(),
            stage_names=self._stage_names,
            slots=self._addresses(),
            secret=self._identity.secret,
            tls=self._identity.tls,
            max_records=0 if self._in_flight else pace.max_records,  # what is in flight comes first
            target_ms=self._settings.limits.target_ms,
            checkpoint=work.order,
            leave=self._epoch_time(work),
            dataframe_partitions=tuple(
                (each.node, each.take(self._plan.slots))
                for each in self._dataframes
                if each.remaining and not self._in_flight
            ),
        )

    def _epoch_time(self, work: EpochWork) -> EpochTime | None:
        """When tasks leave what waits in front of them: never for a savepoint, nor without unaligned checkpoints."""
        leave_after_ms = self._settings.leave_after_ms
        if leave_after_ms is None or (work.order is not None and work.order.savepoint):
            return None
        return EpochTime(self._checkpointing.clock.wall_ms(), leave_after_ms)

    def _await_work(self, pace: Pace, backlog: bool, last: LastEpoch) -> EpochWork | None:
        """What the next epoch is for, when one is worth running; None when the job has ended.

        No Spark job runs while there is nothing to do and no checkpoint is due, or while the results wait for their
        reader, unless somebody asks for a checkpoint or savepoint.
        """
        voices, checkpointing = self._inbox, self._checkpointing
        while True:
            self._hear_words()
            checkpointing.take_requests()
            if checkpointing.ended:
                return None
            room = self._receiver.has_room()
            checkpointing.hold_back(not room)
            order = checkpointing.next_order(self._unread())
            if order is not None:
                return EpochWork(order)
            with voices.changed:
                self._inbox.check()
                if not room and self._receiver.has_room():
                    continue  # the reader was faster than we
                wanted = room and (backlog or voices.ready) and not checkpointing.ledger.holds_input
                pause_ms = self._pause_ms(pace, backlog, last) if wanted else None
                if pause_ms == 0.0:
                    return EpochWork(None)
                if not voices.words and not checkpointing.requests.has_requests:
                    waits = [wait for wait in (pause_ms, checkpointing.wait_ms()) if wait is not None]
                    voices.changed.wait(min(waits) / 1000 if waits else None)

    def _pause_ms(self, pace: Pace, backlog: bool, last: LastEpoch) -> float:
        """How long to wait before the next epoch.

        When epochs are long because functions are slow, the next one would begin before the last checkpoint is
        complete, and the next barrier would be another epoch away: a moment's patience saves that (I22).
        """
        since_start_ms = (monotonic() - last.started) * 1000
        pause_ms = pace.pause_ms(since_start_ms, backlog)
        interval_ms = self._checkpointing.ledger.policy.interval_ms
        if last.duration_ms > _LONG_EPOCH * interval_ms and self._checkpointing.waits_for_completion():
            since_end_ms = since_start_ms - last.duration_ms
            pause_ms = max(pause_ms, _WAIT_FOR_COMPLETION * interval_ms - since_end_ms)
        return pause_ms

    def _hear_words(self) -> None:
        """What slots said about checkpoints meanwhile."""
        for word in self._inbox.take_words():
            self._checkpointing.on_message(word)

    def _run_epoch(self, run: EpochRun) -> list[bytes]:
        try:
            rows = self._attend(self._epoch_thread.submit(self._cluster.run_epoch, run), run)
        except JobCancelledError:
            self._inbox.check()  # a slot's failure cancels the Spark job too: it has priority
            raise
        except ClusterError as error:
            self._explain(error)
            raise
        self._inbox.check()
        return rows

    def _attend(self, epoch: Future[list[bytes]], run: EpochRun) -> list[bytes]:
        """Coordinate checkpoints while an epoch runs: what takes too long is aborted whatever the tasks do (I22).

        An epoch with a barrier names the checkpoint that its deltas stand on: until it is over no other checkpoint
        completes (I12), and one that may be complete by what slots have said meanwhile does not expire.
        """
        voices, checkpointing = self._inbox, self._checkpointing
        epoch.add_done_callback(lambda _: voices.wake())
        while not epoch.done():
            if run.checkpoint is None:
                self._hear_words()
            unheard = voices.words_about() - ({run.checkpoint.id} if run.checkpoint is not None else set())
            checkpointing.expire(unheard)
            with voices.changed:
                if not epoch.done() and (run.checkpoint is not None or not voices.words):
                    wait_ms = checkpointing.expires_in_ms(unheard)
                    voices.changed.wait(None if wait_ms is None else wait_ms / 1000)
        return epoch.result()

    def _explain(self, error: ClusterError) -> None:
        """Spark says that the job failed; the slot's own word, if it comes, is the better story."""
        try:
            self._inbox.wait(lambda: False, _EXPLANATION_S, str)
        except ClusterError as better:
            if better is self._inbox.failure:
                raise better from error

    def _conclude(self, run: EpochRun, duration_ms: float) -> EpochSummary:
        """The epoch counts only if every slot reported every stage, the counts balance and all are alive (I3)."""
        voices, plan = self._inbox, self._plan
        expected = plan.slots * plan.stages
        self._inbox.wait(
            lambda: len(voices.reports) == expected,
            self._settings.heartbeat_timeout_ms / 1000,
            lambda: f"only {len(voices.reports)} of {expected} stage reports of epoch {run.epoch} had come",
        )
        missing = set(range(plan.slots)) - self._server.alive()
        if missing:
            gone = ClusterError(f"Epoch {run.epoch} does not count: slots {sorted(missing)} were gone at its end.")
            self._explain(gone)
            raise gone
        reports = list(voices.reports.values())
        summary = summarised(plan, run.epoch, duration_ms, reports)
        self._unfinished -= finished_tasks(reports)
        return summary

    def _addresses(self) -> tuple[SlotAddress, ...]:
        hellos = self._inbox.hellos
        return tuple(
            SlotAddress(hellos[slot].host, hellos[slot].boot_id, hellos[slot].unix_path, hellos[slot].tcp_port)
            for slot in range(self._plan.slots)
        )

    # -- the end ------------------------------------------------------------------------------------------------------

    def _close_tasks(self, timeout_s: float, give_up: Callable[[], bool] = lambda: False) -> None:
        voices = self._inbox
        with voices.changed:
            voices.closing = True
        self._server.broadcast(CloseTasks())
        deadline = monotonic() + (math.inf if timeout_s == _NEVER else timeout_s)
        with voices.changed:
            while len(voices.closed) < len(voices.hellos) and voices.failure is None and not give_up():
                left = deadline - monotonic()
                if left <= 0 or not (self._server.connected() - set(voices.closed)):
                    break
                voices.changed.wait(min(left, 0.2))
        self.accumulators = dict(merge_encoded(closed.accumulators for closed in voices.closed.values()))
        self.last_metrics = [reading for closed in voices.closed.values() for reading in closed.metrics]

    def _check_closed(self) -> None:
        """What a sink held back until its close() is lost when that failed or did not come: that is no success."""
        self._inbox.check()
        if errors := self._close_errors():
            raise close_failed(self._plan.job_name, errors)
        hellos = self._inbox.hellos
        for slot in sorted(hellos.keys() - self._inbox.closed.keys()):
            raise slot_lost(self._plan.job_name, slot, hellos[slot], "it ended before its functions were closed")

    def _close_errors(self) -> list[str]:
        return [error for _, closed in sorted(self._inbox.closed.items()) for error in closed.errors]

    def _shut_down_after(self, error: BaseException) -> None:
        """After a failure: let functions close if they can; what does not end in time dies with its lifeline."""
        if self._inbox.closing:
            return  # it failed at its end: everyone has been asked to close
        cancelled = isinstance(error, JobCancelledError)
        self._cluster.cancel_epoch()
        self._server.broadcast(CancelTasks())
        timeout_s = self._settings.cancellation_timeout_s if cancelled else _FAILED_CLOSE_S
        with self._inbox.changed:
            self._inbox.failure = None
        self._close_tasks(timeout_s)
        for complaint in self._close_errors():
            _LOG.warning("%s", complaint)
