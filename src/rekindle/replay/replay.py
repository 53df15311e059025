"""Replays a recording: builds the failed task, restores its checkpoint, and goes through its events until it fails."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from rekindle.checkpoint.load_checkpoint import load
from rekindle.checkpoint.paths import below, metadata_path
from rekindle.checkpoint.recordings import Recording, TimeRead
from rekindle.checkpoint.rescale import SubtaskShare, assign
from rekindle.checkpoint.store.options import StoreOptions, open_configured
from rekindle.checkpoint.store.port import Store
from rekindle.datastream.connectors.split_codec import decode_splits
from rekindle.errors import MissingFileError, ReplayError
from rekindle.graph.nodes import Chain, JobPlan
from rekindle.graph.restore_targets import restore_targets
from rekindle.graph.shipping import JobCode
from rekindle.replay.key_trace import Trace
from rekindle.replay.replay_clock import ReplayClock
from rekindle.replay.replayed_ends import Feed
from rekindle.replay.replayed_task import ReplayedTask, building
from rekindle.runtime.build_chain import SlotServices
from rekindle.runtime.context import Accumulators, JobIdentity
from rekindle.runtime.failure_report import user_traceback
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.recording.time_log import TimeReader
from rekindle.runtime.state.keyed_backends import KeyedBackends
from rekindle.runtime.task_position import edge_names
from rekindle.runtime.task_snapshots import TaskShare

_decode_share = msgspec.msgpack.Decoder(SubtaskShare).decode


@dataclass(frozen=True)
class ReplayOptions:
    """How to replay."""

    #: The checkpoint to begin from; None: the newest that the recording and the store have.
    checkpoint_id: int | None = None
    #: Whether sinks write for real; else they drop what they get. They never commit.
    with_sinks: bool = False
    trace: Trace | None = None
    store_options: StoreOptions | None = None
    #: Where the job's checkpoints are, if not where the recording says.
    store: Store | None = None


@dataclass(frozen=True, eq=False)
class ReplayOutcome:
    """The outcome of a replay."""

    recording: Recording
    #: The checkpoint that it began from; None: the start of the job.
    checkpoint_id: int | None
    #: The task as it stands after the last event.
    task: ReplayedTask
    #: The error of the task; None: it went through all events.
    error: BaseException | None

    @property
    def cause(self) -> BaseException | None:
        """The exception of the user's code."""
        return self.error.__cause__ or self.error if isinstance(self.error, OperatorFailure) else self.error

    @property
    def has_record(self) -> bool:
        """Whether it is known at which record the operator failed."""
        return isinstance(self.error, OperatorFailure) and self.error.has_record

    @property
    def record(self) -> Any:
        """The record at which the operator failed; None if that is not known."""
        return self.error.record if isinstance(self.error, OperatorFailure) else None

    @property
    def operator(self) -> str | None:
        """The operator that failed."""
        return self.error.operator if isinstance(self.error, OperatorFailure) else None

    def state_of(self, operator: str, key: Any) -> dict[str, Any]:
        """The values of a key in the states of an operator of the task, as they are stored."""
        return self.task.state_of(operator, key)

    @property
    def traceback(self) -> str:
        """The user's own traceback."""
        return user_traceback(self.cause) if self.cause is not None else ""


@contextmanager
def replay(recording: Recording, plan: JobPlan, code: JobCode, options: ReplayOptions) -> Iterator[ReplayOutcome]:
    """Replay a recording with a program's plan and functions; the task is there until the block ends."""
    chain = _chain_of(recording, plan)
    index, share, restored_id = _basis(recording, plan, options)
    clock, feed = ReplayClock(_first_time(recording, index)), Feed()
    with tempfile.TemporaryDirectory(prefix="rekindle-replay-") as directory:
        backends = KeyedBackends(plan.settings.state_backend, directory, max(1, len(chain.nodes)))
        services = SlotServices(
            attempt=recording.restarts,
            clock=clock,
            directory=directory,
            accumulators=Accumulators(),
            load_function=code.load_function,
            load_edge_function=code.load_edge_function,
            load_selector=code.load_selector,
            wake=lambda: None,
            backends=backends,
            job=JobIdentity(
                recording.job_name, recording.job_id, recording.timeline, recording.attempt, recording.claimed_ms
            ),
            cached_files=plan.cached_files,
            build=building(feed, clock, options.with_sinks, options.trace),
        )
        task = ReplayedTask(plan, chain, recording.subtask, services, clock, feed)
        try:
            error = _run(task, recording, index, share, restored_id, clock, options)
            yield ReplayOutcome(recording, restored_id, task, error)
        finally:
            task.cancel()
            task.close()
            backends.close()


def _run(
    task: ReplayedTask,
    recording: Recording,
    index: int,
    share: TaskShare | None,
    restored_id: int | None,
    clock: ReplayClock,
    options: ReplayOptions,
) -> BaseException | None:
    """Start the task and play its events; returns its error."""
    from_start = recording.segments[index].checkpoint_id is None and recording.start is not None
    edges = _edges(recording, task)
    try:
        splits = []
        if from_start and recording.start is not None:
            clock.enter(recording.start.time)
            splits = decode_splits(recording.start.splits) if recording.start.splits else []
        task.start(share, restored_id, splits)
        if options.trace is not None:
            options.trace.begin()
        for event in recording.events_since(index):
            task.play(event, edges)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return error
    return None


def _chain_of(recording: Recording, plan: JobPlan) -> Chain:
    uid, name = recording.operators[0]
    for chain in plan.chains:
        if plan.nodes[chain.head].uid == uid:
            if chain.parallelism != recording.parallelism:
                raise ReplayError(
                    f"Task '{recording.task}' had parallelism {recording.parallelism} when it failed, but the program "
                    f"gives it {chain.parallelism}: run the program with the settings that it had."
                )
            return chain
    raise ReplayError(
        f"The program has no task that begins with operator '{name}' (uid {uid}), as the one that failed in job "
        f"'{recording.job_name}': run it with the arguments that it had, or use the job's own code with --shipped."
    )


# -- where it begins ---------------------------------------------------------------------------------------------------


def _basis(recording: Recording, plan: JobPlan, options: ReplayOptions) -> tuple[int, TaskShare | None, int | None]:
    """The segment to begin with, the task's share of the checkpoint before it, and that checkpoint's id."""
    bases = recording.bases
    wanted = options.checkpoint_id
    if wanted is not None and wanted not in bases:
        known = ", ".join("the start" if base is None else str(base) for base in bases)
        raise ReplayError(f"The recording does not begin at checkpoint {wanted}; it has input since: {known}.")
    for index in range(len(bases) - 1, -1, -1):
        if wanted is not None and bases[index] != wanted:
            continue
        if recording.segments[index].checkpoint_id is None and recording.start is not None:
            return index, _recorded_share(recording, options), recording.start.restored_id
        share = _share_of_checkpoint(recording, plan, bases[index] or 0, options)
        if share is not None:
            return index, share, bases[index]
    raise ReplayError(
        f"None of the checkpoints {[base for base in bases if base is not None]} from which the recording can be "
        f"replayed is in {recording.store_url} any more."
    )


def _recorded_share(recording: Recording, options: ReplayOptions) -> TaskShare | None:
    start = recording.start
    if start is None or start.restored_id is None:
        return None
    store = options.store or open_configured(start.store_url or recording.store_url, options.store_options or {})
    shares = [_decode_share(data) for data in start.shares]
    return _task_share(store, start.root, {share.uid: share for share in shares}, options)


def _share_of_checkpoint(
    recording: Recording, plan: JobPlan, checkpoint_id: int, options: ReplayOptions
) -> TaskShare | None:
    """The task's share of a checkpoint of its own run; None: it does not exist."""
    store = options.store or open_configured(recording.store_url, options.store_options or {})
    folder = below(recording.root, f"chk-{checkpoint_id}")
    try:
        store.read(metadata_path(folder), 0, 1)
    except MissingFileError:
        return None
    loaded = load(store, folder)
    assigned = assign(loaded.manifest, restore_targets(plan), allow_non_restored_state=True)
    shares = {uid: own[recording.subtask] for uid, own in assigned.items() if recording.subtask < len(own)}
    return _task_share(store, loaded.root, shares, options)


def _task_share(store: Store, root: str, shares: Mapping[str, SubtaskShare], options: ReplayOptions) -> TaskShare:
    """The share without what sinks have still to commit: that is left to the job."""
    return TaskShare(store, root, {uid: _without_committables(share) for uid, share in shares.items()})


def _without_committables(share: SubtaskShare) -> SubtaskShare:
    return msgspec.structs.replace(share, own=msgspec.structs.replace(share.own, committables=[]))


def _first_time(recording: Recording, index: int) -> int:
    """The time at which a task that is restored opens its functions."""
    reads: list[TimeRead] = [event.time for event in recording.events_since(index)]
    times = (TimeReader(read).first_wall for read in reads)
    return next((time for time in times if time is not None), recording.failed_ms)


def _edges(recording: Recording, task: ReplayedTask) -> dict[int, int]:
    """Recorded edge -> edge of the plan, by name."""
    numbers = {name: edge for edge, name in edge_names(task.plan).items()}
    missing = [name for name in recording.edges.values() if name not in numbers]
    if missing:
        raise ReplayError(
            f"The program does not have the inputs of task '{recording.task}' that it had when it failed: run the "
            "program as it was, or use the job's own code with --shipped."
        )
    return {edge: numbers[name] for edge, name in recording.edges.items()}
