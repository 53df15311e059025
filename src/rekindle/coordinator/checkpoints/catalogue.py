"""The catalogue of a job's checkpoints: publishes, finds and deletes manifests under the job's claim (I14)."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import Manifest, ManifestKind
from rekindle.checkpoint.ownership import Claim, check_owner, claim_first, claim_next
from rekindle.checkpoint.paths import (
    below,
    checkpoint_folder,
    is_recording,
    job_folder,
    metadata_path,
    recordings_folder,
    shipped_job_path,
    timeline_folder,
    url_of,
)
from rekindle.checkpoint.publish import publish, put_metadata
from rekindle.checkpoint.retention import (
    Deletion,
    delete_files,
    discarded_files,
    half_written_files,
    swept_files,
    swept_manifests,
)
from rekindle.checkpoint.store.port import Store
from rekindle.checkpoint.timeline_notes import Beginning, note_beginning, note_completion, note_stop, stop_note_path
from rekindle.coordinator.checkpoints.types import CheckpointKind, CompletedCheckpoint, PendingCheckpoint
from rekindle.coordinator.checkpoints.under_way import SavepointPlace
from rekindle.crash_points import CrashPoint, reach
from rekindle.errors import CheckpointError, OwnershipLostError
from rekindle.places import is_url

_LOG = logging.getLogger("rekindle.checkpoint")


@dataclass
class CheckpointCatalogue:
    """The checkpoints that this driver has published and not deleted."""

    store: Store
    in_memory: bool
    #: The claim of the current attempt; None before the first.
    claim: Claim | None = None
    manifests: dict[int, Manifest] = field(default_factory=dict)
    #: Checkpoints in `manifests` that are to be deleted.
    discarded: set[int] = field(default_factory=set)
    #: Recorded input of a failed task -> the checkpoints that a replay may begin from: they stay as long as it does.
    recordings: dict[str, frozenset[int]] = field(default_factory=dict)
    #: The savepoint with which the job is ending.
    stopped: LoadedCheckpoint | None = None
    #: The timeline's notes as written so far (I21): its beginning, and whether it has a completed checkpoint.
    begun: Beginning | None = None
    has_completed: bool = False

    @property
    def owner(self) -> Claim:
        """The claim; only after `begin`."""
        assert self.claim is not None, "the job is not claimed yet"
        return self.claim

    @property
    def root(self) -> str:
        """The folder of the job's timeline."""
        return timeline_folder(self.owner.job_name, self.owner.timeline)

    def find(self, point: CompletedCheckpoint) -> LoadedCheckpoint | None:
        """The published checkpoint `point`, or the savepoint with which the job is ending."""
        if point.id in self.manifests:
            return LoadedCheckpoint(self.store, self.manifests[point.id], point.location, self.root)
        return self.stopped

    def external_path(self, point: CompletedCheckpoint) -> str | None:
        """The value for `execution.state-recovery.path`; None: the checkpoint is in this driver's memory."""
        if is_url(point.location):
            return point.location
        return None if self.in_memory else url_of(self.store, point.location)

    # -- claims -------------------------------------------------------------------------------------------------------

    def next_claim(self, job_name: str, job_id: str, now_ms: int) -> Claim:
        """Claim the job for this driver, or for its next attempt; `begin` keeps the claim."""
        if self.claim is not None:
            return claim_next(self.store, self.claim, now_ms)
        driver = f"{socket.gethostname()}:{os.getpid()}"
        return claim_first(self.store, job_name, job_id, driver, now_ms)

    def begin(self, claim: Claim, beginning: Beginning) -> None:
        """Write the note of the run's beginning, then keep the claim. From now on publications of an older driver do
        not count; a newer driver either finds the note, or is found here (I21).
        """
        if beginning != self.begun:
            reach(CrashPoint.BEFORE_BEGINNING)
            note_beginning(self.store, claim, beginning)
            check_owner(self.store, claim)
            reach(CrashPoint.AFTER_BEGINNING)
        self.begun, self.claim = beginning, claim

    def went_back(self, older: LoadedCheckpoint) -> CompletedCheckpoint | None:
        """Forget the checkpoints of this run that are newer than `older`, without deleting them. Returns `older`, or
        None if another run made it.
        """
        self.stopped = None
        if self.claim is None or older.manifest.timeline != self.claim.timeline:
            self.manifests, self.discarded = {}, set()
            return None
        id_, timestamp_ms = older.manifest.checkpoint_id, older.manifest.timestamp_ms
        earlier = {each: manifest for each, manifest in self.manifests.items() if each < id_}
        self.manifests = earlier | {id_: older.manifest}
        # `older` stays even if it was discarded before and the store did not delete it.
        self.discarded &= earlier.keys()
        return CompletedCheckpoint(id_, CheckpointKind.CHECKPOINT, older.path, timestamp_ms)

    # -- publication --------------------------------------------------------------------------------------------------

    def publish(self, checkpoint: PendingCheckpoint, manifest: Manifest, savepoint: SavepointPlace | None) -> str:
        """Complete a checkpoint or savepoint. Returns its location."""
        if savepoint is not None:
            return self._publish_savepoint(checkpoint, manifest, savepoint)
        location = publish(self.store, self.owner, manifest)
        if not self.has_completed:
            note_completion(self.store, self.owner, checkpoint.id)
            self.has_completed = True
        self.manifests[checkpoint.id] = manifest
        return location

    def _publish_savepoint(self, checkpoint: PendingCheckpoint, manifest: Manifest, place: SavepointPlace) -> str:
        """Publish a savepoint, which is self-contained: every file that it needs is in its folder (I17)."""
        check_owner(self.store, self.owner)
        put_metadata(place.store, place.folder, manifest)
        if checkpoint.kind is CheckpointKind.STOP and not self.in_memory:
            place.noted = True
            note_stop(self.store, self.owner, checkpoint.id, place.url)
        check_owner(self.store, self.owner)
        if checkpoint.kind is CheckpointKind.STOP:
            self.stopped = LoadedCheckpoint(place.store, manifest, place.folder, place.folder)
        return place.url

    # -- deletion -----------------------------------------------------------------------------------------------------

    def discard(self, checkpoint_ids: Iterable[int]) -> None:
        """Mark published checkpoints for deletion."""
        self.discarded.update(checkpoint_ids)

    def delete_discarded(self, bases: Collection[int]) -> list[int]:
        """Delete the checkpoints that were discarded, except `bases` of pending ones and those that recordings need.

        Returns the deleted ids.
        """
        kept = self.manifests.keys() - self.discarded.difference(bases, *self.recordings.values())
        ordered = [self.manifests[id_] for id_ in sorted(self.manifests)]
        deletion = discarded_files(ordered, self.owner.timeline, kept)
        try:
            delete_files(self.store, self.owner, deletion)
        except OwnershipLostError:
            raise
        except CheckpointError as error:  # they stay discarded: the next call deletes them
            _LOG.warning("The checkpoints %s could not be deleted: %s", deletion.checkpoint_ids, error)
            return []
        for id_ in deletion.checkpoint_ids:
            del self.manifests[id_]
        self.discarded.difference_update(deletion.checkpoint_ids)
        return deletion.checkpoint_ids

    def keep_recordings(self, most: int) -> None:
        """After a failure: keep the newest recordings and the checkpoints that they stand on; delete older ones."""
        found = [each.path for each in self.store.list(recordings_folder(self.owner.job_name))]
        known = sorted(path for path in found if is_recording(path))
        bases = frozenset(self.manifests.keys() - self.discarded)
        self.recordings = {path: self.recordings.get(path, bases) for path in known[-most:]}
        delete_files(self.store, self.owner, _deletion_of(known[:-most]))

    def keeps_any(self) -> bool:
        """Whether a published checkpoint is not discarded."""
        return not self.manifests.keys() <= self.discarded

    def delete_recordings(self, *, but_those_without_checkpoint: bool) -> None:
        """Delete the recordings of this run; nothing needs the checkpoints that they stand on any more.

        A task that failed before the first checkpoint has a recording that stands on none.
        """
        paths = [path for path, bases in self.recordings.items() if bases or not but_those_without_checkpoint]
        self.recordings = {path: bases for path, bases in self.recordings.items() if path not in paths}
        delete_files(self.store, self.owner, _deletion_of(paths))

    def delete_aborted(self, checkpoint_id: int, files: Iterable[str], place: SavepointPlace | None) -> None:
        """Delete the `files` that subtasks wrote for an aborted checkpoint; no other checkpoint needs them (I12).

        Of a savepoint delete the whole place.
        """
        if self.claim is None:
            return
        try:
            if place is not None:
                if place.noted:
                    # The note must not outlive its savepoint; and a newer driver may have followed it.
                    note = stop_note_path(self.claim, checkpoint_id)
                    delete_files(self.store, self.claim, Deletion(manifests=[note]))
                place.store.delete(*(entry.path for entry in place.store.list(place.folder)))
                return
            # A store that failed after it had written `_metadata` has made a checkpoint that is not in the catalogue.
            leftover = metadata_path(checkpoint_folder(self.claim.job_name, self.claim.timeline, checkpoint_id))
            deletion = Deletion(manifests=[leftover], files=[below(self.root, each) for each in sorted(files)])
            delete_files(self.store, self.claim, deletion)
        except CheckpointError as error:  # including lost ownership, which the next claim finds (I14)
            _LOG.warning("Files of the aborted checkpoint %d could not be deleted: %s", checkpoint_id, error)

    def sweep(self, before_attempt: int) -> None:
        """Delete the files of earlier attempts that no kept checkpoint references, and leftover `_metadata`."""
        job_name, timeline = self.owner.job_name, self.owner.timeline
        files = [entry.path for entry in self.store.list(self.root)]
        left_over = swept_files(files, self.manifests.values(), job_name, timeline, before_attempt)
        manifests = swept_manifests(files, self.manifests.values(), job_name, timeline, self._stop_note())
        delete_files(self.store, self.owner, replace(left_over, manifests=manifests))

    def sweep_earlier_runs(self) -> None:
        """Delete the half-written files of earlier drivers; once, after this driver's first claim."""
        owner = self.owner
        files = [entry.path for entry in self.store.list(job_folder(owner.job_name))]
        try:
            delete_files(self.store, owner, half_written_files(files, owner.job_name, owner.timeline, owner.attempt))
        except OwnershipLostError:
            raise
        except CheckpointError as error:  # they do no harm
            _LOG.warning("Half-written files of earlier runs could not be deleted: %s", error)

    def _stop_note(self) -> str | None:
        """The note of the stop with which the job is ending."""
        return stop_note_path(self.owner, self.stopped.manifest.checkpoint_id) if self.stopped is not None else None


def completed_checkpoint(restored: LoadedCheckpoint) -> CompletedCheckpoint:
    """The checkpoint or savepoint that a run restores, as the ledger records it."""
    manifest = restored.manifest
    is_savepoint = manifest.kind is ManifestKind.SAVEPOINT
    kind = CheckpointKind.SAVEPOINT if is_savepoint else CheckpointKind.CHECKPOINT
    location = url_of(restored.store, restored.path)
    return CompletedCheckpoint(manifest.checkpoint_id, kind, location, manifest.timestamp_ms)


def _deletion_of(recordings: Iterable[str]) -> Deletion:
    return Deletion(files=[each for path in recordings for each in (path, shipped_job_path(path))])
