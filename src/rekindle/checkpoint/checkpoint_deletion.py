"""Delete checkpoints that nothing needs, and files that belong to none; one that a job may need is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rekindle.checkpoint.checkpoint_listing import RunningJobs, StoredManifests
from rekindle.checkpoint.load_checkpoint import locate
from rekindle.checkpoint.paths import CheckpointPath, StateFileName, is_partial, is_timeline, metadata_path, root_of
from rekindle.checkpoint.store.options import StoreOptions, options_for
from rekindle.checkpoint.store.port import FileEntry
from rekindle.checkpoint.stored_places import open_stored
from rekindle.errors import CheckpointError, CheckpointNotFoundError


@dataclass(frozen=True)
class Deleted:
    """The deleted files: paths below the directory, and their bytes."""

    paths: tuple[str, ...]
    size_bytes: int

    @classmethod
    def of(cls, entries: list[FileEntry]) -> Deleted:
        """These files."""
        return cls(tuple(entry.path for entry in entries), sum(entry.size for entry in entries))


def delete_checkpoint(
    path: str, options: StoreOptions | None = None, *, directory: str | None = None, job_runs: bool = True
) -> Deleted:
    """Delete a checkpoint or savepoint, with the files that no other checkpoint needs.

    CheckpointError: a job goes on from it, or it is of its job's last run, which deletes its checkpoints itself.
    `directory` is that of the job's checkpoints, if a savepoint lies elsewhere: it tells what the job goes on from.
    `job_runs=False`: you know that the job does not run, so that the second reason does not count.
    """
    known = options or {}
    place = locate(path, options_for(path, known))
    stored = StoredManifests.of(place.store)
    if place.path not in stored.manifests and place.path not in stored.unreadable:
        raise CheckpointNotFoundError(f"There is no checkpoint or savepoint at '{path}'.")
    stores = [stored]
    if directory is not None:
        stores.append(StoredManifests.of(open_stored(directory, options_for(directory, known))))
    _refuse_needed(stored, place.path, [RunningJobs.of(each) for each in stores], job_runs)
    metadata = metadata_path(place.path)
    doomed = set() if place.path in stored.unreadable else _unshared(stored, place.path)
    place.store.delete(metadata)  # first: a checkpoint without its files must not look complete
    if doomed:
        place.store.delete(*sorted(doomed))
    return Deleted.of([entry for entry in stored.files if entry.path in doomed | {metadata}])


def _unshared(stored: StoredManifests, folder: str) -> set[str]:
    others = (stored.files_of(other) for other in stored.manifests if other != folder)
    return stored.files_of(folder).difference(*others)


def _refuse_needed(stored: StoredManifests, folder: str, jobs: list[RunningJobs], job_runs: bool) -> None:
    url, path = stored.url_of(folder), CheckpointPath.parse(folder)
    if any(url in each.latest for each in jobs):
        raise CheckpointError(
            f"A job goes on from {url} if it is started with latest, so it stays: start the job from another "
            "checkpoint first, or remove the job's whole folder."
        )
    if path is None:
        return
    if job_runs and any(path.timeline in each.timelines for each in jobs):
        raise CheckpointError(
            f"{url} is of the last run of its job, which deletes its checkpoints itself while it runs: say "
            "job_runs=False if it does not run any more."
        )
    beside = [each for each in stored.unreadable if each != folder and root_of(each) == root_of(folder)]
    if beside and folder in stored.manifests:
        raise CheckpointError(
            f"{stored.url_of(beside[0])} beside {url} is damaged, so that nobody knows which files it needs: delete "
            "that one first."
        )


def unneeded_files(directory: str, options: StoreOptions | None = None, *, job_runs: bool = True) -> Deleted:
    """The files below a directory that no checkpoint needs: of aborted checkpoints, and half-written ones.

    Files of a job's last run count only with `job_runs=False`, because they may belong to a checkpoint that is being
    written; so do those of savepoints without a manifest.
    """
    stored = StoredManifests.of(open_stored(directory, options_for(directory, options or {})))
    return Deleted.of(list(_unneeded(stored, job_runs)))


def delete_unneeded(directory: str, options: StoreOptions | None = None, *, job_runs: bool = True) -> Deleted:
    """Delete the files that `unneeded_files` finds."""
    store = open_stored(directory, options_for(directory, options or {}))
    found = list(_unneeded(StoredManifests.of(store), job_runs))
    if found:
        store.delete(*(entry.path for entry in found))
    return Deleted.of(found)


def _unneeded(stored: StoredManifests, job_runs: bool) -> Iterator[FileEntry]:
    needed = {path for folder in stored.manifests for path in stored.files_of(folder)}
    # A damaged manifest does not tell which files it needs.
    unknown = {root_of(folder) for folder in stored.unreadable}
    running = RunningJobs.of(stored).timelines if job_runs else frozenset()
    for entry in stored.files:
        if entry.path in needed or not (is_partial(entry.path) or StateFileName.parse(entry.path) is not None):
            continue
        timeline = next((part for part in entry.path.split("/") if is_timeline(part)), None)
        if timeline is None:
            is_running = job_runs
        else:
            is_running = timeline in running
        if not is_running and not any(entry.path.startswith(f"{root}/") for root in unknown):
            yield entry
