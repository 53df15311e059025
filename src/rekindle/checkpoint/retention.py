"""What may be deleted. Pure: `publish.remove` does it, and only for the job's owner (I14).

Only the own timeline is touched, and only what no kept checkpoint needs; of older ones, what is half written.
Savepoints belong to the user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from rekindle.checkpoint.manifest import Manifest, ManifestKind
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


@dataclass(frozen=True)
class Removal:
    """Paths of the store that may go, the manifests before the files."""

    manifests: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    #: The checkpoints that these manifests are of.
    checkpoint_ids: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.manifests or self.files)


def outdated(manifests: Sequence[Manifest], timeline: str, kept_ids: Collection[int]) -> Removal:
    """What goes when only these checkpoints of a timeline are kept, with what they need.

    `manifests` are those that exist, oldest first.
    """
    own = [m for m in manifests if m.kind is ManifestKind.CHECKPOINT and m.timeline == timeline]
    kept = [m for m in own if m.checkpoint_id in kept_ids]
    dropped = [m for m in own if m.checkpoint_id not in kept_ids]
    return Removal(
        manifests=[metadata_path(checkpoint_folder(m.job_name, timeline, m.checkpoint_id)) for m in dropped],
        files=sorted(_needed(dropped) - _needed(kept)),
        checkpoint_ids=[m.checkpoint_id for m in dropped],
    )


def orphans(files: Iterable[str], kept: Iterable[Manifest], job_name: str, timeline: str, attempt: int) -> Removal:
    """Files below the timeline that nobody will ever need: state of older attempts, and what a crash left half written
    of a manifest or a note; while none of these is being written. Unknown files are left alone.

    `kept` are the timeline's checkpoints that exist and stay.
    """
    needed = _needed(kept)
    root = timeline_folder(job_name, timeline) + "/"
    gone = []
    for path in files:
        if not path.startswith(root) or path in needed:
            continue
        name = StateFileName.parse(path)
        if name.attempt < attempt if name is not None else is_partial(path):
            gone.append(path)
    return Removal(files=sorted(gone))


def abandoned(files: Iterable[str], job_name: str, timeline: str, attempt: int) -> Removal:
    """What drivers before this one have left half written, claims and timelines: whoever wrote it has lost the job."""
    half_written = (path for path in files if is_partial(path))
    return Removal(files=sorted(path for path in half_written if _is_older(path, job_name, timeline, attempt)))


def _is_older(path: str, job_name: str, timeline: str, attempt: int) -> bool:
    job, owners = job_folder(job_name) + "/", owners_folder(job_name) + "/"
    if path.startswith(owners):
        claimed = owner_attempt(without_partial(path))
        return claimed is not None and claimed < attempt
    other = path.removeprefix(job).partition("/")[0]
    return path.startswith(job) and is_timeline(other) and timeline_order(other) < timeline_order(timeline)


def unknown(
    files: Iterable[str], kept: Iterable[Manifest], job_name: str, timeline: str, stop: str | None = None
) -> list[str]:
    """The `_metadata` below the timeline that belong to no kept checkpoint: of one that counts as failed because the
    store did not answer, or of one that was damaged. While none is being published. And notes of stops other than the
    one that counts, `stop`.
    """
    root = timeline_folder(job_name, timeline) + "/"
    known = {metadata_path(checkpoint_folder(job_name, timeline, manifest.checkpoint_id)) for manifest in kept}
    unheard_of = (path for path in files if path.startswith(root) and path not in known and path != stop)
    return [path for path in unheard_of if _is_of_a_checkpoint(path)]


def _is_of_a_checkpoint(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return name in (METADATA, STOPPED) and CheckpointPath.parse(folder) is not None


def _needed(manifests: Iterable[Manifest]) -> set[str]:
    return {
        below(timeline_folder(manifest.job_name, manifest.timeline), reference)
        for manifest in manifests
        if manifest.kind is ManifestKind.CHECKPOINT
        for reference in manifest.files()
    }
