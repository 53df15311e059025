"""Find a job's latest checkpoint, and the older checkpoints that one builds on (I14, I21).

Timelines are read from the newest to the oldest. A run's newest published checkpoint is the latest. A run that has
published nothing continues from its beginning, even if older runs have published since. A timeline without a note of
its beginning is ignored: its driver died before it wrote one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from rekindle import config
from rekindle.checkpoint.paths import (
    BEGUN,
    COMPLETED,
    METADATA,
    STOPPED,
    CheckpointPath,
    StateFileName,
    below,
    job_folder,
    timeline_order,
    url_of,
)
from rekindle.checkpoint.store.port import FileEntry, Store
from rekindle.checkpoint.timeline_notes import beginning_of, stopped_with
from rekindle.errors import CheckpointNotFoundError
from rekindle.places import is_url

LATEST: Final = "latest"


@dataclass
class _Timeline:
    """The checkpoints and notes of one run."""

    folder: str
    checkpoints: list[CheckpointPath] = field(default_factory=list)  # complete ones, oldest first
    stops: list[CheckpointPath] = field(default_factory=list)  # notes of stops with a savepoint, oldest first
    begun: bool = False
    completed: bool = False

    @property
    def newest(self) -> CheckpointPath | None:
        """The last checkpoint that the run has published, or the note of its stop if that is newer."""
        return max((*self.checkpoints[-1:], *self.stops[-1:]), key=attrgetter("order"), default=None)


def latest(store: Store, job_name: str) -> str | None:
    """The checkpoint that the job continues from: its folder in the store, or its URL if it is elsewhere.

    None: no checkpoint of the job has completed, so it begins anew. CheckpointNotFoundError: a checkpoint has completed
    and is gone; to begin anew would commit its output twice.
    """
    job = job_folder(job_name)
    timelines = _timelines(job, store.list(job))
    while timelines:
        _, run = timelines.popitem()
        if (newest := run.newest) is not None:
            return stopped_with(store, str(newest)) if newest in run.stops else str(newest)
        if run.completed:
            raise _gone(store, job_name)
        if run.begun:
            beginning = beginning_of(store, run.folder)
            if beginning.origin is not None:
                return beginning.origin if is_url(beginning.origin) else below(job, beginning.origin)
            if beginning.on_purpose:
                _refuse_older(store, job_name, timelines)
            return None
    return None


def highest_checkpoint_id(store: Store, job_name: str) -> int:
    """The highest checkpoint id that any attempt has used, completed or not; 0: none."""
    highest = 0
    for entry in store.list(job_folder(job_name)):
        name, checkpoint = StateFileName.parse(entry.path), CheckpointPath.parse(entry.path.rpartition("/")[0])
        if name is not None:
            highest = max(highest, name.checkpoint_id)
        elif checkpoint is not None:
            highest = max(highest, checkpoint.checkpoint_id)
    return highest


def older_checkpoints(store: Store, checkpoint: CheckpointPath) -> Iterator[CheckpointPath]:
    """The complete checkpoints before this one, newest first: of its timeline, then of the timelines before that."""
    timelines = _timelines(checkpoint.job, store.list(checkpoint.job))
    name, end = checkpoint.timeline, checkpoint.checkpoint_id
    while timelines:
        last, run = timelines.popitem()
        if timeline_order(last) > timeline_order(name):
            continue
        limit = end if last == name else None
        yield from (each for each in reversed(run.checkpoints) if limit is None or each.checkpoint_id < limit)
        if run.begun:
            beginning = beginning_of(store, run.folder)
            name, end = beginning.timeline, beginning.checkpoint_id + 1
            if name not in timelines:
                return


def folders_with(name: str, entries: Iterable[FileEntry]) -> list[CheckpointPath]:
    """The folders of checkpoints that have a file of this name, oldest first: by timeline, then by id."""
    folders = (entry.path.removesuffix(f"/{name}") for entry in entries if entry.path.endswith(f"/{name}"))
    found = (CheckpointPath.parse(folder) for folder in folders)
    return sorted((each for each in found if each is not None), key=attrgetter("order"))


def _timelines(job: str, entries: list[FileEntry]) -> dict[str, _Timeline]:
    """Timelines by name, oldest first."""
    found: dict[str, _Timeline] = {}

    def run(name: str) -> _Timeline:
        return found.setdefault(name, _Timeline(below(job, name)))

    for each in folders_with(METADATA, entries):
        run(each.timeline).checkpoints.append(each)
    for each in folders_with(STOPPED, entries):
        run(each.timeline).stops.append(each)
    for entry in entries:
        folder, _, note = entry.path.rpartition("/")
        if note in (BEGUN, COMPLETED):
            begun_or_completed = run(folder.rpartition("/")[2])
            begun_or_completed.begun |= note == BEGUN
            begun_or_completed.completed |= note == COMPLETED
    return {name: found[name] for name in sorted(found, key=timeline_order)}


def _gone(store: Store, job_name: str) -> CheckpointNotFoundError:
    return _refusal(
        store,
        job_name,
        f"Job '{job_name}' has completed checkpoints at {store.url}, but none of its last run is there any more: they "
        "went when it finished or was cancelled, or somebody removed them.",
        "a checkpoint or savepoint",
    )


def _refuse_older(store: Store, job_name: str, older: dict[str, _Timeline]) -> None:
    """Refuse to begin anew if an older run has completed checkpoints: their output would be committed twice."""
    if not any(run.newest is not None or run.completed for run in older.values()):
        return
    run, newest = next(((run, run.newest) for run in reversed(older.values()) if run.newest), (None, None))
    what = "a checkpoint or savepoint"
    if run is not None and newest is not None:
        what = stopped_with(store, str(newest)) if newest in run.stops else url_of(store, str(newest))
    why = f"The last run of job '{job_name}' at {store.url} began anew and completed no checkpoint; one before it had."
    raise _refusal(store, job_name, why, what)


def _refusal(store: Store, job_name: str, why: str, what: str) -> CheckpointNotFoundError:
    key, folder = config.RECOVERY_PATH.key, url_of(store, job_folder(job_name))
    return CheckpointNotFoundError(
        f"{why} To begin anew on purpose, start the job without {key}, or remove the folder {folder}; to go on, set "
        f"{key} to {what}."
    )
