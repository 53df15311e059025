"""The catalogue of a job's checkpoints: builds, publishes, finds and deletes manifests under the job's claim (I14)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from rekindle.checkpoint.manifest import FileRef, Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.notes import Beginning, note_beginning, note_completion, note_stop, stop_note_path
from rekindle.checkpoint.ownership import Claim, check_owner
from rekindle.checkpoint.part_formats import SourceState, SplitState
from rekindle.checkpoint.parts import on_top_of
from rekindle.checkpoint.paths import (
    StateFileName,
    below,
    checkpoint_folder,
    job_folder,
    metadata_path,
    timeline_folder,
)
from rekindle.checkpoint.publish import publish, put_metadata, remove
from rekindle.checkpoint.resolve import LoadedCheckpoint
from rekindle.checkpoint.retention import Removal, abandoned, orphans, outdated, unreferenced
from rekindle.checkpoint.store.port import Store, url_of
from rekindle.coordinator.checkpoints.types import CheckpointKind, CompletedCheckpoint, PendingCheckpoint
from rekindle.crash_points import CrashPoint, reach
from rekindle.errors import CheckpointError, IncompatibleStateError, OwnershipLostError
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.graph.state_layout import state_layout
from rekindle.protocol import CheckpointAcknowledged
from rekindle.serde import tagged_dumps

_LOG = logging.getLogger("rekindle.checkpoint")


@dataclass
class SavepointPlace:
    """Where a savepoint under way is written."""

    store: Store
    folder: str
    #: Whether `latest` may have found it: the note of a stop leads there.
    noted: bool = False

    @property
    def url(self) -> str:
        """What users restore from."""
        return url_of(self.store, self.folder)


@dataclass
class CheckpointShelf:
    """The checkpoints that the job's driver has published and still knows, and its savepoints under way."""

    store: Store
    in_memory: bool
    #: Of the current attempt; None before the first.
    claim: Claim | None = None
    manifests: dict[int, Manifest] = field(default_factory=dict)
    savepoints: dict[int, SavepointPlace] = field(default_factory=dict)
    #: The savepoint that the job is ending with.
    stopped: LoadedCheckpoint | None = None
    #: What the notes of the timeline say (I21).
    begun: Beginning | None = None
    has_completed: bool = False

    @property
    def owner(self) -> Claim:
        """The claim, once there is one."""
        assert self.claim is not None, "nothing is claimed yet"
        return self.claim

    @property
    def root(self) -> str:
        """The folder of the job's timeline."""
        return timeline_folder(self.owner.job_name, self.owner.timeline)

    def find(self, point: CompletedCheckpoint) -> LoadedCheckpoint | None:
        """A completed checkpoint of this driver, or the savepoint that the job is ending with."""
        if point.id in self.manifests:
            return LoadedCheckpoint(self.store, self.manifests[point.id], point.location, self.root)
        return self.stopped

    # -- what comes ---------------------------------------------------------------------------------------------------

    def begin(self, claim: Claim, beginning: Beginning) -> None:
        """Note what the run begins from, before it acts, and take the claim. What an older driver publishes from now on
        counts for nobody; a newer one either finds the note, or is found here (I21).
        """
        if beginning != self.begun:
            reach(CrashPoint.BEFORE_BEGINNING)
            note_beginning(self.store, claim, beginning)
            check_owner(self.store, claim)
            reach(CrashPoint.AFTER_BEGINNING)
        self.begun, self.claim = beginning, claim

    def publish(self, checkpoint: PendingCheckpoint, manifest: Manifest) -> str:
        """Complete a checkpoint or savepoint; where it is."""
        if checkpoint.kind.is_savepoint:
            return self._publish_savepoint(checkpoint, manifest)
        location = publish(self.store, self.owner, manifest)
        if not self.has_completed:
            note_completion(self.store, self.owner, checkpoint.id)
            self.has_completed = True
        self.manifests[checkpoint.id] = manifest
        return location

    def _publish_savepoint(self, checkpoint: PendingCheckpoint, manifest: Manifest) -> str:
        """Self-contained: every file that it needs is in its folder (I17)."""
        place = self.savepoints[checkpoint.id]
        check_owner(self.store, self.owner)
        put_metadata(place.store, place.folder, manifest)
        if checkpoint.kind is CheckpointKind.STOP and not self.in_memory:
            place.noted = True
            note_stop(self.store, self.owner, checkpoint.id, place.url)
        check_owner(self.store, self.owner)
        del self.savepoints[checkpoint.id]
        if checkpoint.kind is CheckpointKind.STOP:
            self.stopped = LoadedCheckpoint(place.store, manifest, place.folder, place.folder)
        return place.url

    # -- what goes ----------------------------------------------------------------------------------------------------

    def keep_only(self, kept: Collection[int]) -> list[int]:
        """Delete the other checkpoints; which have gone."""
        ordered = [self.manifests[id_] for id_ in sorted(self.manifests)]
        removal = outdated(ordered, self.owner.timeline, kept)
        try:
            remove(self.store, self.owner, removal)
        except OwnershipLostError:
            raise
        except CheckpointError as error:  # they are still known, and go with the next
            _LOG.warning("The checkpoints %s could not be deleted: %s", removal.checkpoint_ids, error)
            return []
        for id_ in removal.checkpoint_ids:
            del self.manifests[id_]
        return removal.checkpoint_ids

    def forget(self, checkpoint_id: int, files: Iterable[str] = ()) -> None:
        """Delete what subtasks wrote for a checkpoint that came to nothing, `files`; no other needs it (I12)."""
        if self.claim is None:
            return
        try:
            if checkpoint_id in self.savepoints:
                place = self.savepoints[checkpoint_id]
                if place.noted:
                    # Without its savepoint the note would lead nowhere; and a newer driver may have followed it.
                    remove(self.store, self.claim, Removal(manifests=[stop_note_path(self.claim, checkpoint_id)]))
                place.store.delete(*(entry.path for entry in place.store.list(place.folder)))
                return
            # A store that failed after it had written `_metadata` has made a checkpoint that nobody knows.
            nobodys = metadata_path(checkpoint_folder(self.claim.job_name, self.claim.timeline, checkpoint_id))
            removal = Removal(manifests=[nobodys], files=[below(self.root, each) for each in sorted(files)])
            remove(self.store, self.claim, removal)
        except CheckpointError as error:  # an older driver finds out at its next claim (I14)
            _LOG.warning("Files of the aborted checkpoint %d could not be deleted: %s", checkpoint_id, error)

    def forget_savepoints(self) -> None:
        """Delete those that were under way when their attempt ended."""
        for checkpoint_id in list(self.savepoints):
            self.forget(checkpoint_id)
            del self.savepoints[checkpoint_id]

    def sweep(self, before_attempt: int) -> None:
        """Files that attempts have left which ended, or died, before their checkpoint was complete."""
        job_name, timeline = self.owner.job_name, self.owner.timeline
        files = [entry.path for entry in self.store.list(self.root)]
        left_over = orphans(files, self.manifests.values(), job_name, timeline, before_attempt)
        nobodys = unreferenced(files, self.manifests.values(), job_name, timeline, self._note())
        remove(self.store, self.owner, replace(left_over, manifests=nobodys))

    def sweep_abandoned(self) -> None:
        """What earlier drivers have left half written: once, when the job is this driver's."""
        owner = self.owner
        files = [entry.path for entry in self.store.list(job_folder(owner.job_name))]
        try:
            remove(self.store, owner, abandoned(files, owner.job_name, owner.timeline, owner.attempt))
        except OwnershipLostError:
            raise
        except CheckpointError as error:  # they are in nobody's way
            _LOG.warning("Half-written files of earlier runs could not be deleted: %s", error)

    def _note(self) -> str | None:
        """That of the stop with which the job is ending."""
        return stop_note_path(self.owner, self.stopped.manifest.checkpoint_id) if self.stopped is not None else None


_decode_state = msgspec.msgpack.Decoder(SubtaskState).decode


@dataclass(frozen=True)
class AcknowledgedSubtask:
    """What a subtask said about a checkpoint; `states`: by operator uid, whole, with what the deltas stand on."""

    word: CheckpointAcknowledged
    states: Sequence[tuple[str, SubtaskState]]

    @classmethod
    def on_top(cls, base: Manifest | None, word: CheckpointAcknowledged) -> AcknowledgedSubtask:
        """A word whose deltas stand on a completed checkpoint, or on nothing (I12)."""
        states = []
        for operator in word.operators:
            state = _decode_state(operator.state)
            states.append((operator.uid, on_top_of(_base_of(base, operator.uid, state.subtask), state)))
        return cls(word, states)

    def files_of(self, checkpoint_id: int) -> set[str]:
        """The state files that the subtask wrote for this checkpoint, as references."""
        references = {blob.path for _, state in self.states for blob in state.blobs() if isinstance(blob, FileRef)}
        names = {each: StateFileName.parse(each) for each in references}
        return {each for each, name in names.items() if name is not None and name.checkpoint_id == checkpoint_id}


@dataclass(frozen=True)
class AcknowledgedCheckpoint:
    """Everything that every subtask said about a checkpoint."""

    words: Sequence[AcknowledgedSubtask]
    #: The partitions left of each DataFrame source (I10).
    unread: Mapping[int, Sequence[int]]

    def manifest(self, plan: JobPlan, claim: Claim, checkpoint: PendingCheckpoint, duration_ms: int) -> Manifest:
        """The checkpoint as it will be published."""
        states: dict[str, list[SubtaskState]] = {}
        for word in self.words:
            for uid, state in word.states:
                states.setdefault(uid, []).append(state)
        return Manifest(
            kind=ManifestKind.SAVEPOINT if checkpoint.kind.is_savepoint else ManifestKind.CHECKPOINT,
            checkpoint_id=checkpoint.id,
            job_id=claim.job_id,
            job_name=plan.job_name,
            timeline=claim.timeline,
            attempt=claim.attempt,
            timestamp_ms=checkpoint.timestamp_ms,
            duration_ms=duration_ms,
            operators=[
                OperatorState(
                    node.uid, node.name, node.parallelism, node.max_parallelism, states[node.uid], state_layout(node)
                )
                for node in plan.nodes
                if node.uid in states
            ]
            + _frames(plan, self.unread),
        )


def refuse_rescaled_frames(plan: JobPlan, manifest: Manifest) -> None:
    """Which partitions have ended is known per channel, and channels do not survive a change of parallelism."""
    saved = {operator.uid: operator.parallelism for operator in manifest.operators}
    for node in plan.nodes:
        old = saved.get(node.uid, node.parallelism)
        if node.kind is not OperatorKind.SOURCE_DATAFRAME and old != node.parallelism:
            raise IncompatibleStateError(
                f"A job with a DataFrame source can only be restored with the parallelism it was saved with: set "
                f"that of '{node.name}' to {old}."
            )


def _frames(plan: JobPlan, unread: Mapping[int, Sequence[int]]) -> list[OperatorState]:
    """The positions of DataFrame sources, which the driver reads itself."""
    return [
        OperatorState(
            plan.nodes[node].uid,
            plan.nodes[node].name,
            1,
            plan.nodes[node].max_parallelism,
            [SubtaskState(0, finished=not partitions, source=_partitions_left(partitions))],
        )
        for node, partitions in unread.items()
    ]


def _partitions_left(partitions: Sequence[int]) -> bytes:
    return SourceState([SplitState(tagged_dumps(str(each)), tagged_dumps(each)) for each in partitions]).encode()


def _base_of(base: Manifest | None, uid: str, subtask: int) -> SubtaskState | None:
    if base is None:
        return None
    operator = next((each for each in base.operators if each.uid == uid), None)
    return next((each for each in operator.subtasks if each.subtask == subtask), None) if operator else None
