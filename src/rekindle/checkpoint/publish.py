"""The two things that only a job's owner may do: publish a checkpoint, and delete what no checkpoint needs."""

from __future__ import annotations

from rekindle.checkpoint.manifest import Manifest, ManifestKind, encode
from rekindle.checkpoint.ownership import Claim, check_owner
from rekindle.checkpoint.paths import checkpoint_folder, metadata_path
from rekindle.checkpoint.retention import Removal
from rekindle.checkpoint.store.port import Store, put_once
from rekindle.crash_points import CrashPoint, reach
from rekindle.errors import CheckpointError


def publish(store: Store, claim: Claim, manifest: Manifest) -> str:
    """Complete a checkpoint: its folder's path. From the moment `_metadata` is there it exists, and nothing undoes it.

    OwnershipLostError: another driver has come, before or just after; tell nobody that the checkpoint is complete and
    commit nothing, that driver does.
    """
    assert manifest.kind is ManifestKind.CHECKPOINT, manifest.kind
    assert (manifest.job_name, manifest.timeline) == (claim.job_name, claim.timeline), "a manifest of another timeline"
    assert manifest.attempt == claim.attempt, "a manifest of another attempt"
    check_owner(store, claim)
    folder = checkpoint_folder(manifest.job_name, manifest.timeline, manifest.checkpoint_id)
    put_metadata(store, folder, manifest)
    check_owner(store, claim)
    return folder


def put_metadata(store: Store, folder: str, manifest: Manifest) -> None:
    """Write `_metadata` once; CheckpointError when there is another one."""
    reach(CrashPoint.BEFORE_METADATA)
    if not put_once(store, metadata_path(folder), encode(manifest)):
        raise CheckpointError(f"There is already another checkpoint at {folder} in {store.url}.")
    reach(CrashPoint.AFTER_METADATA)


def remove(store: Store, claim: Claim, removal: Removal) -> None:
    """Delete what `retention` found: manifests first, so that a checkpoint without its files never looks complete."""
    if not removal:
        return
    check_owner(store, claim)
    if removal.manifests:
        store.delete(*removal.manifests)
    if removal.files:
        store.delete(*removal.files)
