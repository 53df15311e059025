"""Publish a checkpoint: only the job's owner may do that (I14)."""

from __future__ import annotations

from rekindle.checkpoint.manifest import Manifest, ManifestKind, encode
from rekindle.checkpoint.ownership import Claim, check_owner
from rekindle.checkpoint.paths import checkpoint_folder, metadata_path
from rekindle.checkpoint.store.port import Store, put_once
from rekindle.crash_points import CrashPoint, reach
from rekindle.errors import CheckpointError


def publish(store: Store, claim: Claim, manifest: Manifest) -> str:
    """Complete a checkpoint; returns its folder. The checkpoint exists from the moment `_metadata` is written.

    OwnershipLostError: another driver took over, before or right after. Then notify no slot and commit nothing: the
    other driver does.
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
    """Write `_metadata` once; CheckpointError if there is a different one."""
    reach(CrashPoint.BEFORE_METADATA)
    if not put_once(store, metadata_path(folder), encode(manifest)):
        raise CheckpointError(f"There is already another checkpoint at {folder} in {store.url}.")
    reach(CrashPoint.AFTER_METADATA)
