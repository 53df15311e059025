"""List the checkpoints and savepoints below a directory, with their kind, whether they are whole, and their users."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rekindle.checkpoint.latest_checkpoint import latest
from rekindle.checkpoint.load_checkpoint import check_files
from rekindle.checkpoint.manifest import Manifest, ManifestKind, decode
from rekindle.checkpoint.ownership import newest_claims
from rekindle.checkpoint.paths import METADATA, CheckpointPath, StateFileName, below, metadata_path, root_of, url_of
from rekindle.checkpoint.store.options import StoreOptions, options_for
from rekindle.checkpoint.store.port import FileEntry, Store
from rekindle.checkpoint.stored_places import open_stored
from rekindle.errors import CheckpointError, CheckpointNotFoundError, CorruptCheckpointError, MissingFileError
from rekindle.places import is_url


@dataclass(frozen=True)
class CheckpointEntry:
    """A checkpoint or savepoint; of one whose manifest is damaged only what its path tells is known."""

    #: Where it is: the value for `execution.state-recovery.path`.
    url: str
    #: Its folder in the directory.
    folder: str
    kind: ManifestKind
    job_name: str
    timeline: str
    checkpoint_id: int
    taken_ms: int = 0
    duration_ms: int = 0
    #: Bytes of all its state, and those that it alone wrote.
    full_bytes: int = 0
    new_bytes: int = 0
    #: The uids of its operators.
    operators: tuple[str, ...] = ()
    #: The first damage that was found; None: none was.
    damage: str | None = None
    #: Ids of the checkpoints that wrote files which this one needs, its own id left out.
    needs: tuple[int, ...] = ()
    #: Folders of the other checkpoints that need files of this one.
    shared_with: tuple[str, ...] = ()
    #: Whether its job goes on from it with `latest`.
    is_latest: bool = False
    #: Whether it is of the last run of its job, which may be running.
    of_last_run: bool = False

    @property
    def whole(self) -> bool:
        """Whether no damage was found."""
        return self.damage is None


@dataclass(frozen=True)
class StoredManifests:
    """All manifests in a store, by folder."""

    store: Store
    files: list[FileEntry]
    manifests: dict[str, Manifest] = field(default_factory=dict)
    #: Folders whose manifest is damaged, with the damage.
    unreadable: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store) -> StoredManifests:
        """Read every manifest of the store."""
        found = cls(store, store.list())
        for entry in found.files:
            folder, _, name = entry.path.rpartition("/")
            if name == METADATA:
                found.read(folder)
        return found

    def read(self, folder: str) -> None:
        """Read one manifest."""
        path = metadata_path(folder)
        try:
            self.manifests[folder] = decode(self.store.read(path), path)
        except MissingFileError:  # deleted meanwhile
            return
        except CorruptCheckpointError as error:
            self.unreadable[folder] = str(error)

    def url_of(self, folder: str) -> str:
        """The URL of a checkpoint's folder."""
        return url_of(self.store, folder) if folder else self.store.url

    def files_of(self, folder: str) -> set[str]:
        """The files that a manifest needs, as paths of the store."""
        root = root_of(folder)
        return {below(root, name) for name in self.manifests[folder].files()}


@dataclass(frozen=True)
class RunningJobs:
    """The checkpoints that jobs of a store may need: those they go on from, and the timelines of their last runs."""

    latest: frozenset[str]
    timelines: frozenset[str]

    @classmethod
    def of(cls, stored: StoredManifests) -> RunningJobs:
        """Read the claims and notes of the store."""
        claims = newest_claims(stored.store)
        jobs = {claim.job_name for claim in claims} | {each.job_name for each in stored.manifests.values()}
        found = (_latest_url(stored.store, job) for job in sorted(jobs))
        return cls(frozenset(url for url in found if url), frozenset(claim.timeline for claim in claims))


def _latest_url(store: Store, job_name: str) -> str | None:
    with contextlib.suppress(CheckpointNotFoundError, CorruptCheckpointError):
        found = latest(store, job_name)
        return found if found is None or is_url(found) else url_of(store, found)
    return None


def list_checkpoints(directory: str, options: StoreOptions | None = None) -> list[CheckpointEntry]:
    """Every checkpoint and savepoint below a directory, of any job, by job, timeline and id.

    Files are checked for existence and length; `verify_checkpoint` reads them.
    """
    stored = StoredManifests.of(open_stored(directory, options_for(directory, options or {})))
    jobs = RunningJobs.of(stored)
    sizes = {entry.path: entry.size for entry in stored.files}
    entries = [_entry(stored, folder, sizes, jobs) for folder in stored.manifests]
    entries += [_damaged(stored.store, folder, damage) for folder, damage in stored.unreadable.items()]
    return sorted(entries, key=lambda each: (each.job_name, each.timeline, each.checkpoint_id, each.taken_ms))


def _entry(stored: StoredManifests, folder: str, sizes: Mapping[str, int], jobs: RunningJobs) -> CheckpointEntry:
    manifest = stored.manifests[folder]
    names = (StateFileName.parse(name) for name in manifest.files())
    written = {name.checkpoint_id for name in names if name is not None}
    own, url = stored.files_of(folder), stored.url_of(folder)
    return CheckpointEntry(
        url=url,
        folder=folder,
        kind=manifest.kind,
        job_name=manifest.job_name,
        timeline=manifest.timeline,
        checkpoint_id=manifest.checkpoint_id,
        taken_ms=manifest.timestamp_ms,
        duration_ms=manifest.duration_ms,
        full_bytes=manifest.full_bytes(),
        new_bytes=manifest.new_bytes(),
        operators=tuple(operator.uid for operator in manifest.operators),
        damage=_damage(manifest, folder, sizes),
        needs=tuple(sorted(written - {manifest.checkpoint_id})),
        shared_with=tuple(sorted(_sharing(stored, folder, own))),
        is_latest=url in jobs.latest,
        of_last_run=manifest.kind is ManifestKind.CHECKPOINT and manifest.timeline in jobs.timelines,
    )


def _sharing(stored: StoredManifests, folder: str, own: set[str]) -> Iterable[str]:
    if not own:
        return ()
    return (other for other in stored.manifests if other != folder and not own.isdisjoint(stored.files_of(other)))


def _damage(manifest: Manifest, folder: str, sizes: Mapping[str, int]) -> str | None:
    try:
        check_files(sizes, root_of(folder), manifest)
    except CheckpointError as error:
        return str(error)
    return None


def _damaged(store: Store, folder: str, damage: str) -> CheckpointEntry:
    path = CheckpointPath.parse(folder)
    return CheckpointEntry(
        url=url_of(store, folder),
        folder=folder,
        kind=ManifestKind.SAVEPOINT if path is None else ManifestKind.CHECKPOINT,
        job_name="" if path is None else path.job,
        timeline="" if path is None else path.timeline,
        checkpoint_id=0 if path is None else path.checkpoint_id,
        damage=damage,
    )
