"""Find, read and verify the checkpoint to restore, before a task restores it (I16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rekindle.checkpoint.latest_checkpoint import older_checkpoints
from rekindle.checkpoint.manifest import Manifest, decode
from rekindle.checkpoint.paths import (
    METADATA,
    CheckpointPath,
    below,
    is_timeline,
    job_folder,
    metadata_path,
    root_of,
    url_of,
)
from rekindle.checkpoint.statefile import read_blobs
from rekindle.checkpoint.store.open_store import open_store
from rekindle.checkpoint.store.port import Store
from rekindle.checkpoint.stored_places import stored_place
from rekindle.checkpoint.timeline_notes import Beginning
from rekindle.errors import CheckpointNotFoundError, CorruptCheckpointError, MissingFileError, StoreError


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A complete checkpoint or savepoint: its manifest, and where its files are."""

    store: Store
    manifest: Manifest
    #: The checkpoint's folder in the store.
    path: str
    #: The folder that the manifest's references are relative to.
    root: str

    def beginning(self, store: Store, job_name: str) -> Beginning:
        """The note that a run which begins from this checkpoint leaves in its own store (I21).

        The path in it is relative to the job's folder where possible, so that the whole directory can be moved.
        """
        job = job_folder(job_name) + "/"
        own = self.store.url == store.url and self.path.startswith(job)
        origin = self.path.removeprefix(job) if own else url_of(self.store, self.path)
        return Beginning(origin, self.manifest.timeline, self.manifest.checkpoint_id)


@dataclass(frozen=True)
class Location:
    """A checkpoint or savepoint that the user named, and the store to read it from."""

    store: Store
    path: str


def locate(url: str, options: Mapping[str, str] | None = None) -> Location:
    """The store and the path in it for the URL or path of a checkpoint, of a savepoint, or of its `_metadata`.

    The store's root is the folder above the job's, if there is one, so that older checkpoints of the same job can be
    found if this one is damaged.

    >>> location = locate("file:///checkpoints/orders/00000001-0a1b2c3d/chk-7")
    >>> location.store.url, location.path
    ('file:///checkpoints', 'orders/00000001-0a1b2c3d/chk-7')
    >>> locate("file:///moved/savepoint-0a1b2c-1d2e3f/_metadata").path
    'savepoint-0a1b2c-1d2e3f'
    """
    try:
        place = stored_place(url, options)
    except StoreError as error:
        raise CheckpointNotFoundError(f"'{url}' names no checkpoint: {error}") from None
    parts = [part for part in place.path.split("/") if part]
    if parts and parts[-1] == METADATA:
        parts.pop()
    if not parts and not place.host:
        raise CheckpointNotFoundError(f"'{url}' names no checkpoint.")
    is_checkpoint = CheckpointPath.parse(parts[-1]) is not None
    in_layout = is_checkpoint and len(parts) > 1 and is_timeline(parts[-2])
    begin = max(0, len(parts) - (3 if in_layout else 2 if is_checkpoint else 1))
    root = "/".join(["", *parts[:begin]])
    store = open_store((root or "/") if place.is_local else replace(place, path=root).url, options)
    return Location(store, "/".join(parts[begin:]))


def load(store: Store, path: str, *, deep: bool = False) -> LoadedCheckpoint:
    """Load a checkpoint or savepoint by its folder, and check that its files exist and are long enough.

    `deep` also reads every byte and compares the checksums. CorruptCheckpointError names the damage and, as
    `alternative`, the newest older checkpoint of the same job that passes the deep check.
    """
    path = path.removesuffix("/" + METADATA).rstrip("/")
    try:
        return _verified(store, path, deep)
    except CorruptCheckpointError as error:
        raise _with_alternative(store, path, error) from error


def newest_good_before(store: Store, path: str, *, deep: bool = False) -> str | None:
    """The newest undamaged checkpoint in the history of the one at `path`; other timelines do not count (I21)."""
    damaged = CheckpointPath.parse(path)
    for found in older_checkpoints(store, damaged) if damaged is not None else ():
        try:
            return _verified(store, str(found), deep).path
        except (CorruptCheckpointError, CheckpointNotFoundError):
            continue
    return None


def _with_alternative(store: Store, path: str, error: CorruptCheckpointError) -> CorruptCheckpointError:
    alternative = newest_good_before(store, path, deep=True)
    advice = (
        f"the newest older good checkpoint is {url_of(store, alternative)}: set execution.state-recovery.path to it, "
        "knowing that output since then may be written again"
        if alternative is not None
        else "there is no older good checkpoint beside it"
    )
    return CorruptCheckpointError(
        f"{error} It cannot be restored; {advice}.", alternative=alternative, path=path, damage=str(error)
    )


def _verified(store: Store, path: str, deep: bool) -> LoadedCheckpoint:
    where = metadata_path(path)
    try:
        data = store.read(where)
    except MissingFileError as error:
        raise CheckpointNotFoundError(
            f"There is no complete checkpoint or savepoint at '{path}' in {store.url}: it has no {METADATA}."
        ) from error
    manifest = decode(data, where)
    root = root_of(path)
    _check_files(store, root, manifest)
    if deep:
        for _ in read_blobs(store, root, list(manifest.references())):
            pass
    return LoadedCheckpoint(store, manifest, path, root)


def _check_files(store: Store, root: str, manifest: Manifest) -> None:
    folders = {below(root, reference).rpartition("/")[0] for reference in manifest.files()}
    check_files({entry.path: entry.size for folder in folders for entry in store.list(folder)}, root, manifest)


def check_files(sizes: Mapping[str, int], root: str, manifest: Manifest) -> None:
    """Raise CorruptCheckpointError if a file that the manifest needs is missing or too short, by the files' sizes."""
    for reference, size in manifest.files().items():
        path = below(root, reference)
        if path not in sizes:
            raise CorruptCheckpointError(f"The state file {path} is missing.")
        if sizes[path] < size:
            raise CorruptCheckpointError(
                f"The state file {path} is truncated: it has {sizes[path]} bytes and should have {size} or more."
            )
