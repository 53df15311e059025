"""Verify a checkpoint byte by byte, and copy it into one folder that can be moved: a savepoint without a job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from rekindle.checkpoint.copy_parts import FolderCopy
from rekindle.checkpoint.load_checkpoint import Location, load, locate
from rekindle.checkpoint.manifest import ManifestKind, decode
from rekindle.checkpoint.paths import CheckpointPath, metadata_path, root_of, url_of
from rekindle.checkpoint.publish import put_metadata
from rekindle.checkpoint.statefile import read_pieces
from rekindle.checkpoint.store.options import StoreOptions, options_for
from rekindle.errors import CheckpointError, CheckpointNotFoundError, CorruptCheckpointError, StoreError


@dataclass(frozen=True)
class Damage:
    """A part of a checkpoint that cannot be read."""

    #: The operator's uid; empty if the manifest itself is damaged.
    operator: str
    subtask: int
    problem: str


def verify_checkpoint(path: str, options: StoreOptions | None = None) -> list[Damage]:
    """Read every byte of a checkpoint or savepoint and compare the checksums; returns all damages, none if it is whole.

    >>> verify_checkpoint("no-such-savepoint")
    Traceback (most recent call last):
    rekindle.errors.CheckpointNotFoundError: There is no checkpoint or savepoint at 'no-such-savepoint'.
    """
    place = locate(path, options_for(path, options or {}))
    where = metadata_path(place.path)
    try:
        manifest = decode(place.store.read(where), where)
    except CorruptCheckpointError as error:
        return [Damage("", 0, str(error))]
    except StoreError as error:
        raise CheckpointNotFoundError(f"There is no checkpoint or savepoint at '{path}'.") from error
    damages: dict[Damage, None] = {}
    for operator in manifest.operators:
        for subtask in operator.subtasks:
            for blob in subtask.blobs():
                try:
                    for _ in read_pieces(place.store, root_of(place.path), blob):
                        pass
                except CheckpointError as error:
                    damages[Damage(operator.uid, subtask.subtask, str(error))] = None
    return list(damages)


def copy_checkpoint(path: str, target: str, options: StoreOptions | None = None) -> str:
    """Copy a checkpoint or savepoint into a new folder, which is a savepoint by itself; returns its URL.

    Checksums are compared on the way. If the copy fails, nothing of it is left.
    """
    known = options or {}
    place = locate(path, options_for(path, known))
    source = load(place.store, place.path)
    copy = new_place(target, known)
    manifest = source.manifest
    folder = FolderCopy(source.store, source.root, copy.store, copy.path, manifest.checkpoint_id, manifest.attempt)
    with empty_on_failure(copy):
        operators = [folder.operator(operator) for operator in manifest.operators]
        savepoint = msgspec.structs.replace(manifest, kind=ManifestKind.SAVEPOINT, operators=operators)
        put_metadata(copy.store, copy.path, savepoint)
    return url_of(copy.store, copy.path)


def new_place(path: str, options: StoreOptions) -> Location:
    """The place of a new savepoint; refused if there are files, or if it would look like a job's checkpoint."""
    place = locate(path, options_for(path, options))
    if CheckpointPath.parse(place.path) is not None:
        raise CheckpointError(f"'{path}' is the name of a job's checkpoint: give the savepoint's folder another one.")
    if place.store.list(place.path):
        raise CheckpointError(f"There are files in {path}: name a new folder for the savepoint.")
    return place


@contextlib.contextmanager
def empty_on_failure(place: Location) -> Iterator[None]:
    """Delete what was written into a folder if the block fails."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(StoreError):  # the first error says more
            place.store.delete(*(entry.path for entry in place.store.list(place.path)))
        raise
