"""Recordings of failed tasks: the newest are kept, and with them the checkpoints that a replay begins from."""

from __future__ import annotations

from rekindle.checkpoint.manifest import Manifest, ManifestKind
from rekindle.checkpoint.paths import is_recording, recording_path, shipped_job_path
from rekindle.checkpoint.publish import publish
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.checkpoint.timeline_notes import Beginning
from rekindle.coordinator.checkpoints.catalogue import CheckpointCatalogue


def begun() -> CheckpointCatalogue:
    catalogue = CheckpointCatalogue(MemoryStore(), in_memory=False)
    catalogue.begin(catalogue.next_claim("orders", "0" * 32, 5), Beginning())
    return catalogue


def complete(catalogue: CheckpointCatalogue, checkpoint_id: int) -> None:
    claim = catalogue.owner
    kind = ManifestKind.CHECKPOINT
    manifest = Manifest(kind, checkpoint_id, claim.job_id, "orders", claim.timeline, claim.attempt, 7)
    publish(catalogue.store, claim, manifest)
    catalogue.manifests[checkpoint_id] = manifest


def fail(catalogue: CheckpointCatalogue, at_ms: int) -> str:
    path = recording_path("orders", at_ms, 1, 0, 0)
    catalogue.store.put(path, b"")
    catalogue.store.put(shipped_job_path(path), b"")
    catalogue.keep_recordings(2)
    return path


def test_a_checkpoint_stays_as_long_as_a_recording_that_stands_on_it() -> None:
    catalogue = begun()
    complete(catalogue, 1)
    fail(catalogue, at_ms=100)
    complete(catalogue, 2)
    catalogue.discard([1])
    assert catalogue.delete_discarded(()) == []
    newer = [fail(catalogue, at_ms=200), fail(catalogue, at_ms=300)]
    assert catalogue.delete_discarded(()) == [1]
    kept = [entry.path for entry in catalogue.store.list("orders/_replay")]
    assert [path for path in kept if is_recording(path)] == newer
    assert len(kept) == 4


def test_without_recordings_a_checkpoint_goes_as_before() -> None:
    catalogue = begun()
    complete(catalogue, 1)
    complete(catalogue, 2)
    catalogue.discard([1])
    assert catalogue.delete_discarded(()) == [1]
