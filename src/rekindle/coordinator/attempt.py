"""One attempt to run a job: start the slots, open the functions, run epochs, close the functions, end the slots."""

from __future__ import annotations

import logging
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import msgspec

from rekindle.common.accumulators import merge_encoded
from rekindle.coordinator.attempt_spec import AttemptSpec, PartitionedInput
from rekindle.coordinator.checkpoints.driver import AttemptBasis
from rekindle.coordinator.cluster import SlotAddress
from rekindle.coordinator.control import ControlIdentity, ControlServer
from rekindle.coordinator.epoch_loop import ConnectedSlots, EpochLoop
from rekindle.coordinator.job_events import AttemptEntered, FunctionsOpened, SlotsConnected
from rekindle.coordinator.lifecycle import ATTEMPT_TRANSITIONS, AttemptState
from rekindle.coordinator.slot_inbox import SlotInbox
from rekindle.coordinator.source_splits import SplitDiscovery, close_sources
from rekindle.errors import JobCancelledError, RekindleError
from rekindle.metrics import MetricReading
from rekindle.protocol import AddSplits, AssignedSplits, CancelTasks, CloseTasks, Deploy, SlotLaunch

_LOG = logging.getLogger("rekindle.job")
#: How long functions may take to close after a failure.
_FAILED_CLOSE_S = 3.0
#: A timeout that means "wait for ever", as in Flink's settings.
_NO_TIMEOUT = 0.0
_encode_restore = msgspec.msgpack.Encoder().encode


class Attempt:
    """Runs a plan once on a cluster. The constructor acquires nothing; `run` does, and releases it at its end."""

    def __init__(self, spec: AttemptSpec) -> None:
        self.state = AttemptState.CREATED
        self._number = 0  # until the attempt is claimed
        self._spec = spec
        self._inbox = SlotInbox(spec.plan.job_name, spec.clock, self._cancel_epoch, spec.events.emit)
        self._server: ControlServer | None = None
        self._canceller: threading.Thread | None = None
        self.accumulators: dict[str, Any] = {}
        #: The metrics that slots reported when they closed.
        self.last_metrics: list[MetricReading] = []

    def run(self, dataframes: list[PartitionedInput]) -> None:
        """Run to the end of the input. Raises the cause of a failure, or JobCancelledError."""
        self._enter(AttemptState.ACQUIRING)
        try:
            self._acquire_and_run(dataframes)
        except BaseException:
            self._enter(AttemptState.CANCELED if self._inbox.cancelled else AttemptState.FAILED)
            raise
        self._enter(AttemptState.FINISHED)

    def _enter(self, state: AttemptState) -> None:
        assert state in ATTEMPT_TRANSITIONS[self.state], f"attempt: {self.state} -> {state}"
        self.state = state
        self._spec.events.emit(AttemptEntered(self._number, state))

    def _acquire_and_run(self, dataframes: list[PartitionedInput]) -> None:
        basis = self._spec.checkpointing.begin_attempt()
        self._number = basis.attempt
        with ExitStack() as acquired:
            acquired.callback(self._join_canceller)
            interval_s = self._spec.plan.settings.heartbeat.interval_s
            acquired.enter_context(closing(self._spec.checkpointing.watch_claim(interval_s, self._inbox.fail)))
            identity = self._identity(basis)
            server = self._server = acquired.enter_context(closing(self._open_server(identity)))
            epoch_thread = acquired.enter_context(ThreadPoolExecutor(1, "rekindle-epoch"))
            acquired.callback(close_sources, self._spec.plan)
            splits = SplitDiscovery(self._spec.plan, self._announce_splits, self._spec.clock)
            discovery = acquired.enter_context(closing(splits))
            self._enter(AttemptState.STARTING_SLOTS)
            try:
                self._skip_read_partitions(dataframes)
                addresses = self._start_slots(server, identity)
                _LOG.info("Attempt %d: %d slots are up.", basis.attempt, len(addresses))
                self._enter(AttemptState.DEPLOYING)
                self._deploy(server, basis)
                _LOG.info("Attempt %d: state is restored, functions are open.", basis.attempt)
                self._enter(AttemptState.RUNNING)
                self._spec.checkpointing.started(server.broadcast)
                self._spec.events.emit(FunctionsOpened())
                discovery.start()
                slots = ConnectedSlots(identity, addresses, self._inbox, server.alive)
                EpochLoop(self._spec, slots, epoch_thread, dataframes).run()
                self._enter(AttemptState.CLOSING)
                self._inbox.begin_close()
                self._close_tasks(server, _NO_TIMEOUT, even_if_cancelled=False)  # a sink's last flush may take long
                self._inbox.check_closed()
            except BaseException as error:
                why = "is cancelled" if self._inbox.cancelled else "has failed"
                _LOG.info("Attempt %d %s and shuts down.", basis.attempt, why)
                if self.state is not AttemptState.CLOSING:  # else every slot was asked to close already
                    self._enter(AttemptState.SHUTTING_DOWN)
                    self._shut_down_after(server, error)
                raise

    def cancel(self) -> None:
        """Ask the attempt to end; safe from any thread, also before `run`."""
        self._inbox.cancel()
        if self._server is not None:
            self._server.broadcast(CancelTasks())
        self._spec.cluster.cancel_epoch()

    def fail(self, error: RekindleError) -> None:
        """Let the attempt fail with this error; safe from any thread."""
        self._inbox.fail(error)

    def wake(self) -> None:
        """Let the attempt look for requests and for room for results; safe from any thread."""
        self._inbox.wake()

    # -- start --------------------------------------------------------------------------------------------------------

    def _identity(self, basis: AttemptBasis) -> ControlIdentity:
        spec = self._spec
        return ControlIdentity(
            spec.checkpointing.job_id, basis.attempt, spec.plan.slots, os.urandom(32), spec.environment.tls
        )

    def _open_server(self, identity: ControlIdentity) -> ControlServer:
        return ControlServer(
            self._spec.cluster.driver_host(),
            identity,
            self._inbox.on_message,
            self._inbox.on_gone,
            self._spec.plan.settings.heartbeat,
            self._spec.clock,
        )

    def _skip_read_partitions(self, dataframes: list[PartitionedInput]) -> None:
        """Leave out the partitions whose records are in the restored checkpoint (I10)."""
        for each in dataframes:
            unread = self._spec.checkpointing.unread_partitions(each.node)
            each.remaining = each.remaining if unread is None else unread

    def _start_slots(self, server: ControlServer, identity: ControlIdentity) -> tuple[SlotAddress, ...]:
        try:
            self._spec.cluster.start_slots([self._launch(server, identity, slot) for slot in range(identity.slots)])
        except JobCancelledError:
            self._inbox.check()  # prefer a slot's failure, which stops the start of the others
            raise
        hellos = self._inbox.await_hellos(
            identity.slots, self._spec.plan.settings.slot_timeouts.start_ms / 1000, lambda: server.trouble
        )
        self._spec.events.emit(SlotsConnected(hellos))
        return tuple(SlotAddress(each.host, each.boot_id, each.unix_path, each.tcp_port) for each in hellos)

    def _launch(self, server: ControlServer, identity: ControlIdentity, slot: int) -> SlotLaunch:
        settings, environment = self._spec.plan.settings, self._spec.environment
        lifelines, directories = self._spec.lifelines, settings.local_recovery.directories
        return SlotLaunch(
            job_id=identity.job_id,
            job_name=self._spec.plan.job_name,
            attempt=identity.attempt,
            slot=slot,
            slots=identity.slots,
            driver_host=server.host,
            driver_port=server.port,
            secret=identity.secret,
            heartbeat=settings.heartbeat,
            python_path=list(environment.python_path),
            loopback_only=environment.loopback_only,
            restarts=self._spec.restarts,
            tls=environment.tls,
            copies=lifelines.place(directories, slot) if lifelines is not None else None,
        )

    def _deploy(self, server: ControlServer, basis: AttemptBasis) -> None:
        slots = self._spec.plan.slots
        placed = self._restores_by_slot(basis)
        splits = self._splits_by_slot(basis)
        for slot in range(slots):
            server.send(
                slot,
                Deploy(
                    self._spec.program,
                    basis.storage,
                    basis.restored_id,
                    basis.restore_url,
                    basis.restore_root,
                    placed.get(slot, []),
                    basis.store_options,
                    splits.get(slot, []),
                    basis.claimed_ms,
                ),
            )
        self._inbox.await_deployed(slots)

    def _restores_by_slot(self, basis: AttemptBasis) -> dict[int, list[bytes]]:
        placed: dict[int, list[bytes]] = {}
        for restore in basis.restores:
            placed.setdefault(self._slot_of(restore.uid, restore.subtask), []).append(_encode_restore(restore))
        return placed

    def _splits_by_slot(self, basis: AttemptBasis) -> dict[int, list[AssignedSplits]]:
        """The splits of the sources that have no state in the restored checkpoint, and those that others may lack."""
        restored = {restore.uid for restore in basis.restores if restore.has_source}
        placed: dict[int, list[AssignedSplits]] = {}
        for assigned in self._spec.starting_splits.assigned(restored):
            placed.setdefault(self._slot_of(assigned.uid, assigned.subtask), []).append(assigned)
        return placed

    def _slot_of(self, uid: str, subtask: int) -> int:
        """The slot that hosts a subtask of an operator."""
        plan = self._spec.plan
        chain = next(chain for chain in plan.chains if any(plan.nodes[node].uid == uid for node in chain.nodes))
        return plan.placement[chain.id, subtask]

    def _announce_splits(self, assigned: AssignedSplits) -> None:
        """Send discovered splits to the slot that reads them; a slot that is gone fails the attempt by itself."""
        if self._server is not None:
            self._server.send(self._slot_of(assigned.uid, assigned.subtask), AddSplits(assigned))

    # -- failure ------------------------------------------------------------------------------------------------------

    def _cancel_epoch(self) -> None:
        """Cancel a running Spark job after a slot's failure; called on a reader's thread, which must not block."""
        self._canceller = threading.Thread(target=self._spec.cluster.cancel_epoch, name="cancel epoch", daemon=True)
        self._canceller.start()

    def _join_canceller(self) -> None:
        if self._canceller is not None:
            self._canceller.join()  # it must not cancel an epoch of the next attempt

    def _shut_down_after(self, server: ControlServer, error: BaseException) -> None:
        """Let functions close after a failure if they can; guardians end the slots that do not close in time."""
        self._spec.cluster.cancel_epoch()
        server.broadcast(CancelTasks())
        cancelled = isinstance(error, JobCancelledError)
        timeout_s = self._spec.plan.settings.slot_timeouts.cancellation_ms / 1000 if cancelled else _FAILED_CLOSE_S
        self._inbox.begin_close(forget_failure=True)
        self._close_tasks(server, timeout_s, even_if_cancelled=True)
        for complaint in self._inbox.close_errors():
            _LOG.warning("%s", complaint)

    def _close_tasks(self, server: ControlServer, timeout_s: float, *, even_if_cancelled: bool) -> None:
        server.broadcast(CloseTasks())
        closed = self._inbox.await_closed(
            math.inf if timeout_s == _NO_TIMEOUT else timeout_s, server.connected, even_if_cancelled=even_if_cancelled
        )
        self.accumulators = dict(merge_encoded(each.accumulators for each in closed.values()))
        self.last_metrics = [reading for each in closed.values() for reading in each.metrics]
