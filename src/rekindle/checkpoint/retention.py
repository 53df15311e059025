"""Which files may be deleted, as pure functions; and `delete_files`, which deletes them for the job's owner only (I14).

These are files of the owner's timeline that no kept checkpoint needs, and half-written files of older timelines.
Savepoints belong to the user and stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from rekindle.checkpoint.manifest import Manifest, ManifestKind
from rekindle.checkpoint.ownership import Claim, check_owner
from rekindle.checkpoint.paths import (
    METADATA,
    STOPPED,
    CheckpointPath,
    StateFileName,
    below,
    checkpoint_folder,
    is_partial,
    is_timeline,
    job_folder,
    metadata_path,
    owner_attempt,
    owners_folder,
    timeline_folder,
    timeline_order,
    without_partial,
)
from rekindle.checkpoint.store.port import Store


@dataclass(frozen=True)
class Deletion:
    """Paths of the store to delete, the manifests before the files."""

    manifests: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    #: The checkpoints of these manifests.
    checkpoint_ids: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.manifests or self.files)


def discarded_files(manifests: Sequence[Manifest], timeline: str, kept_ids: Collection[int]) -> Deletion:
    """The manifests and files to delete if only the checkpoints `kept_ids` of a timeline are kept.

    `manifests` are all that exist, oldest first.
    """
    own = [m for m in manifests if m.kind is ManifestKind.CHECKPOINT and m.timeline == timeline]
    kept = [m for m in own if m.checkpoint_id in kept_ids]
    dropped = [m for m in own if m.checkpoint_id not in kept_ids]
    return Deletion(
        manifests=[metadata_path(checkpoint_folder(m.job_name, timeline, m.checkpoint_id)) for m in dropped],
        files=sorted(_needed(dropped) - _needed(kept)),
        checkpoint_ids=[m.checkpoint_id for m in dropped],
    )


def swept_files(files: Iterable[str], kept: Iterable[Manifest], job_name: str, timeline: str, attempt: int) -> Deletion:
    """Leftover files of a timeline: state files of attempts before `attempt`, half-written manifests and notes.

    Call only while no manifest and no note is being written. Files of other kinds stay. `kept` are the timeline's
    checkpoints that exist and stay.
    """
    needed = _needed(kept)
    root = timeline_folder(job_name, timeline) + "/"
    leftover = []
    for path in files:
        if not path.startswith(root) or path in needed:
            continue
        name = StateFileName.parse(path)
        if name.attempt < attempt if name is not None else is_partial(path):
            leftover.append(path)
    return Deletion(files=sorted(leftover))


def half_written_files(files: Iterable[str], job_name: str, timeline: str, attempt: int) -> Deletion:
    """Half-written claims and files of timelines that older drivers left: these drivers no longer own the job."""
    half_written = (path for path in files if is_partial(path))
    return Deletion(files=sorted(path for path in half_written if _is_older(path, job_name, timeline, attempt)))


def _is_older(path: str, job_name: str, timeline: str, attempt: int) -> bool:
    job, owners = job_folder(job_name) + "/", owners_folder(job_name) + "/"
    if path.startswith(owners):
        claimed = owner_attempt(without_partial(path))
        return claimed is not None and claimed < attempt
    other = path.removeprefix(job).partition("/")[0]
    return path.startswith(job) and is_timeline(other) and timeline_order(other) < timeline_order(timeline)


def swept_manifests(
    files: Iterable[str], kept: Iterable[Manifest], job_name: str, timeline: str, stop: str | None = None
) -> list[str]:
    """`_metadata` files without a retained checkpoint (failed publishes, damaged checkpoints), and notes of stops other
    than `stop`. Call only while nothing is publishing.
    """
    root = timeline_folder(job_name, timeline) + "/"
    known = {metadata_path(checkpoint_folder(job_name, timeline, manifest.checkpoint_id)) for manifest in kept}
    others = (path for path in files if path.startswith(root) and path not in known and path != stop)
    return [path for path in others if _is_metadata_or_stop(path)]


def _is_metadata_or_stop(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return name in (METADATA, STOPPED) and CheckpointPath.parse(folder) is not None


def _needed(manifests: Iterable[Manifest]) -> set[str]:
    return {
        below(timeline_folder(manifest.job_name, manifest.timeline), reference)
        for manifest in manifests
        if manifest.kind is ManifestKind.CHECKPOINT
        for reference in manifest.files()
    }


def delete_files(store: Store, claim: Claim, deletion: Deletion) -> None:
    """Delete the files of a deletion, manifests first: a checkpoint without its files must not look complete."""
    if not deletion:
        return
    check_owner(store, claim)
    if deletion.manifests:
        store.delete(*deletion.manifests)
    if deletion.files:
        store.delete(*deletion.files)
