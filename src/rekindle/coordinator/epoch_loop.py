"""The epoch loop of an attempt: waits for work, runs an epoch, checks its reports, and repeats until the job ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from rekindle.coordinator.attempt_spec import AttemptSpec, PartitionedInput
from rekindle.coordinator.cluster import EpochRun, SlotAddress
from rekindle.coordinator.control import ControlIdentity
from rekindle.coordinator.epoch_rules import EpochSummary, Pace, finished_tasks, summarised
from rekindle.coordinator.job_events import EpochCounted
from rekindle.coordinator.slot_inbox import SlotInbox
from rekindle.errors import ClusterError, JobCancelledError
from rekindle.protocol import CheckpointOrder, EpochTime

#: How long to wait for a slot's own error after Spark reported a failure.
_SLOT_ERROR_S = 2.0
#: After an epoch that took this part of a checkpoint interval, the next one waits for the pending checkpoint to
#: complete, at most this part of an interval.
_LONG_EPOCH = 0.75
_WAIT_FOR_COMPLETION = 0.25


@dataclass(frozen=True)
class ConnectedSlots:
    """The slots of an attempt, all of them connected."""

    identity: ControlIdentity
    addresses: tuple[SlotAddress, ...]
    inbox: SlotInbox
    #: The slots whose control connection is open at this moment.
    alive: Callable[[], set[int]]


@dataclass(frozen=True)
class EpochWork:
    """The reason to run an epoch: input or, with an order, also a checkpoint's barrier at its end."""

    order: CheckpointOrder | None


@dataclass(frozen=True)
class LastEpoch:
    """The start of an epoch (monotonic seconds) and its duration."""

    started: float
    duration_ms: float


class EpochLoop:
    """Runs the epochs of an attempt.

    Epochs run on `epoch_thread`, so that the attempt's thread can abort a checkpoint at its timeout (I22).
    """

    def __init__(
        self,
        spec: AttemptSpec,
        slots: ConnectedSlots,
        epoch_thread: Executor,
        dataframes: Sequence[PartitionedInput] = (),
    ) -> None:
        self._spec = spec
        self._plan = spec.plan
        self._clock = spec.clock
        self._checkpointing = spec.checkpointing
        self._slots = slots
        self._inbox = slots.inbox
        self._epoch_thread = epoch_thread
        self._dataframes = dataframes
        self._stage_names = tuple(
            ", ".join(chain.name for chain in self._plan.chains if chain.stage == stage)
            for stage in range(self._plan.stages)
        )
        self._unfinished = set(self._plan.subtasks)
        self._input_ended = False
        self._aligned: Mapping[str, int] = {}  # the lowest watermark of each alignment group
        self._source_stages: Mapping[int, int] = {}  # the stage that all readers of a source have reached, by its node
        self._backlogged: frozenset[int] = frozenset()  # heads of chains that had input left after the last epoch
        self._in_flight = 0  # records that the last epoch left in front of slow tasks

    def run(self) -> None:
        """Run epochs until the job has ended. Raises the cause of a failure, or JobCancelledError."""
        pace = Pace.start(self._plan.settings.epochs)
        backlog = True
        last = LastEpoch(self._clock.monotonic() - 3600, 0.0)
        while (work := self.await_work(pace, backlog, last)) is not None:
            started = self._clock.monotonic()
            run = self._next_run(work, pace)
            chunks = self._run_epoch(run)
            last = LastEpoch(started, (self._clock.monotonic() - started) * 1000)
            summary = self._conclude(run, last.duration_ms)
            if chunks:
                self._spec.receiver.deliver(chunks)
            self._spec.events.emit(EpochCounted(summary))
            self._update_checkpoints(work)
            # Sources that wait for others may go on.
            caught_up = summary.aligned != self._aligned or summary.source_stages != self._source_stages
            self._aligned, self._source_stages = summary.aligned, summary.source_stages
            self._backlogged = summary.backlogged
            more = summary.more or caught_up or any(each.remaining for each in self._dataframes)
            backlog = bool(self._unfinished) and more
            pulled, self._in_flight = run.max_records > 0, summary.in_flight
            capped = summary.more and pulled
            pace = pace.after(last.duration_ms, summary.work_ms, capped, left_over=pulled and summary.in_flight > 0)

    # -- before an epoch ----------------------------------------------------------------------------------------------

    def await_work(self, pace: Pace, backlog: bool, last: LastEpoch) -> EpochWork | None:
        """Wait until an epoch is worth running. Returns its reason, or None when the job has ended.

        No Spark job runs while there is no input and no checkpoint is due, or while the results wait for their reader,
        unless a user requests a checkpoint or savepoint.
        """
        inbox, checkpointing = self._inbox, self._checkpointing
        while True:
            seen = inbox.changes()  # before anything is looked at: no later change is missed
            self._handle_checkpoint_messages()
            checkpointing.take_requests()
            if checkpointing.ended:
                return None
            room = self._spec.receiver.has_room()
            checkpointing.hold_back(not room)
            order = checkpointing.next_order(self._unread())
            if order is not None:
                return EpochWork(order)
            inbox.check()
            wanted = room and (backlog or inbox.ready) and not checkpointing.holds_input
            pause_ms = self._pause_ms(pace, backlog, last) if wanted else None
            if pause_ms == 0.0:
                return EpochWork(None)
            waits = [wait for wait in (pause_ms, checkpointing.wait_ms()) if wait is not None]
            inbox.wait_for_change(seen, min(waits) / 1000 if waits else None)

    def _pause_ms(self, pace: Pace, backlog: bool, last: LastEpoch) -> float:
        """How long to wait before the next epoch.

        When epochs are long because functions are slow, the next one would begin before the pending checkpoint is
        complete, and the next barrier would be another epoch away: a short wait saves that (I22).
        """
        since_start_ms = (self._clock.monotonic() - last.started) * 1000
        pause_ms = pace.pause_ms(since_start_ms, backlog)
        interval_ms = self._checkpointing.interval_ms
        if last.duration_ms > _LONG_EPOCH * interval_ms and self._checkpointing.waits_for_completion():
            since_end_ms = since_start_ms - last.duration_ms
            pause_ms = max(pause_ms, _WAIT_FOR_COMPLETION * interval_ms - since_end_ms)
        return pause_ms

    def _next_run(self, work: EpochWork, pace: Pace) -> EpochRun:
        identity = self._slots.identity
        return EpochRun(
            job_id=identity.job_id,
            job_name=self._plan.job_name,
            attempt=identity.attempt,
            epoch=self._inbox.next_epoch(),
            stage_names=self._stage_names,
            slots=self._slots.addresses,
            secret=identity.secret,
            tls=identity.tls,
            max_records=0 if self._in_flight else pace.max_records,  # records in flight come first
            target_ms=self._plan.settings.epochs.target_ms,
            checkpoint=work.order,
            leave=self._epoch_time(work),
            aligned=self._aligned,
            source_stages=self._source_stages,
            backlogged=(*self._backlogged, *(each.node for each in self._dataframes if each.remaining)),
            dataframe_partitions=tuple(
                (each.node, each.take(self._plan.slots))
                for each in self._dataframes
                if each.remaining and not self._in_flight
            ),
        )

    def _epoch_time(self, work: EpochWork) -> EpochTime | None:
        """When tasks leave records in flight: never for a savepoint, nor without unaligned checkpoints."""
        leave_after_ms = self._plan.settings.epochs.leave_after_ms
        if leave_after_ms is None or (work.order is not None and work.order.savepoint):
            return None
        return EpochTime(self._clock.wall_ms(), leave_after_ms)

    # -- during an epoch ----------------------------------------------------------------------------------------------

    def _run_epoch(self, run: EpochRun) -> list[bytes]:
        try:
            chunks = self._await_epoch(self._epoch_thread.submit(self._spec.cluster.run_epoch, run), run)
        except JobCancelledError as error:
            cancelled = error
        except ClusterError as error:
            self._prefer_slots_error(error)
            raise
        else:
            self._inbox.check()
            return chunks
        # Prefer a slot's failure or the user's request, which cancel the Spark job too: they are no consequence of it.
        self._inbox.check()
        raise cancelled

    def _await_epoch(self, epoch: Future[list[bytes]], run: EpochRun) -> list[bytes]:
        """Wait for an epoch; meanwhile handle messages about checkpoints and abort expired ones (I22).

        An epoch with a barrier names the checkpoint that its deltas are based on: until it is over no other checkpoint
        completes (I12), and a checkpoint that slots have sent messages about meanwhile does not expire.
        """
        inbox, checkpointing = self._inbox, self._checkpointing
        epoch.add_done_callback(lambda _: inbox.wake())
        seen = inbox.changes()
        while not epoch.done():
            if run.checkpoint is None:
                self._handle_checkpoint_messages()
            spared = inbox.checkpoints_with_messages() - ({run.checkpoint.id} if run.checkpoint is not None else set())
            checkpointing.expire(spared)
            wait_ms = checkpointing.expires_in_ms(spared)
            inbox.wait_for_change(seen, None if wait_ms is None else wait_ms / 1000)
            seen = inbox.changes()
        return epoch.result()

    def _handle_checkpoint_messages(self) -> None:
        for message in self._inbox.take_checkpoint_messages():
            self._checkpointing.on_message(message)

    def _prefer_slots_error(self, error: ClusterError) -> None:
        """Raise the slot's own error in place of Spark's, if it comes within a moment."""
        better = self._inbox.await_failure(_SLOT_ERROR_S)
        if isinstance(better, ClusterError):
            raise better from error
        if better is not None:
            raise better

    # -- after an epoch -----------------------------------------------------------------------------------------------

    def _conclude(self, run: EpochRun, duration_ms: float) -> EpochSummary:
        """The epoch counts only if every slot reported every stage, the counts balance and all slots are alive (I3)."""
        plan = self._plan
        reports = self._inbox.await_reports(plan.slots * plan.stages, plan.settings.heartbeat.timeout_s)
        missing = set(range(plan.slots)) - self._slots.alive()
        if missing:
            gone = ClusterError(f"Epoch {run.epoch} does not count: slots {sorted(missing)} were gone at its end.")
            self._prefer_slots_error(gone)
            raise gone
        summary = summarised(plan, run.epoch, duration_ms, reports)
        self._unfinished -= finished_tasks(reports)
        return summary

    def _update_checkpoints(self, work: EpochWork) -> None:
        """Tell the checkpoint driver about the epoch's cut and about the end of the input."""
        if work.order is not None:
            self._checkpointing.cut_stands(work.order, self._unread())
        if not self._unfinished and not self._input_ended:
            self._input_ended = True
            self._checkpointing.input_ended()

    def _unread(self) -> dict[int, list[int]]:
        return {each.node: each.remaining for each in self._dataframes}
