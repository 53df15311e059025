"""Finds the recording that a user means: by its own path, or by that of a job, a checkpoint or a whole directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rekindle.checkpoint.paths import CheckpointPath, is_recording, shipped_job_path, url_of
from rekindle.checkpoint.recordings import Recording, decode_recording
from rekindle.checkpoint.store.open_store import open_store
from rekindle.checkpoint.store.port import Store
from rekindle.checkpoint.stored_places import stored_place
from rekindle.errors import MissingFileError, RecordingNotFoundError, ReplayError


@dataclass(frozen=True)
class StoredRecording:
    """A recording and where it lies."""

    store: Store
    path: str
    recording: Recording

    @property
    def url(self) -> str:
        """The URL of the recording."""
        return url_of(self.store, self.path)

    def shipped_job(self) -> bytes:
        """The code that the failed job had shipped: pickled, for `--shipped` only."""
        try:
            return self.store.read(shipped_job_path(self.path))
        except MissingFileError as error:
            raise ReplayError(
                f"The code of the failed job is not beside {self.url}: name the program with --program. "
                "rekindle.replay.keep-code keeps the code of later failures."
            ) from error


def find_recording(
    path: str, subtask: int | None = None, operator: str | None = None, options: Mapping[str, str] | None = None
) -> StoredRecording:
    """The newest recording at or below a path or URL, of this subtask (from 0) and this operator if they are given.

    A checkpoint's path stands for its job.
    """
    place = stored_place(path, options)
    whole = place.path.rstrip("/")
    if is_recording(whole):
        folder, _, name = whole.rpartition("/_replay/")
        return _read(open_store(replace(place, path=folder).url, options), f"_replay/{name}")
    if CheckpointPath.parse(whole) is not None:
        whole = whole.rpartition("/")[0].rpartition("/")[0]  # chk-7, below its timeline, below the job
    store = open_store(replace(place, path=whole).url, options)
    found = sorted((each.path for each in store.list() if is_recording("/" + each.path)), key=_by_time, reverse=True)
    for each in found:
        stored = _read(store, each)
        if _is_meant(stored.recording, subtask, operator):
            return stored
    raise RecordingNotFoundError(_nothing(path, len(found), subtask, operator))


def _by_time(path: str) -> str:
    return path.rpartition("/")[2]


def _read(store: Store, path: str) -> StoredRecording:
    try:
        data = store.read(path)
    except MissingFileError as error:
        raise RecordingNotFoundError(f"There is no recording at {url_of(store, path)}.") from error
    return StoredRecording(store, path, decode_recording(data, url_of(store, path)))


def _is_meant(recording: Recording, subtask: int | None, operator: str | None) -> bool:
    if subtask is not None and recording.subtask != subtask:
        return False
    return operator is None or operator == recording.failure.operator or operator in dict(recording.operators)


def _nothing(path: str, others: int, subtask: int | None, operator: str | None) -> str:
    if not others:
        return (
            f"There is no recorded input at or below {path}: set rekindle.replay.record-input: true, and run the job "
            "until it fails again. A slot that was killed leaves none."
        )
    wanted = [f"subtask {subtask}"] if subtask is not None else []
    wanted += [f"operator '{operator}'"] if operator is not None else []
    return f"None of the {others} recordings below {path} is of {' and '.join(wanted)}."
